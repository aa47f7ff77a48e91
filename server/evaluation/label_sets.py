"""What classifiers learn from texts with several labels, and how well pairs of labels are preserved (`metrics.json`).

As for texts with one label (`zero_shot.py`), the same classifiers are trained on the synthetic texts, on texts that the
same models wrote before any answer and, in a simulation, on the private records; all classifiers are tested on the same
held-out texts.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.domain import Record
from common.errors import CaucusError, ConfigError
from server.documents.metrics import Figure, Group
from server.domain import Candidate, label_set
from server.evaluation.figures import Measured, figure, figure_over_texts, missing, reason_for
from server.evaluation.small_model import weights_of
from server.metrics import intervals, multilabel
from server.metrics.intervals import Variance
from server.metrics.multilabel import Marks

NAME, REAL = "label_sets", "label_sets_real"
"""Names of the groups; only a simulation has the second (`simulations/private_evaluation/compare.py`)."""

_DEFINITION = (
    f"{multilabel.DEFINITION} zero_shot: trained on {{texts}} texts that the language models wrote before any answer; "
    "as_many: on as many of the synthetic texts; difference: the latter's micro_f1 minus the former's, with its "
    f"{intervals.OVER_CHOICE}. constant: the best answer that is the same for all texts. All other intervals of 95% "
    "over the test texts alone (jackknife). pair_distance: total variation between the shares that each two labels "
    "have among all pairs of labels of a text, of the synthetic and the test texts; independent: of labels that are "
    "independent, with the test texts' frequencies."
)
_TEXTS = Sequence[Candidate] | Sequence[Record]


def compare_label_sets(measured: Measured, zero_shot: Sequence[Candidate]) -> dict[str, Group]:
    """Return the group for `metrics.json`; empty unless texts have several labels and there are held-out texts."""
    if not measured.several or not measured.test or not measured.candidates:
        return {}
    texts, rows = min(len(zero_shot), len(measured.candidates)), len(measured.test)
    sets = [record.labels for record in measured.test]
    ours = [candidate.labels for candidate in measured.candidates]
    group: Group = {"definition": _DEFINITION.format(texts=texts), "trained_on": len(measured.candidates)}
    group |= taught(measured, measured.candidates)
    right = multilabel.marks(sets, _labels(measured))
    group["constant"] = {"micro_f1": figure(partial(multilabel.best_constant, right), rows=rows)}
    if zero_shot:
        group |= _gained(measured, zero_shot, texts, right)
    group["pair_distance"] = figure(partial(multilabel.pair_distance, ours, sets), rows=len(ours))
    group["independent"] = figure(partial(multilabel.distance_of_independent, sets), rows=rows)
    return {NAME: group}


def taught(measured: Measured, train: _TEXTS) -> dict[str, Figure]:
    """Measure micro and macro F1 on the test texts after training on these texts, with intervals."""
    right = multilabel.marks([record.labels for record in measured.test], _labels(measured))
    try:
        return _scores(_answers(measured, train), right)
    except CaucusError as error:
        return missing(("micro_f1", "macro_f1"), error, rows=len(right))


def _gained(measured: Measured, zero_shot: Sequence[Candidate], texts: int, right: Marks) -> Group:
    draw = partial(rng.experiment, measured.experiment_seed, "label sets, as many")
    parts = {
        name: [members[at] for at in draw(name).permutation(len(members))[:texts]]
        for name, members in (("zero_shot", zero_shot), ("as_many", measured.candidates))
    }
    try:
        before, after = (_answers(measured, part) for part in parts.values())
    except CaucusError as error:
        return missing(("zero_shot", "difference"), error, rows=len(right))

    def difference(at: NDArray[np.intp]) -> float:
        return multilabel.micro_f1(after[at], right[at]) - multilabel.micro_f1(before[at], right[at])

    try:
        given = zip(parts.values(), (before, after), strict=True)
        others = [_variance(measured, part, answers, right) for part, answers in given]
        gain = figure_over_texts(difference, rows=len(right), within=(-1.0, 1.0), others=others)
    except CaucusError as error:
        gain = reason_for("difference", error, rows=len(right))
    return {
        "zero_shot": {"trained_on": texts} | _scores(before, right),
        "as_many": _scores(after, right),
        "difference": gain,
    }


def _variance(measured: Measured, part: Sequence[Candidate], whole: Marks, right: Marks) -> Variance:
    """Return the variance of micro F1 that is due to the choice of the training texts `part`, which give `whole`.

    Micro F1 is 2 b / e: b marks are both given and right, and e are given or right, those that are both twice. Its
    change by a test text is (2 b - F1 e) / mean e, to first order.
    """
    f1, mean = multilabel.micro_f1(whole, right), (whole.sum() + right.sum()) / len(right)

    def changes(chosen: list[int]) -> NDArray[np.float64]:
        given = _answers(measured, [part[at] for at in chosen])
        both, either = (given & right).sum(axis=1), given.sum(axis=1) + right.sum(axis=1)
        return np.asarray((2 * both - f1 * either) / max(mean, 1e-9), dtype=np.float64)

    generator = rng.experiment(measured.experiment_seed, "label sets, choice of training texts")
    return intervals.choice_variance([label_set(text.labels) for text in part], changes, generator)


def _answers(measured: Measured, train: _TEXTS) -> Marks:
    evaluation = measured.evaluation
    if not evaluation.deterministic:
        do = "Set evaluation.model=tfidf or encoder"
        raise ConfigError("evaluation.model", expected="one that learns several labels", got=evaluation.model, do=do)
    return multilabel.predict(
        [text.text for text in train],
        multilabel.marks([text.labels for text in train], _labels(measured)),
        [record.text for record in measured.test],
        weights=weights_of(train),
        encoder=(evaluation.embedding or measured.encoder) if evaluation.model == "encoder" else None,
    )


def _scores(answers: Marks, right: Marks) -> dict[str, Figure]:
    def of(score: Callable[[Marks, Marks], float]) -> Figure:
        return figure_over_texts(lambda at: score(answers[at], right[at]), rows=len(right))

    return {"micro_f1": of(multilabel.micro_f1), "macro_f1": of(multilabel.macro_f1)}


def _labels(measured: Measured) -> list[str]:
    """Return the labels of all texts, in a fixed order."""
    ours = {label for candidate in measured.candidates for label in candidate.labels}
    return sorted(ours | {label for record in measured.test for label in record.labels})
