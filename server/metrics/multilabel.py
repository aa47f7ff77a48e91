"""Classifiers for texts with several labels, one per label, and measures of how often two labels occur together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.models.encoder import TextEncoder
from server.metrics.accuracy import classifier_vectors, logistic_regression

DEFINITION = (
    "One logistic regression (L2, C = 10) for each label against all texts without it, on TF-IDF of words and word "
    "pairs or on the encoder's vectors (evaluation.model); a text gets each label of probability above 0.5. micro_f1: "
    "F1 of all pairs of a text and a label together; macro_f1: mean F1 over the labels of the test texts."
)

Marks = NDArray[np.bool_]
"""Whether each text has each label, (texts, C)."""
LabelSet = tuple[str, ...]


def marks(sets: Sequence[LabelSet], labels: Sequence[str]) -> Marks:
    """Return whether each text has each of these labels, (texts, C)."""
    return np.array([[label in mine for label in labels] for mine in sets], dtype=np.bool_).reshape(-1, len(labels))


def predict(
    train: Sequence[str],
    known: Marks,
    test: Sequence[str],
    *,
    weights: Sequence[float] | None = None,
    encoder: TextEncoder | None = None,
) -> Marks:
    """Predict the (test, C) labels of the test texts with the classifiers that `DEFINITION` describes.

    A label that all training texts have is predicted for all test texts; a label that no training text has is predicted
    for no test text.

    Args:
        train: Training texts, at least one.
        known: Whether each training text has each label, (train, C).
        test: Test texts, at least one.
        weights: Weight of each training text; None weights all texts equally.
        encoder: Encoder whose vectors replace TF-IDF.

    Raises:
        DataError: A set is empty, or no training text has a word.
    """
    if not len(train) or not len(test):
        raise DataError("texts of the classifier", expected="at least one to train on and one to test", got="none")
    embedded = classifier_vectors(train, test, encoder)
    if embedded is None:
        raise DataError("training texts", expected="words", got="none")
    of_train, of_test = embedded
    answers = np.zeros((len(test), known.shape[1]), dtype=np.bool_)
    for label, mine in enumerate(known.T):
        if mine.all() or not mine.any():
            answers[:, label] = mine.all()
            continue
        model = logistic_regression(of_train, mine.astype(str).tolist(), weights or [1.0] * len(train))
        answers[:, label] = model.predict(of_test) == "True"
    return answers


def micro_f1(predicted: Marks, right: Marks) -> float:
    """Return F1 over all pairs of a text and a label, 0 to 1; 0 if no label is predicted or true."""
    return _f1((predicted & right).sum(), predicted.sum() + right.sum())


def macro_f1(predicted: Marks, right: Marks) -> float:
    """Return the mean F1 over the labels that occur among the true labels, 0 to 1."""
    both, either = (predicted & right).sum(axis=0), predicted.sum(axis=0) + right.sum(axis=0)
    return float(np.mean([_f1(both[at], either[at]) for at in np.flatnonzero(right.any(axis=0))]))


def best_constant(right: Marks) -> float:
    """Return the highest micro-F1 of a constant prediction, which consists of the most frequent labels."""
    order = np.argsort(-right.sum(axis=0), kind="stable")
    answers = [np.isin(np.arange(right.shape[1]), order[:size]) for size in range(1, len(order) + 1)]
    return max(micro_f1(np.broadcast_to(answer, right.shape), right) for answer in answers)


def pair_distance(sets: Iterable[LabelSet], others: Iterable[LabelSet]) -> float:
    """Return the total variation distance, 0 to 1, between the two distributions of pairs of labels within a text.

    Raises:
        DataError: In one of the collections, no text has two labels.
    """
    ours, theirs = _pairs(sets), _pairs(others)
    return sum(abs(ours.get(pair, 0.0) - theirs.get(pair, 0.0)) for pair in {*ours, *theirs}) / 2


def distance_of_independent(sets: Sequence[LabelSet]) -> float:
    """Return the `pair_distance` between these sets and independent labels with the same frequencies.

    Raises:
        DataError: No text has two labels.
    """
    frequency = Counter(label for mine in sets for label in mine)
    products = {pair: frequency[pair[0]] * frequency[pair[1]] for pair in combinations(sorted(frequency), 2)}
    total, counted = sum(products.values()), _pairs(sets)
    return sum(abs(product / total - counted.get(pair, 0.0)) for pair, product in products.items()) / 2


def _pairs(sets: Iterable[LabelSet]) -> dict[LabelSet, float]:
    counts = Counter(pair for mine in sets for pair in combinations(sorted(mine), 2))
    if not counts:
        raise DataError("pairs of labels", expected="texts with two labels on either side", got="none")
    total = sum(counts.values())
    return {pair: count / total for pair, count in counts.items()}


def _f1(both: int, either: int) -> float:
    return float(2 * both / either) if either else 0.0
