import shutil

import numpy as np
import pytest
import torch

from common.errors import ConfigError, DataError
from server.metrics import finetuned
from server.metrics.finetuned import ClassifierTraining, train_and_predict
from tests.support.tiny_models import tiny_bert, tiny_gpt2

FRUIT = ("apple", "berry", "word", "one", "two", "three")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", FRUIT)


def texts(count, wrong=0.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    others = rng.choice(["word", "one", "two", "three"], (count, 3))
    predicted = np.where(rng.random(count) < wrong, 1 - labels, labels)
    return [" ".join([*row, FRUIT[of], "word"]) for row, of in zip(others, predicted, strict=True)], labels


def training(folder, **changes):
    settings = {"epochs": 10, "rate": 1e-2, "batch": 8, "patience": 10} | changes
    return ClassifierTraining(checkpoint=str(folder), **settings)


def test_it_learns_which_word_tells_the_labels_apart_and_repeats_itself(saved):
    train, test = texts(64), texts(40, seed=1)
    before = torch.get_rng_state()
    predicted = train_and_predict(*train, test[0], training(saved))
    assert (predicted == test[1]).mean() > 0.9
    np.testing.assert_array_equal(train_and_predict(*train, test[0], training(saved)), predicted)
    assert torch.equal(torch.get_rng_state(), before)


def test_texts_count_by_their_weights(saved):
    right, wrong = texts(40), texts(40, wrong=1.0, seed=2)
    both, labels = [*right[0], *wrong[0]], np.concatenate([right[1], wrong[1]])
    test = texts(40, seed=1)
    for heavy, expected in ((0, 1.0), (1, 0.0)):
        weights = np.repeat([1.0, 1e-4] if heavy == 0 else [1e-4, 1.0], 40)
        predicted = train_and_predict(both, labels, test[0], training(saved), weights=weights)
        assert abs((predicted == test[1]).mean() - expected) < 0.2


def test_it_stops_early_and_predicts_with_the_best_epoch(saved, monkeypatch):
    epochs = []
    real = finetuned._outputs

    def worse(model, ids, tokens):
        """A loss that is lowest after the second epoch; what predicts is told apart by its weights."""
        if len(tokens) == 7:
            return real(model, ids, tokens)
        epochs.append({name: value.clone() for name, value in model.state_dict().items()})
        spread = {1: 1.0, 2: 3.0}.get(len(epochs), 0.0)
        return torch.tensor([[spread, 0.0], [0.0, spread]]).repeat(len(tokens) // 2, 1)

    monkeypatch.setattr(finetuned, "_outputs", worse)
    monkeypatch.setattr(finetuned, "_set_aside", lambda labels, _: (torch.arange(4, len(labels)), torch.arange(4)))
    used, model = [], finetuned._model
    monkeypatch.setattr(finetuned, "_model", lambda *args: used.append(made := model(*args)) or made)
    train_and_predict(*texts(24), ["apple"] * 7, training(saved, epochs=9, patience=2))
    assert len(epochs) == 4
    last = used[0].state_dict()
    assert all(torch.equal(last[name], value) for name, value in epochs[1].items())
    assert not all(torch.equal(last[name], value) for name, value in epochs[3].items())


def test_the_part_set_aside_has_every_class_that_can_spare_a_text():
    labels = np.array([0] * 40 + [1] * 5 + [2])
    training_part, aside = finetuned._set_aside(labels, 0.1)
    assert sorted([*training_part.tolist(), *aside.tolist()]) == list(range(46))
    assert np.bincount(labels[aside.numpy()], minlength=3).tolist() == [4, 1, 0]
    training_part, aside = finetuned._set_aside(
        np.array([0, 1]), 0.5
    )  # nothing to spare: it stops by what it trains on
    assert training_part.tolist() == aside.tolist() == [0, 1]


def test_a_causal_network_of_another_head_and_no_padding_can_be_fine_tuned(tmp_path):
    folder = tiny_gpt2(tmp_path / "gpt2")
    predicted = train_and_predict(["a", "bb b", "a"], np.array([0, 1, 2]), ["", "bb"], training(folder, epochs=1))
    assert set(predicted.tolist()) <= {0, 1, 2}


def test_the_head_of_other_labels_is_replaced(saved, tmp_path, capfd):
    from transformers import BertForSequenceClassification

    other = shutil.copytree(saved, tmp_path / "other")
    BertForSequenceClassification.from_pretrained(saved, num_labels=5).save_pretrained(other)
    capfd.readouterr()
    assert train_and_predict(*texts(8), ["apple"], training(other, epochs=1)).shape == (1,)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_fine_tuned_is_refused(saved, tmp_path):
    with pytest.raises(DataError, match="at least two"):
        train_and_predict(["one"], np.array([0]), ["two"], training(saved))
    with pytest.raises(ConfigError, match="folder"):
        training(tmp_path / "nowhere").checked_folder()
    bare = shutil.copytree(saved, tmp_path / "bare")
    for file in ("tokenizer.json", "vocab.txt"):
        (bare / file).unlink(missing_ok=True)
    with pytest.raises(ConfigError, match="tokenizer"):
        training(bare).checked_folder()
    with pytest.raises(ConfigError, match=r"^validation;"):
        training(saved, validation=0)
