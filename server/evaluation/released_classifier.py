"""The classifier that a run's released numbers define, and its probabilities for public texts.

The classifier and the probabilities are functions of released numbers and of public texts, so they cost no privacy. The
public texts are a *transfer set*: they are not synthetic data and are stored in a separate file, but a student model
learns from them which words belong to a label, including words that no language model wrote (Hinton et al. 2015,
section 3).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from common import rng
from server.documents.metrics import Group
from server.domain import Candidate
from server.evaluation.figures import Measured, accuracy_scores, classification
from server.metrics.linear import LinearClassifier, probabilities_by_label

_DEFINITION = (
    "The classifier that the run's released numbers are, without any text: linear over the encoder's vectors "
    "(classifier.json). Intervals over the test texts: of accuracy exact, of macro_f1 by a jackknife."
)


def transfer_set(
    public: Sequence[str],
    probabilities: Callable[[Sequence[str]], NDArray[np.float64]],
    labels: Sequence[str],
    *,
    most: int,
    experiment_seed: int,
) -> list[Candidate]:
    """Draw at most `most` different public texts, and return them with label probabilities and likeliest labels."""
    texts = list(dict.fromkeys(public))
    order = rng.experiment(experiment_seed, "transfer set").permutation(len(texts))[:most]
    texts = [texts[place] for place in sorted(order.tolist())]
    if not texts:
        return []
    matrix = probabilities(texts)
    return [
        Candidate(text=text, label=labels[place], model="public", round=0, probabilities=row)
        for text, place, row in zip(texts, matrix.argmax(axis=1), probabilities_by_label(labels, matrix), strict=True)
    ]


def measured_with(measured: Measured, classifier: LinearClassifier | None, transfer: Sequence[Candidate]) -> Group:
    """Return groups for `metrics.json` on the classifier, and on a small model that is also trained on public texts."""
    groups: Group = {}
    if not measured.test:
        return groups
    if classifier:
        answers, labels = classifier.predict(measured.test_vectors), [record.label for record in measured.test]
        groups["released_classifier"] = {"definition": _DEFINITION, **accuracy_scores([answers], labels)}
    if transfer and measured.candidates:
        texts = [*measured.candidates, *transfer]
        groups["utility_with_transfer"] = classification(measured, texts, measured.evaluation)
    return groups
