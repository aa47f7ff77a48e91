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
from server.metrics.accuracy import (
    SoftLabels,
    accuracy,
    fit_in_one_thread,
    logistic_regression,
    macro_f1,
    predict,
    sizes,
)
from server.metrics.linear import LinearClassifier

TRAIN = (["wet cough fever", "fever and cough", "card lost", "my card is lost"], ["lung", "lung", "bank", "bank"])


def test_predict_of_separable_texts_tells_them_apart_by_words_or_by_an_encoder():
    assert predict(*TRAIN, ["cough", "lost card", "fever"]) == (["lung", "bank", "lung"], None)
    encoder = Encoder.hashed_ngrams(dimensions=64, bits=12)
    assert predict(*TRAIN, ["coughing, feverish", "lost cards"], encoder=encoder) == (["lung", "bank"], None)


@pytest.mark.parametrize(
    ("train", "label", "why"),
    [((["a cough"], ["lung"]), "lung", "one label"), ((["!", "?", "-"], ["b", "a", "b"]), "b", "has a word")],
)
def test_predict_with_nothing_to_fit_gives_one_label_and_says_why(train, label, why):
    predicted, note = predict(*train, ["fever", "x"])
    assert predicted == [label] * 2
    assert why in note


def test_predict_counts_each_text_by_its_weight():
    for weights, label in (([2.0, 1.0], "lung"), ([1.0, 2.0], "bank")):
        assert predict(["same words"] * 2, ["lung", "bank"], ["same words"], train_weights=weights)[0] == [label]
    assert predict(*TRAIN, ["cough"], train_weights=[1.0] * 4) == predict(*TRAIN, ["cough"])


@pytest.mark.parametrize("sets", [([], [], ["x"]), (["x"], ["a"], [])])
def test_predict_of_an_empty_set_is_refused(sets):
    with pytest.raises(DataError):
        predict(*sets)


def test_scores_are_those_of_a_library():
    rng = np.random.default_rng(0)
    predicted, true = (
        rng.choice(["a", "b", "lung", "other"], 60, p=p).tolist() for p in ([0.2, 0, 0.4, 0.4], [0.5, 0.3, 0.2, 0])
    )
    assert accuracy(predicted, true) == pytest.approx(accuracy_score(true, predicted))
    expected = f1_score(true, predicted, labels=sorted(set(true)), average="macro", zero_division=0.0)
    assert macro_f1(predicted, true) == pytest.approx(expected)


def test_banking10_has_its_reference_figures():
    data = Path(os.environ.get("CAUCUS_DATA", Path(__file__).parents[3] / "../shared/data")) / "banking10"
    if not data.is_dir():
        pytest.skip("no banking10: put it beside the project or set CAUCUS_DATA to the folder that holds it")
    train, test = (read_records(data / f"{name}.csv") for name in ("train", "test"))
    assert (len(train), len(test)) == (1403, 400)
    texts, labels = [record.text for record in train], [record.label for record in train]
    predicted, right = predict(texts, labels, [record.text for record in test])[0], [record.label for record in test]
    assert (accuracy(predicted, right), macro_f1(predicted, right)) == pytest.approx((0.980, 0.980), abs=5e-4)


def test_fit_in_one_thread_leaves_the_process_its_threads():
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
def test_models_of_scikit_learn_are_fitted_in_one_thread_everywhere(folder):
    for path in Path(folder.__file__).parent.rglob("*.py"):
        source = path.read_text("utf-8")
        if "import LogisticRegression" in source and "laboratory" not in path.parts:
            assert "fit_in_one_thread(" in source, path
            assert path.name == "accuracy.py" or ".fit(" not in source, path


@pytest.mark.parametrize("labels", [2, 3])
def test_linear_classifier_is_the_regression_that_it_was_made_of(labels):
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    names = [f"label {np.argmax(row[:labels])}" for row in vectors]
    model = logistic_regression(vectors, names, [1.0] * 60)
    trained = LinearClassifier.of_regression(model)
    assert trained.labels == tuple(sorted(set(names)))
    assert trained.predict(vectors) == model.predict(vectors).tolist()
    assert np.allclose(trained.probabilities(vectors), model.predict_proba(vectors), atol=1e-5)


def test_certain_probabilities_teach_what_labels_do_and_negligible_ones_nothing():
    vectors = np.random.default_rng(0).normal(size=(60, 5))
    names = ["a" if row[0] > 0 else "b" for row in vectors]
    certain = SoftLabels(("a", "b"), tuple((1.0, 0.0) if name == "a" else (0.0, 1.0) for name in names))
    weights = [1.0 + number % 3 for number in range(60)]
    models = [logistic_regression(vectors, labels, weights) for labels in (names, certain)]
    assert np.allclose(models[0].coef_, models[1].coef_)
    soft = SoftLabels(("a", "b", "c"), ((0.6, 0.395, 0.005), (1.0, 0.0, 0.0)))
    assert sizes(soft) == pytest.approx({"a": 0.6 / 0.995 + 1, "b": 0.395 / 0.995})
    assert sizes(["b", "a", "b"]) == {"b": 2, "a": 1}
