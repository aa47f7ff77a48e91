import shutil
from functools import partial

import numpy as np
import pytest
import torch

from common.errors import ConfigError, DataError
from server.metrics import finetuned
from server.metrics.finetuned import check_checkpoint, train_and_predict
from tests.support.tiny_models import tiny_bert, tiny_gpt2

FRUIT = ("apple", "berry", "word", "one", "two", "three")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", FRUIT)


@pytest.fixture
def train(saved, monkeypatch):
    """Fine-tuning of a tiny network, which needs larger steps."""
    for name, value in {"_RATE": 1e-2, "_BATCH": 8, "_PATIENCE": 10}.items():
        monkeypatch.setattr(finetuned, name, value)
    return partial(train_and_predict, checkpoint=str(saved))


def texts(count, wrong=0.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    others = rng.choice(["word", "one", "two", "three"], (count, 3))
    predicted = np.where(rng.random(count) < wrong, 1 - labels, labels)
    return [" ".join([*row, FRUIT[of], "word"]) for row, of in zip(others, predicted, strict=True)], labels


def test_training_learns_which_word_tells_the_labels_apart_and_repeats_itself(train):
    test, right = texts(40, seed=1)
    before = torch.get_rng_state()
    predicted = train(*texts(64), test)
    assert (predicted == right).mean() > 0.9
    np.testing.assert_array_equal(train(*texts(64), test), predicted)
    assert torch.equal(torch.get_rng_state(), before)


def test_texts_count_by_their_weights(train):
    right, wrong = texts(40), texts(40, wrong=1.0, seed=2)
    both, labels = [*right[0], *wrong[0]], np.concatenate([right[1], wrong[1]])
    test = texts(40, seed=1)
    for weights, expected in (([1.0, 1e-4], 1.0), ([1e-4, 1.0], 0.0)):
        predicted = train(both, labels, test[0], weights=np.repeat(weights, 40))
        assert abs((predicted == test[1]).mean() - expected) < 0.2


def test_training_stops_early_and_predicts_with_the_best_epoch(train, monkeypatch):
    epochs, real = [], finetuned._outputs

    def worse(model, tokens):
        """A loss that is lowest after the second epoch; what predicts is told apart by its number of texts."""
        if len(tokens) == 7:
            return real(model, tokens)
        epochs.append({name: value.clone() for name, value in model.state_dict().items()})
        spread = {1: 1.0, 2: 3.0}.get(len(epochs), 0.0)
        return torch.tensor([[spread, 0.0], [0.0, spread]]).repeat(len(tokens) // 2, 1)

    used, model = [], finetuned._model
    monkeypatch.setattr(finetuned, "_PATIENCE", 2)
    monkeypatch.setattr(finetuned, "_outputs", worse)
    monkeypatch.setattr(finetuned, "_set_aside", lambda labels: (torch.arange(4, len(labels)), torch.arange(4)))
    monkeypatch.setattr(finetuned, "_model", lambda *args: used.append(made := model(*args)) or made)
    train(*texts(24), ["apple"] * 7, epochs=9)
    assert len(epochs) == 4
    last = used[0].state_dict()
    assert all(torch.equal(last[name], value) for name, value in epochs[1].items())
    assert not all(torch.equal(last[name], value) for name, value in epochs[3].items())


def test_set_aside_has_every_class_that_can_spare_a_text():
    labels = np.array([0] * 40 + [1] * 5 + [2])
    training_part, aside = finetuned._set_aside(labels)
    assert sorted([*training_part.tolist(), *aside.tolist()]) == list(range(46))
    assert np.bincount(labels[aside.numpy()], minlength=3).tolist() == [4, 1, 0]
    training_part, aside = finetuned._set_aside(np.array([0, 1]))
    assert training_part.tolist() == aside.tolist() == [0, 1]  # nothing to spare: it stops by what it trains on


def test_checkpoint_of_another_head_or_without_padding_is_fine_tuned_in_silence(train, saved, tmp_path, capfd):
    from transformers import BertForSequenceClassification

    gpt2 = tiny_gpt2(tmp_path / "gpt2")
    causal = train(["a", "bb b", "a"], np.array([0, 1, 2]), ["", "bb"], checkpoint=gpt2, epochs=1)
    assert set(causal.tolist()) <= {0, 1, 2}
    other = shutil.copytree(saved, tmp_path / "other")
    BertForSequenceClassification.from_pretrained(saved, num_labels=5).save_pretrained(other)
    capfd.readouterr()
    assert train(*texts(8), ["apple"], checkpoint=other, epochs=1).shape == (1,)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_fine_tuned_is_refused(train, saved, tmp_path):
    with pytest.raises(DataError):
        train(["one"], np.array([0]), ["two"])
    bare = shutil.copytree(saved, tmp_path / "bare")
    for file in ("tokenizer.json", "vocab.txt"):
        (bare / file).unlink(missing_ok=True)
    for folder in (tmp_path / "nowhere", bare):
        with pytest.raises(ConfigError):
            check_checkpoint(str(folder))
