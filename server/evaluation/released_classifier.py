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
from common.errors import CaucusError
from server.domain import Candidate
from server.evaluation import training_choice
from server.evaluation.figures import Group, Measured, classification, difference, missing, scores
from server.evaluation.small_model import linear_classifier
from server.metrics.linear import LinearClassifier, by_label

_DEFINITION = (
    "The classifier that the run's released numbers are, without any text: linear over the encoder's vectors "
    "(classifier.json). Intervals over the test texts: of accuracy exact, of macro_f1 by a jackknife. gap: its "
    "accuracy minus that of logistic regression over the same vectors (L2, C = 10) that has learned from the texts, "
    "with its " + training_choice.DEFINITION + "."
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
        for text, place, row in zip(texts, matrix.argmax(axis=1), by_label(labels, matrix), strict=True)
    ]


def measured_with(
    measured: Measured, classifier: LinearClassifier | None, transfer: Sequence[Candidate]
) -> dict[str, Group]:
    """Return groups for `metrics.json` on the classifier, and on a small model that is also trained on public texts."""
    groups: dict[str, Group] = {}
    if not measured.test:
        return groups
    if classifier:
        answers, labels = classifier.predict(measured.test_vectors), [record.label for record in measured.test]
        groups["released_classifier"] = {
            "definition": _DEFINITION,
            **scores([answers], labels),
        } | _gap(measured, answers, np.array(labels))
    if transfer and measured.candidates:
        texts = [*measured.candidates, *transfer]
        groups["utility_with_transfer"] = classification(measured, texts, measured.evaluation)
    return groups


def _gap(measured: Measured, answers: Sequence[str], labels: NDArray[np.str_]) -> Group:
    """Return the difference in accuracy between `answers` and a linear classifier of the synthetic texts' vectors."""
    candidates = measured.candidates
    if not candidates or len((student := linear_classifier(measured.vectors, candidates)).labels) < 2:
        return {}

    def hits(chosen: list[int]) -> NDArray[np.float64]:
        part = linear_classifier(measured.vectors[chosen], [candidates[at] for at in chosen])
        return np.asarray(np.array(part.predict(measured.test_vectors)) == labels, dtype=np.float64)

    learned, generator = student.predict(measured.test_vectors), rng.experiment(measured.experiment_seed, "gap")
    try:
        others = [training_choice.variance([text.label for text in candidates], hits, generator)]
    except CaucusError as error:
        return missing(("gap",), error, rows=len(labels))
    before, after = ((np.array(of) == labels).astype(float) for of in (learned, answers))
    lost = difference(before, after, others)
    return {"gap": lost, "learned_from": len(candidates)}
