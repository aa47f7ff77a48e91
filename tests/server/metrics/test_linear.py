import numpy as np
import pytest

from server.metrics.accuracy import SoftLabels, logistic_regression, sizes
from server.metrics.linear import LinearClassifier


@pytest.mark.parametrize("labels", [2, 3])
def test_it_is_the_regression_that_it_was_made_of(labels):
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    names = [f"label {np.argmax(row[:labels])}" for row in vectors]
    model = logistic_regression(vectors, names, [1.0] * 60)
    trained = LinearClassifier.of_regression(model)
    assert trained.labels == tuple(sorted(set(names)))
    assert trained.predict(vectors) == model.predict(vectors).tolist()
    assert np.allclose(trained.probabilities(vectors), model.predict_proba(vectors), atol=1e-5)


def test_certain_probabilities_teach_what_labels_do():
    vectors = np.random.default_rng(0).normal(size=(60, 5))
    names = ["a" if row[0] > 0 else "b" for row in vectors]
    certain = SoftLabels(("a", "b"), tuple((1.0, 0.0) if name == "a" else (0.0, 1.0) for name in names))
    weights = [1.0 + number % 3 for number in range(60)]
    models = [logistic_regression(vectors, labels, weights) for labels in (names, certain)]
    assert np.allclose(models[0].coef_, models[1].coef_)


def test_negligible_probabilities_are_no_texts_of_a_label():
    assert sizes(SoftLabels(("a", "b", "c"), ((0.6, 0.395, 0.005), (1.0, 0.0, 0.0)))) == pytest.approx(
        {"a": 0.6 / 0.995 + 1, "b": 0.395 / 0.995}
    )
    assert sizes(["b", "a", "b"]) == {"b": 2, "a": 1}
