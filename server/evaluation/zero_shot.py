"""Comparison with the same models without the hospitals: whether the hospitals' answers improve the texts.

The texts that a run's language models write in its first round, before any answer, show what they write without the
hospitals: these texts depend only on the public task (`server/tools.py` keeps them). The small model is trained on
these texts and, separately, on the synthetic texts, and tested on the same held-out texts. Since a model learns more
from more texts, both trainings use the same number of texts: the larger set is replaced by a random subset in which
each label keeps its proportion.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import CaucusError
from server.documents.metrics import Figure, Group
from server.domain import Candidate
from server.evaluation.figures import Measured, difference, figure, missing, predicted_by, reason_for
from server.metrics import accuracy, intervals
from server.vector_cache import RememberingEncoder

NAME = "zero_shot"

_DRAWS = 5
"""Number of random subsets of the larger set over which figures are averaged, for a small model that trains in a
second."""
_DEFINITION = (
    "The same models without the hospitals: the small model trained on {texts} texts that the language models wrote "
    "before any answer, with the labels as requested, of {written}; as_many: on as many of the {synthetic} synthetic "
    "texts. A larger set gives the mean over random choices ({trainings}). difference: accuracy of as_many minus that "
    "of the former, with its {interval}. Intervals of the accuracies are over the test texts alone (Clopper and "
    "Pearson)."
)
_TEST_TEXTS = (
    "95% interval over the test texts{trainings}, paired (Bonett and Price 2012), not over the choice of the training "
    "texts: other training texts, and another run of the language models, may differ by more"
)


def compare_with_zero_shot(measured: Measured, zero_shot: Sequence[Candidate]) -> dict[str, Group]:
    """Return the comparison for `metrics.json`; empty without labels or without texts of all three kinds."""
    sets = {"zero_shot": zero_shot, "as_many": measured.candidates}
    if not measured.one_label or not measured.test or not all(sets.values()):
        return {}
    texts = min(map(len, sets.values()))
    if measured.evaluation.model == "encoder":  # each text is in several trainings, and is embedded once
        encoder: Any = RememberingEncoder(measured.evaluation.embedding or measured.encoder)  # type: ignore[arg-type]
        measured = replace(measured, encoder=encoder, evaluation=replace(measured.evaluation, embedding=None))
    definition = _DEFINITION.format(
        texts=texts,
        written=len(zero_shot),
        synthetic=len(measured.candidates),
        trainings=_trainings(measured),
        interval=_interval(measured),
    )
    about = {"definition": definition, "trained_on": texts}
    labels, rows = np.array([record.label for record in measured.test]), len(measured.test)
    try:
        answers = {name: _answers(measured, members, texts) for name, members in sets.items()}
    except (CaucusError, ValueError) as error:
        return {NAME: about | missing(("accuracy", "difference"), error, rows=rows)}
    right = {name: np.array([given == labels for given in of]) for name, of in answers.items()}
    scores = {name: _scores(answers[name], labels) for name in sets}
    try:
        others = [part for name in sets for part in _variances(measured, sets[name], texts, right[name])]
        gain = difference(right["zero_shot"].mean(axis=0), right["as_many"].mean(axis=0), others)
    except (CaucusError, ValueError) as error:
        gain = reason_for("difference", error, rows=rows)
    return {NAME: about | scores["zero_shot"] | {"difference": gain, "as_many": scores["as_many"]}}


def _answers(measured: Measured, members: Sequence[Candidate], texts: int) -> list[NDArray[np.str_]]:
    """Predict the test texts' labels by several small models, each trained on a different draw of `texts` members."""
    evaluation = measured.evaluation
    trainings = 1 if evaluation.deterministic and len(members) == texts else _trainings(measured)
    return [
        np.array(predicted_by(measured, _part(measured, members, texts, number), evaluation, number)[0])
        for number in range(trainings)
    ]


def _trainings(measured: Measured) -> int:
    """Return the number of trainings, each on another random choice of a set's texts."""
    return _DRAWS if measured.evaluation.deterministic else measured.evaluation.seeds


def _variances(
    measured: Measured, members: Sequence[Candidate], texts: int, right: NDArray[np.bool_]
) -> list[intervals.Variance]:
    """Return the variance of a set's accuracy due to the choice of its texts or, for a randomised model, to training.

    The mean over K random subsets of n of N texts varies less than that over one subset, by the factor
    n / N (1 - 1 / K) + 1 / K at most (Hoeffding 1948, Blom 1976).

    Args:
        measured: The test texts and the settings.
        members: The set, of N texts.
        texts: Number n of texts in each training.
        right: (K, test texts) whether the model of each training was right.
    """
    trainings, evaluation = len(right), measured.evaluation
    if not evaluation.deterministic:
        return [(float(right.mean(axis=1).var(ddof=1)) / trainings, trainings - 1)] if trainings > 1 else []
    part = _part(measured, members, texts, 0)

    def hits(chosen: list[int]) -> NDArray[np.float64]:
        predicted, _ = predicted_by(measured, [part[at] for at in chosen], evaluation, 0)
        correct = np.array(predicted) == [record.label for record in measured.test]
        return np.asarray(correct, dtype=np.float64)

    generator = rng.experiment(measured.experiment_seed, "choice of training texts")
    variance, freedom = intervals.choice_variance([text.label for text in part], hits, generator)
    return [(variance * (texts / len(members) * (1 - 1 / trainings) + 1 / trainings), freedom)]


def _interval(measured: Measured) -> str:
    """Return the definition of the difference's interval."""
    if measured.evaluation.deterministic:
        return intervals.OVER_CHOICE
    seeds = measured.evaluation.seeds
    return _TEST_TEXTS.format(trainings=f" and {seeds} trainings (Student's t)" if seeds > 1 else " alone")


def _part(measured: Measured, members: Sequence[Candidate], count: int, number: int) -> list[Candidate]:
    """Draw `count` of the members at random; each label keeps its proportion, rounded up or down."""
    if count == len(members):
        return list(members)
    generator = rng.experiment(measured.experiment_seed, "zero-shot comparison", number)
    order = sorted(generator.permutation(len(members)).tolist(), key=lambda at: members[at].label)
    # One place at random in the first interval, and all others at equal distances from it: systematic sampling.
    places = (np.arange(count) + generator.random()) * len(members) / count
    return [members[order[min(int(place), len(order) - 1)]] for place in places]


def _scores(answers: Sequence[NDArray[np.str_]], labels: NDArray[np.str_]) -> Group:
    right = float(np.mean([given == labels for given in answers], axis=0).sum())
    # A mean over trainings varies less than the share of one training, so that its interval may be rounded.
    interval = intervals.share_interval(round(right), len(labels))
    return {
        "accuracy": Figure(value=right / len(labels), interval=interval, rows=len(labels)),
        "macro_f1": figure(
            lambda: float(np.mean([accuracy.macro_f1(given, labels) for given in answers])), rows=len(labels)
        ),
    }
