import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from threadpoolctl import threadpool_info

import server
import simulations
from common.errors import DataError
from common.labelled_files import read_records
from common.models.encoder import Encoder
from server.metrics.accuracy import accuracy, fit_in_one_thread, macro_f1, predict

TRAIN = (["wet cough fever", "fever and cough", "card lost", "my card is lost"], ["lung", "lung", "bank", "bank"])


def test_separable_texts_are_told_apart():
    assert predict(*TRAIN, ["cough", "lost card", "fever"]) == (["lung", "bank", "lung"], None)


def test_the_encoder_can_take_the_place_of_tf_idf():
    encoder = Encoder.hashed_ngrams(dimensions=64, bits=12)
    assert predict(*TRAIN, ["coughing, feverish", "lost cards"], encoder=encoder) == (["lung", "bank"], None)


def test_macro_f1_is_over_the_classes_in_the_test_texts():
    # Of the test's classes, lung has F1 1/2 and "other", never predicted, 0.
    predicted, right = ["lung", "bank", "lung"], ["lung", "lung", "other"]
    assert accuracy(predicted, right) == pytest.approx(1 / 3)
    assert macro_f1(predicted, right) == pytest.approx((1 / 2 + 0) / 2)


def test_figures_are_those_of_a_library():
    rng = np.random.default_rng(0)
    predicted, true = (
        rng.choice(["a", "b", "lung", "other"], 60, p=p).tolist() for p in ([0.2, 0, 0.4, 0.4], [0.5, 0.3, 0.2, 0])
    )
    assert accuracy(predicted, true) == pytest.approx(accuracy_score(true, predicted))
    expected = f1_score(true, predicted, labels=sorted(set(true)), average="macro", zero_division=0.0)
    assert macro_f1(predicted, true) == pytest.approx(expected)


def test_one_class_is_a_result_that_says_so():
    predicted, note = predict(["a cough"], ["lung"], ["fever", "card", "cough", "x"])
    assert predicted == ["lung"] * 4
    assert macro_f1(predicted, ["lung", "bank", "lung", "bank"]) == pytest.approx((2 / 3 + 0) / 2)
    assert "one label" in note


def test_weights_say_how_much_each_text_counts():
    train = (["same words", "same words"], ["lung", "bank"])
    for weights, label in (([2.0, 1.0], "lung"), ([1.0, 2.0], "bank")):
        assert predict(*train, ["same words"], train_weights=weights)[0] == [label]
    assert predict(*TRAIN, ["cough"], train_weights=[1.0] * 4) == predict(*TRAIN, ["cough"])
    with pytest.raises(DataError, match="weights"):
        predict(*train, ["same"], train_weights=[1.0])


def test_texts_without_a_word_are_a_result_that_says_so():
    predicted, note = predict(["!", "?", "-"], ["b", "a", "b"], ["cough", "x"])
    assert predicted == ["b", "b"]
    assert "word" in note


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (([], [], ["x"]), "training set"),
        ((["x"], ["a"], []), "test set"),
        ((["x"], [], ["x"]), "one for each"),
    ],
)
def test_empty_and_unequal_sets_are_refused(sets, says):
    with pytest.raises(DataError, match=says):
        predict(*sets)


def test_banking10_reaches_its_reference_figures():
    data = Path(os.environ.get("CAUCUS_DATA", Path(__file__).parents[3] / "../shared/data")) / "banking10"
    if not data.is_dir():
        pytest.skip("no banking10: put it beside the project or set CAUCUS_DATA to the folder that holds it")
    train, test = (read_records(data / f"{name}.csv") for name in ("train", "test"))
    assert (len(train), len(test)) == (1403, 400)
    texts, labels = [record.text for record in train], [record.label for record in train]
    predicted, right = predict(texts, labels, [record.text for record in test])[0], [record.label for record in test]
    assert accuracy(predicted, right) == pytest.approx(0.980, abs=5e-4)
    assert macro_f1(predicted, right) == pytest.approx(0.980, abs=5e-4)


def test_a_model_is_fitted_in_one_thread_whatever_the_process_has():
    class Model:
        def fit(self, *data):
            self.data = data
            self.threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
            return self

    before = threadpool_info()
    model = fit_in_one_thread(Model(), 1, 2)
    assert (model.data, model.threads) == ((1, 2), {1})
    assert threadpool_info() == before


@pytest.mark.parametrize("folder", [server, simulations])
def test_whatever_is_trained_by_scikit_learn_is_fitted_so(folder):
    for path in Path(folder.__file__).parent.rglob("*.py"):
        source = path.read_text("utf-8")
        if "import LogisticRegression" in source and "laboratory" not in path.parts:
            assert "fit_in_one_thread(" in source, path
            assert path.name == "accuracy.py" or ".fit(" not in source, path
