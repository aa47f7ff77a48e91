"""What a run's released numbers know of any text: their classifier, and its probabilities for public texts.

Both are functions of released numbers and of public texts, and cost no privacy. The public texts are a *transfer set*:
they are not synthetic data, and are in a separate file, but a student learns from them which words belong to a
label, including words that no language model wrote (Hinton et al. 2015, section 3).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from common import rng
from server.domain import Candidate
from server.evaluation.figures import Group, Measured, classification, scored
from server.evaluation.small_model import labels_of
from server.metrics import accuracy, intervals
from server.metrics.accuracy import logistic_regression, sizes
from server.metrics.linear import LinearClassifier

_DIGITS = 6
_DEFINITION = (
    "The classifier that the run's released numbers are, without any text: linear over the encoder's vectors "
    "(classifier.json). gap: its accuracy minus that of logistic regression over the same vectors (L2, C = 10) that "
    "has learned from the texts, paired over the test texts."
)


def transfer_set(
    public: Sequence[str],
    probabilities: Callable[[Sequence[str]], NDArray[np.float64]],
    labels: Sequence[str],
    *,
    most: int,
    experiment_seed: int,
) -> list[Candidate]:
    """At most `most` different public texts, drawn at random, with their most probable labels and the probabilities."""
    texts = list(dict.fromkeys(public))
    order = rng.experiment(experiment_seed, "transfer set").permutation(len(texts))[:most]
    texts = [texts[place] for place in sorted(order.tolist())]
    if not texts:
        return []
    return [
        Candidate(
            text=text,
            label=labels[row.argmax()],
            model="public",
            round=0,
            probabilities=dict(zip(labels, row.round(_DIGITS).tolist(), strict=True)),
        )
        for text, row in zip(texts, probabilities(texts), strict=True)
    ]


def measured_with(
    measured: Measured, classifier: LinearClassifier | None, transfer: Sequence[Candidate]
) -> dict[str, Group]:
    """Groups of `metrics.json`: the classifier itself, and the small model with the public texts added."""
    groups: dict[str, Group] = {}
    if not measured.test:
        return groups
    if classifier:
        labels = [record.label for record in measured.test]
        answers = classifier.predict(measured.test_vectors)
        groups["released_classifier"] = {
            "definition": _DEFINITION,
            "accuracy": scored(accuracy.accuracy, [answers], labels),
            "macro_f1": scored(accuracy.macro_f1, [answers], labels),
        } | _gap(measured, np.array(answers) == np.array(labels), np.array(labels))
    if transfer and measured.candidates:
        texts = [*measured.candidates, *transfer]
        groups["utility_with_transfer"] = classification(measured, texts, measured.evaluation)
    return groups


def _gap(measured: Measured, right: NDArray[np.bool_], labels: NDArray[np.str_]) -> Group:
    """What a linear classifier over the same vectors loses that has learned from the texts."""
    learned = labels_of(measured.candidates)
    if len(sizes(learned)) < 2:
        return {}
    weights = [candidate.weight for candidate in measured.candidates]
    student = logistic_regression(measured.vectors, learned, weights).predict(measured.test_vectors) == labels
    gap = {
        "value": float(right.mean() - student.mean()),
        "interval": intervals.of_paired_shares(student.astype(float), right.astype(float)),
        "rows": len(labels),
    }
    return {"gap": gap, "learned_from": len(measured.candidates)}
