import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, GPT2Config, GPT2LMHeadModel

from common.errors import ConfigError, DataError
from server.metrics.language_model import LanguageModel
from server.settings.evaluation import Training
from tests.support.lanes import slow

TEXTS = ["the card was lost abroad", "the patient has a cough and a fever", "a lost card", "fever, with a dry cough"]
SMALL = {"epochs": 1, "width": 16, "layers": 1, "vocabulary": 300}


@pytest.fixture(scope="module")
def model():
    return LanguageModel.train(TEXTS * 8, Training(**SMALL | {"epochs": 5}, learning_rate=1e-2))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """A folder each: GPT-2 and BERT of random weights with a tokenizer, and GPT-2 without."""
    folder = tmp_path_factory.mktemp("checkpoints")
    trained = LanguageModel.train(TEXTS, Training(**SMALL))
    trained._model.save_pretrained(folder / "gpt2")
    trained._tokenizer.save_pretrained(folder / "gpt2")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(" ".join(TEXTS).replace(",", " ,").split()))]
    BertTokenizer(vocab={word: at for at, word in enumerate(words)}).save_pretrained(folder / "bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=24, **sizes)
    BertForMaskedLM(config).save_pretrained(folder / "bert")
    signs = {"bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=16, n_layer=1, n_head=1, **signs)).save_pretrained(folder / "bare")
    (folder / "empty").mkdir()
    return folder


def by_hand(model, text):
    """(tokens, vocabulary) log probabilities and the tokens themselves, one text at a time without padding."""
    ids = [0, *model._tokenizer(text)["input_ids"], 0]  # sign 0 starts and ends
    with torch.no_grad():
        logits = model._model(torch.tensor([ids])).logits[0, :-1].double()
    return torch.log_softmax(logits, dim=1).numpy(), np.array(ids[1:])


def perplexity(model, texts):
    losses, tokens, _ = model.totals(texts)
    return np.exp(losses.sum() / tokens.sum())


def test_totals_are_those_of_each_text_alone_whatever_stands_beside_it(model):
    alone = [by_hand(model, text) for text in TEXTS]
    losses = [-beliefs[np.arange(len(ids)), ids] for beliefs, ids in alone]
    right = [(beliefs.argmax(axis=1) == ids).sum() for beliefs, ids in alone]
    assert len({len(of_text) for of_text in losses}) > 1  # so there is padding
    assert model.nll(TEXTS) == pytest.approx([of_text.mean() for of_text in losses], rel=1e-5)
    found = [[of_text.sum() for of_text in losses], [len(of_text) for of_text in losses], right]
    assert np.array(model.totals(TEXTS)) == pytest.approx(np.array(found), rel=1e-5)


def test_training_learns_its_texts_and_not_others(model):
    assert perplexity(model, TEXTS) < perplexity(model, [text[::-1] for text in TEXTS]) / 2
    assert (model.nll(["naïve 咳嗽 ☃", ""]) > 0).all()  # nothing is unknown to bytes, and an empty text still ends


def test_training_with_the_same_arguments_repeats_itself_and_leaves_the_global_generator_alone():
    def figures(**seed):
        return LanguageModel.train(TEXTS, Training(**SMALL, batch=2), **seed).nll(TEXTS).tolist()

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = figures()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert figures() == first
    assert figures(seed=1) != first


def test_long_texts_are_cut():
    model = LanguageModel.train(TEXTS, Training(**SMALL, length=6))
    assert model.nll(["abcdefgh"]) == model.nll(["abcdefghij"])


@pytest.mark.parametrize("kind", ["gpt2", slow("bert")])
def test_training_goes_on_from_a_checkpoint(checkpoints, kind):
    starts = (checkpoints / kind, str(checkpoints / kind))
    model, again = (
        LanguageModel.train(TEXTS * 16, Training(start=start, learning_rate=2e-2, epochs=15)) for start in starts
    )
    assert perplexity(model, TEXTS) < 4
    assert again.nll(TEXTS).tolist() == model.nll(TEXTS).tolist()  # BERT's dropout is seeded
    assert len(model.nll(["cough " * 500])) == 1  # cut to the positions that there are


def test_tokens_of_a_bert_do_not_see_what_comes_after_them(checkpoints):
    model = LanguageModel.train(TEXTS, Training(start=checkpoints / "bert", epochs=1))
    with torch.no_grad():
        one, other = model._model(torch.tensor([[2, 6, 7, 8], [2, 6, 9, 10]])).logits
    assert torch.equal(one[:2], other[:2])
    assert not torch.equal(one[2], other[2])


@pytest.mark.parametrize("start", ["empty", "nowhere", "bare"])
def test_checkpoint_that_is_no_model_with_a_tokenizer_is_refused(checkpoints, start):
    with pytest.raises(ConfigError):
        LanguageModel.train(TEXTS, Training(start=checkpoints / start))


def test_no_texts_are_refused(model):
    for ask in (LanguageModel.train, model.nll, model.totals):
        with pytest.raises(DataError):
            ask([])
