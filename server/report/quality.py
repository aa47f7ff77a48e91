"""How good the texts are, read once from `metrics.json`: the figures of the verdict, and a row for each classifier.

The same small model is trained on one set of texts after another and tested on the same held-out texts. Each row states
the number of training texts, since a classifier learns more from more texts. Micro F1 takes the place of accuracy if a
text may have several labels, and the distance from real texts (FID) takes its place if texts have no labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from server.documents.codec import ABSENT
from server.documents.files import Document
from server.documents.metrics import Figure, Gain, Metrics
from server.metrics.intervals import share_interval

ACCURACY, MICRO_F1, DISTANCE = "accuracy", "micro F1", "distance"
"""What a `Quality` has."""
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
"""How texts compare with guessing, by a 95% interval that is above it, below it, or neither."""
NO_TEST_TEXTS = "that takes test texts (task.test)"
"""Why a complete run with texts has neither an accuracy nor a distance."""
RELEASED = "the released numbers alone, no texts"
"""Name of the classifier that consists of the class sums."""
WITHOUT = "the same models without the hospitals"
"""Name of what a run's language models write before any answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality(Document):
    """Accuracies on held-out texts, 0 to 1, or what takes their place; None if not measured.

    Attributes:
        measure: `ACCURACY`, `MICRO_F1` or `DISTANCE`.
        synthetic: Accuracy of the small model trained on the synthetic texts.
        interval: 95% interval of `synthetic`.
        trained_on: Number of the synthetic texts.
        zero_shot: Accuracy of the same model trained on what the same language models wrote without the hospitals.
        released: Accuracy of the classifier that consists of the released numbers, without any text.
        gain: What the synthetic texts are better than `zero_shot`, for equally many texts.
        real: Accuracy of the same model trained on all private records, only in a simulation; or the distance of other
            real texts.
        majority: Accuracy of guessing: the fraction of the test texts with the most frequent label, or the micro F1 of
            the best constant answer.
        tested: Number of test texts.
        unit: What is counted in `trained_on` and `tested`: "texts" or, where texts have sections, "sections".
        counted: Fraction of the parties' records that a classifier of the texts labels correctly, by a noised count.
    """

    measure: str = ACCURACY
    synthetic: float | None = None
    interval: tuple[float, float] | None = None
    trained_on: int | None = None
    zero_shot: float | None = None
    released: float | None = None
    gain: Gain | None = None
    real: float | None = None
    majority: float | None = None
    tested: int | None = None
    unit: str = "texts"
    counted: float | None = field(default=None, metadata=ABSENT)

    @property
    def against_guessing(self) -> str:
        """How the texts compare with guessing, by the 95% interval over test texts."""
        if self.synthetic is None or self.majority is None or not self.tested:
            return UNCLEAR
        ends = self.interval
        if self.measure == ACCURACY:
            ends = share_interval(round(self.synthetic * self.tested), self.tested)
        if ends is None:
            return UNCLEAR
        return BETTER if ends[0] > self.majority else WORSE if ends[1] < self.majority else UNCLEAR


class Role(StrEnum):
    """What a row says about the texts; rows without a role are further measurements of the same kind."""

    AS_MANY = "as many"
    WITHOUT = "without the hospitals"
    ALL = "all texts"
    REAL = "real"
    RELEASED = "released numbers"
    GUESSING = "guessing"
    COUNTED = "counted by hospitals"


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityRow(Document):
    """One classifier, or one set of texts whose distance from real texts was measured.

    Attributes:
        trained_on: Description of the training texts.
        texts: Number of texts that it was trained on; None if unknown.
        tested_on: Description of the test texts.
        tested: Number of test texts; None if unknown.
        accuracy: The classifier's accuracy, or what takes its place.
        macro_f1: The classifier's macro-F1.
        reason: Why it has no accuracy.
        simulation_only: Whether it was trained on private records.
        role: What it says about the texts; None for a further measurement.
    """

    trained_on: str
    texts: int | None
    tested_on: str
    tested: int | None
    accuracy: Figure
    macro_f1: Figure
    reason: str | None
    simulation_only: bool
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility(Document):
    """The table of accuracies, with sentences on the measurements.

    Attributes:
        rows: Rows of the table.
        notes: The sentences.
        measure: `ACCURACY`, or what takes its place. The rows then have no macro-F1.
    """

    rows: tuple[UtilityRow, ...]
    notes: tuple[str, ...]
    measure: str = ACCURACY


def read_quality(metrics: Metrics) -> Quality:
    """Return the accuracies that were measured, or what takes their place."""
    table = read_utility(metrics)
    rows = {row.role: row for row in table.rows if row.role}
    values = {role: row.accuracy.value for role, row in rows.items()}
    group = {ACCURACY: "zero_shot", MICRO_F1: "label_sets", DISTANCE: "nearness"}[table.measure]
    whole, without = rows.get(Role.ALL), rows.get(Role.WITHOUT)
    return Quality(
        measure=table.measure,
        synthetic=values.get(Role.ALL),
        interval=whole.accuracy.interval if whole else None,
        trained_on=whole.texts if whole else None,
        zero_shot=values.get(Role.WITHOUT),
        released=values.get(Role.RELEASED),
        gain=Gain.of_difference(metrics.figure(group, "difference"), without.texts if without else None),
        real=values.get(Role.REAL),
        majority=values.get(Role.GUESSING),
        tested=metrics.count("test_records"),
        unit=_unit(metrics),
        counted=values.get(Role.COUNTED),
    )


def reason_not_measured(metrics: Metrics, *, complete: bool, texts: int) -> str:
    """Return a clause that says why a run with this number of texts has no accuracy and no distance from real texts."""
    if not complete:
        return "the run has not reached its end"
    if not texts:
        return "there are no texts"
    roles = {Role.ALL, Role.COUNTED}
    if reason := next((row.reason for row in read_utility(metrics).rows if row.role in roles and row.reason), None):
        return reason
    return "no figure could be computed from the test texts" if metrics.count("test_records") else NO_TEST_TEXTS


def read_utility(metrics: Metrics) -> Utility:
    """Return the table; without figures it has no rows."""
    if metrics.group("nearness"):
        reason = metrics.figure("utility").reason
        note = f"No accuracy: {reason}." if reason else ""
        return Utility(rows=tuple(_distances(metrics)), notes=(note,) if note else (), measure=DISTANCE)
    if metrics.group("label_sets"):
        note = "Micro F1 of one classifier a label; its definition and macro F1 are in the table of label sets below."
        return Utility(rows=tuple(_label_sets(metrics)), notes=(note,), measure=MICRO_F1)
    rows = tuple(_accuracies(metrics))
    definitions = {
        "The classifier": metrics.text("definition"),
        "Without the hospitals": metrics.text("zero_shot", "definition"),
        "The released numbers": metrics.text("released_classifier", "definition"),
        "The second classifier": metrics.text("utility_encoder", "definition"),
        "The hospitals' own records": metrics.text("federated", "definition"),
    }
    notes = [f"{title}: {text}" for title, text in definitions.items() if text and rows]
    remarks = dict.fromkeys(metrics.text(group, "note") for group in ("utility", "utility_encoder"))
    return Utility(rows=rows, notes=(*notes, *(f"Note: {remark}." for remark in remarks if remark)))


def _accuracies(metrics: Metrics) -> Iterator[UtilityRow]:
    """Yield the rows of classifiers: first those that show what the hospitals add, then the references."""
    trained, compared = metrics.count("synthetic", "records"), metrics.count("zero_shot", "trained_on")
    whole = _classifier(metrics, Role.ALL, "synthetic texts", trained, "utility", "synthetic")
    if compared == trained:
        yield from whole
    else:
        yield from _classifier(metrics, Role.AS_MANY, "synthetic texts", compared, "zero_shot.as_many")
    yield from _classifier(metrics, Role.WITHOUT, WITHOUT, compared, "zero_shot")
    if compared != trained:
        yield from whole
    for role, name, group in (
        (None, "synthetic texts, most probable labels alone", "utility_hard_labels"),
        (None, "synthetic texts and public texts (transfer.jsonl)", "utility_with_transfer"),
        (Role.RELEASED, RELEASED, "released_classifier"),
    ):
        yield from _classifier(metrics, role, name, metrics.count(group, "trained_on") or 0, group)
    yield from _of_private_records(metrics, trained)
    yield from _classifier(metrics, Role.GUESSING, "nothing: always the most frequent label", 0, "majority_class")
    marked = metrics.figure("utility_encoder", "accuracy").simulation_only
    name, texts = "all private records" if marked else "synthetic texts", metrics.count("utility_encoder", "records")
    for row in _classifier(metrics, None, f"{name}, second classifier", trained, "utility_encoder"):
        yield replace(row, texts=trained if texts is None else texts, simulation_only=marked)
    for row in _classifier(metrics, Role.COUNTED, "synthetic texts", trained, "federated"):
        yield replace(row, tested=row.accuracy.rows, tested_on="the hospitals' records, counted with noise")


def _of_private_records(metrics: Metrics, trained: int | None) -> Iterator[UtilityRow]:
    """Yield the rows of classifiers of as many private records as texts, unless these are all, and of all."""
    number, drawn = metrics.count("real_private", "records"), metrics.count("utility_real", "trained_on")
    if drawn is None and number is not None and trained is not None:
        drawn = min(number, trained)
    is_all, groups = bool(metrics.group("real_private")) and drawn == number, ["real_private"]
    if is_all and _is_current(metrics, "utility_real"):
        groups.insert(0, "utility_real")
    if not is_all:
        for row in _classifier(metrics, None, "private records, as many as texts", drawn, "utility_real"):
            yield replace(row, simulation_only=True)
    yield from _classifier(metrics, Role.REAL, "all private records", number, *groups)


def _label_sets(metrics: Metrics) -> Iterator[UtilityRow]:
    """Yield the rows for texts with several labels."""
    trained, compared = (metrics.count("label_sets", *path) for path in (["trained_on"], ["zero_shot", "trained_on"]))
    ordered = [
        (Role.AS_MANY, "synthetic texts", compared, ("label_sets", "as_many")),
        (Role.WITHOUT, WITHOUT, compared, ("label_sets", "zero_shot")),
        (Role.ALL, "synthetic texts", trained, ("label_sets",)),
        (Role.REAL, "all private records", None, ("label_sets_real",)),
        (Role.GUESSING, "nothing: the best constant answer", 0, ("label_sets", "constant")),
    ]
    for role, name, texts, group in ordered:
        micro_f1 = metrics.figure(*group, "micro_f1")
        if role == Role.ALL or (micro_f1.value is not None and (role != Role.AS_MANY or compared != trained)):
            yield _row(metrics, role, name, texts, micro_f1)


def _distances(metrics: Metrics) -> Iterator[UtilityRow]:
    """Yield the rows for texts without labels: distances of equally large sets from real texts."""
    texts = metrics.count("nearness", "texts")
    for role, name, key in (
        (Role.ALL, "synthetic texts", "fid"),
        (Role.WITHOUT, WITHOUT, "zero_shot"),
        (Role.REAL, "other real texts", "real"),
    ):
        figure = metrics.figure("nearness", key)
        if role == Role.ALL or figure.value is not None:
            yield replace(_row(metrics, role, name, texts, figure), simulation_only=False)


def _classifier(
    metrics: Metrics, role: Role | None, trained_on: str, texts: int | None, *groups: str
) -> Iterator[UtilityRow]:
    """Yield the row of a classifier; nothing without a group, or if it was tested on texts of an earlier evaluation.

    Args:
        metrics: The figures.
        role: The row's role.
        trained_on: Description of its training texts.
        texts: Number of its training texts.
        groups: Names of its groups, with a dot before the name of a nested one. Each figure comes from the first group
            that has it, and the reason why there is none from the first of all.
    """
    known = [group.split(".") for group in groups if _is_current(metrics, group)]
    if not known:
        return
    figures = [
        [figure for group in known if (figure := metrics.figure(*group, name)).value is not None]
        for name in ("accuracy", "macro_f1")
    ]
    reason = metrics.figure(*known[0], "accuracy").reason or metrics.figure(*known[0]).reason
    accuracy, macro_f1 = (replace(of[0], name="") if of else Figure() for of in figures)
    row = _row(metrics, role, trained_on, texts, accuracy)
    yield replace(row, macro_f1=macro_f1, reason=None if figures[0] else reason)


def _is_current(metrics: Metrics, group: str) -> bool:
    """Return whether there is such a group, or a reason in its place, of the test texts of the last evaluation."""
    path, dated = group.split("."), group.startswith("utility") or group == "released_classifier"
    figures = metrics.group(*path)
    if dated and figures and metrics.text(*path, "test") != metrics.test:
        return False
    return bool(figures) or metrics.figure(*path).reason is not None


def _row(metrics: Metrics, role: Role | None, name: str, texts: int | None, figure: Figure) -> UtilityRow:
    return UtilityRow(
        trained_on=name,
        texts=texts,
        tested_on=f"test {_unit(metrics)}",
        tested=metrics.count("test_records"),
        accuracy=replace(figure, name=""),
        macro_f1=Figure(),
        reason=figure.reason,
        simulation_only=role == Role.REAL,
        role=role,
    )


def _unit(metrics: Metrics) -> str:
    return "sections" if "sections" in metrics.content else "texts"
