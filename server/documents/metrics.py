"""`metrics.json`: figures in groups, some of which have typed fields while all others are free (`figure_groups.py`).

Users may add groups (`evaluation.own`), so the content of the file is kept unchanged, and only the parts that this
program reads have types.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeGuard, final

from server.documents.codec import ABSENT, OTHERS, from_json
from server.documents.figure_groups import Figure, FigureGroup, Interval, finite, groups_of, simulation_only
from server.documents.files import Document

CLASSIFIERS = (
    *("synthetic", "zero_shot", "majority_class", "real_private"),
    *("utility", "utility_hard_labels", "utility_with_transfer", "utility_real", "utility_encoder"),
    *("released_classifier", "federated"),
)
"""Groups that contain the accuracy of a classifier."""


@dataclass(frozen=True, slots=True)
class Estimate(Document):
    """A value from 0 to 1 with its 95 % interval; both are None if it was not measured."""

    value: float | None = None
    interval: Interval | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier(Document):
    """Quality of a classifier that was trained on one set of texts and tested on another.

    Attributes:
        accuracy: The classifier's accuracy.
        macro_f1: The classifier's macro-F1.
        records: Number of texts in its training set.
        trained_on: The number of texts in the training set, in groups that do not use `records`, such as `utility`.
        confusion: Number of test texts for each true label and each predicted label, without zeros; empty in earlier
            versions.
        rows: Number of texts or records on which the accuracy was measured.
        test: Name of the file of test texts, if the classifier was evaluated later.
        definition: The classifier's definition.
        note: A remark on the classifier's training.
        reason: Why there is no accuracy.
        simulation_only: Whether it was trained on private records.
    """

    accuracy: Estimate = field(default_factory=Estimate)
    macro_f1: Estimate = field(default_factory=Estimate)
    records: int | None = None
    trained_on: int | None = None
    confusion: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rows: int | None = None
    test: str | None = None
    definition: str | None = None
    note: str | None = None
    reason: str | None = None
    simulation_only: bool = False

    @property
    def recalled(self) -> dict[str, tuple[int, int]]:
        """For each label of the test texts, the number that were predicted with that label, and the number of all."""
        return {label: (row.get(label, 0), sum(row.values())) for label, row in self.confusion.items()}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Document):
    """Difference between two figures on the same test texts, such as the gain in accuracy over the models alone.

    Attributes:
        value: The difference; above 0 is an improvement.
        interval: The difference's 95 % interval.
        texts: Number of texts on each side.
    """

    value: float
    interval: Interval
    texts: int

    @property
    def clear(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.interval[0] > 0

    @property
    def loss(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.interval[1] < 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness(Document):
    """Distances (FID) of equally large sets of texts from held-out texts, as the quality measure without labels.

    Attributes:
        synthetic: Distance of the synthetic texts; the value is None if it could not be computed.
        without: Distance of the texts that the same models wrote without the hospitals.
        real: Distance of other held-out texts, with which the sets are not compared.
        gain: `without` minus `synthetic`; None if there is no interval.
        texts: Number of texts in each set.
    """

    synthetic: Estimate
    without: Estimate
    real: Estimate
    gain: Gain | None
    texts: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSets(Document):
    """Micro F1 on held-out texts: the quality measure for a task in which a text may have several labels.

    Attributes:
        synthetic: Micro F1 of classifiers trained on the synthetic texts.
        trained_on: Number of synthetic texts.
        without: Micro F1 of classifiers trained on texts that the same models wrote without the hospitals.
        real: Micro F1 of classifiers trained on all private records; only in a simulation.
        constant_answer: Micro F1 of the best constant answer, the same for all texts.
        gain: `synthetic` minus `without` for equal numbers of texts; None if there is no interval.
        equally_many: Micro F1 of classifiers trained on the same number of synthetic texts as `without`.
        pairs_apart: Distance between the label pairs of the synthetic texts and those of the held-out texts.
        independent_apart: The value of `pairs_apart` if labels were independent.
    """

    synthetic: Estimate
    trained_on: int | None
    without: Estimate
    real: Estimate
    constant_answer: Estimate
    gain: Gain | None
    equally_many: Estimate
    pairs_apart: float | None
    independent_apart: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelShares(Document):
    """Labels of the private records, in a simulation.

    Attributes:
        count: Number of records, each counted once per label; None in earlier versions.
        records: Proportions of the labels, keyed by label.
    """

    count: int | None = field(default=None, metadata=ABSENT)
    records: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Metrics(Document):
    """The `metrics.json` document.

    Attributes:
        content: The unchanged content of the file.
    """

    FILE: ClassVar[str] = "metrics.json"

    content: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the document back, as `Document.from_json` does."""
        metrics = from_json(cls, value)
        _ = metrics.groups, metrics.label_shares, metrics.nearest_texts  # are in this format
        return metrics

    def adding(self, more: Mapping[str, Any]) -> "Metrics":
        """Return a copy with these figures and groups added; they replace existing ones of the same names."""
        return Metrics({**self.content, **more})

    @property
    def groups(self) -> tuple[FigureGroup, ...]:
        """All groups that have figures."""
        return groups_of(self.content)

    @property
    def named(self) -> dict[str, Figure]:
        """All figures, keyed by "group's title: figure's name"."""
        return {f"{group.title}: {figure.name}": figure for group in self.groups for figure in group.figures}

    @property
    def finite(self) -> dict[str, float]:
        """The finite values among `named`."""
        values = {name: figure.value for name, figure in self.named.items()}
        return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}

    @property
    def definition(self) -> str | None:
        """Definition of the small model, the classifier with which the texts are evaluated."""
        return _text(self.content.get("definition"))

    @property
    def test_records(self) -> int | None:
        """Number of held-out texts."""
        return _whole(self.content.get("test_records"))

    @property
    def test(self) -> str | None:
        """Name of the file of test texts; None if the run's own test texts were used."""
        return _text(self.content.get("test"))

    @property
    def nearest_texts(self) -> tuple[tuple[int, int], ...]:
        """Line (from 0) of each text that is nearest to many held-out texts, and their number, most first."""
        pairs = self.content.get("nearest_texts")
        whole = pairs if isinstance(pairs, list) else []
        return tuple((line, votes) for line, votes in whole if _is_count(line) and _is_count(votes))

    @property
    def synthetic(self) -> Classifier | None:
        """Metrics for the small model, trained once on the synthetic texts."""
        return self._classifier("synthetic")

    @property
    def zero_shot(self) -> Classifier | None:
        """Metrics for the small model, trained on texts that the same language models wrote without the hospitals."""
        return self._classifier("zero_shot")

    @property
    def as_many_as_zero_shot(self) -> Classifier | None:
        """Metrics for the small model, trained on the same number of synthetic texts as `zero_shot`."""
        return _classifier(self._group("zero_shot").get("as_many"))

    @property
    def gain(self) -> Gain | None:
        """The difference between `as_many_as_zero_shot` and `zero_shot`; None if it was not measured."""
        group = self._group("zero_shot")
        return _gain(group.get("difference"), _whole(group.get("trained_on")))

    @property
    def nearness(self) -> Nearness | None:
        """Distances from held-out texts, in a task without labels."""
        if not (group := self._group("nearness")):
            return None
        texts = _whole(group.get("texts"))
        return Nearness(
            synthetic=_estimate(group.get("fid")),
            without=_estimate(group.get("zero_shot")),
            real=_estimate(group.get("real")),
            gain=_gain(group.get("difference"), texts),
            texts=texts,
        )

    @property
    def label_sets(self) -> LabelSets | None:
        """Micro F1, in place of accuracies, in a task in which texts may have several labels."""
        if not (group := self._group("label_sets")):
            return None
        without, constant, as_many = (_mapping(group.get(name)) for name in ("zero_shot", "constant", "as_many"))
        return LabelSets(
            synthetic=_estimate(group.get("micro_f1")),
            trained_on=_whole(group.get("trained_on")),
            without=_estimate(without.get("micro_f1")),
            real=_estimate(self._group("label_sets_real").get("micro_f1")),
            constant_answer=_estimate(constant.get("micro_f1")),
            gain=_gain(group.get("difference"), _whole(without.get("trained_on"))),
            equally_many=_estimate(as_many.get("micro_f1")),
            pairs_apart=_estimate(group.get("pair_distance")).value,
            independent_apart=_estimate(group.get("independent")).value,
        )

    @property
    def utility(self) -> Classifier | None:
        """Metrics for the small model, trained on the synthetic texts: means over several trainings, with intervals."""
        return self._on_these_texts("utility")

    @property
    def utility_hard_labels(self) -> Classifier | None:
        """The same as `utility`, but trained on the most probable labels; None if the texts have no probabilities."""
        return self._on_these_texts("utility_hard_labels")

    @property
    def utility_with_transfer(self) -> Classifier | None:
        """Metrics for the small model, trained on the synthetic texts and the public texts of `transfer.jsonl`."""
        return self._on_these_texts("utility_with_transfer")

    @property
    def generation_gap(self) -> Gain | None:
        """Accuracy of `released_classifier` minus that of a linear classifier trained on the synthetic texts."""
        group = self._group("released_classifier")
        if self.released_classifier is None:
            return None
        return _gain(group.get("gap"), _whole(group.get("learned_from")))

    @property
    def released_classifier(self) -> Classifier | None:
        """Metrics for the classifier defined by the released numbers alone, without any text."""
        return self._on_these_texts("released_classifier")

    @property
    def utility_real(self) -> Classifier | None:
        """Metrics for the small model trained on no more private records than synthetic texts; only in a simulation."""
        return self._classifier("utility_real")

    @property
    def utility_encoder(self) -> Classifier | None:
        """Metrics for a second classifier, trained on the encoder's vectors of the synthetic texts."""
        return self._on_these_texts("utility_encoder")

    @property
    def real_private(self) -> Classifier | None:
        """Metrics for the small model, trained once on all private records; only in a simulation."""
        return self._classifier("real_private")

    @property
    def majority_class(self) -> Classifier | None:
        """Metrics for a model that always predicts the most frequent label in the test texts."""
        return self._classifier("majority_class")

    @property
    def federated(self) -> Classifier | None:
        """Metrics for a classifier trained on the synthetic texts and tested on parties' records by noised counts."""
        return self._classifier("federated")

    @property
    def disclosed(self) -> str | None:
        """Names of features through which the texts disclose records; empty if there are none, None if not tested."""
        group = self._group("disclosures")
        if not isinstance(disclosing := group.get("found"), Mapping):
            return None
        return _text(group.get("features")) or "a feature" if disclosing.get("value") else ""

    @property
    def label_shares(self) -> LabelShares | None:
        """Proportions of the labels among the private records; only in a simulation."""
        shares = self._group("label_shares")
        return from_json(LabelShares, shares) if shares else None

    def _on_these_texts(self, name: str) -> Classifier | None:
        """Return the classifier of a group; None if it was not tested on the texts used in the last evaluation."""
        classifier = self._classifier(name)
        return classifier if classifier and classifier.test == self.test else None

    def _classifier(self, name: str) -> Classifier | None:
        return _classifier(self.content.get(name))

    def _group(self, name: str) -> Mapping[str, Any]:
        """Return the group of this name; empty if there is none."""
        return _mapping(self.content.get(name))


def _gain(figure: object, texts: int | None) -> Gain | None:
    difference = _estimate(figure)
    if difference.value is None or difference.interval is None or texts is None:
        return None
    return Gain(value=difference.value, interval=difference.interval, texts=texts)


def _mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is a mapping; otherwise an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def _classifier(value: object) -> Classifier | None:
    if not (group := _mapping(value)):
        return None
    accuracy = group.get("accuracy")
    detailed = _mapping(accuracy)
    return Classifier(
        accuracy=_estimate(accuracy),
        macro_f1=_estimate(group.get("macro_f1")),
        records=_whole(group.get("records")),
        trained_on=_whole(group.get("trained_on")),
        confusion=_matrix(group.get("confusion")),
        rows=_whole(detailed.get("rows")),
        test=_text(group.get("test")),
        definition=_text(group.get("definition")),
        note=_text(group.get("note")),
        reason=_text((detailed or group).get("reason")),
        simulation_only=simulation_only(group),
    )


def _estimate(figure: object) -> Estimate:
    """Return a figure as an estimate, with or without an interval; an empty estimate if its value is not a number."""
    detailed = figure if isinstance(figure, Mapping) else {"value": figure}
    if (value := finite(detailed.get("value"))) is None:
        return Estimate()
    ends = detailed.get("interval")
    low, high = map(finite, ends) if isinstance(ends, list | tuple) else (None, None)
    return Estimate(value, None if low is None or high is None else (low, high))


def _matrix(rows: object) -> dict[str, dict[str, int]]:
    """Return a matrix of counts without its empty rows.

    Return an empty matrix if any row contains anything other than positive counts.
    """
    whole = rows if isinstance(rows, Mapping) and all(isinstance(row, Mapping) for row in rows.values()) else {}
    if not all(_is_count(count) and count > 0 for row in whole.values() for count in row.values()):
        return {}
    return {label: dict(row) for label, row in whole.items() if row}


def _whole(value: object) -> int | None:
    return value if _is_count(value) else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
