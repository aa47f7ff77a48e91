"""Accuracy of classifiers trained on the texts, compared with real records and guessing: one table from `metrics.json`.

The same small model is trained on one set of texts after another and tested on the same held-out texts. Each row states
the number of training texts, since a classifier learns more from more texts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from server.documents.files import Document
from server.documents.metrics import Classifier, Estimate, Gain, LabelSets, Metrics
from server.metrics.intervals import of_share

RELEASED = "the released numbers alone, no texts"
"""Name of the classifier that consists of a census's numbers."""
ACCURACY, MICRO_F1 = "accuracy", "micro F1"
"""What `Accuracies` has."""
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
"""How texts compare with guessing, by a 95 % interval that is above it, below it, or neither."""
NO_TEST_TEXTS = "that takes test texts (task.test)"
"""Why a complete run with texts has neither an accuracy nor a distance."""
WITHOUT = "the same models without the hospitals"
"""Name of what a run's language models write before any answer."""

_MEASURES = ("nearness: fid", "label sets: micro f1")
"""Figures that take the place of an accuracy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies(Document):
    """Accuracies, 0 to 1, on held-out texts (micro F1 for texts with several labels); None if not measured.

    Attributes:
        measure: `ACCURACY`, or `MICRO_F1` in its place.
        synthetic: Accuracy of the small model trained on the synthetic texts.
        interval: 95 % interval of `synthetic`.
        trained_on: Number of the synthetic texts.
        zero_shot: Accuracy of the same model trained on what the same language models wrote without the hospitals.
        released: Accuracy of the classifier that consists of the released numbers, without any text.
        gain: The synthetic texts' accuracy minus `zero_shot`, for equally many texts.
        real: Accuracy of the same model trained on all private records: only in a simulation.
        majority: Fraction of the test texts with the most frequent label; if the measure is micro F1, the micro F1 of
            the best constant answer.
        tested: Number of test texts.
        unit: What is counted in `trained_on` and `tested`: "texts" or, where texts have sections, "sections".
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

    @property
    def against_guessing(self) -> str:
        """How the texts compare with the most frequent label, by the 95 % interval over test texts."""
        if self.synthetic is None or self.majority is None or not self.tested:
            return UNCLEAR
        ends = self.interval
        if self.measure == ACCURACY:
            ends = of_share(round(self.synthetic * self.tested), self.tested)
        if ends is None:
            return UNCLEAR
        return BETTER if ends[0] > self.majority else WORSE if ends[1] < self.majority else UNCLEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityRow(Document):
    """One classifier in the table of accuracies.

    Attributes:
        trained_on: Description of the training texts.
        texts: Number of texts that it was trained on; None if unknown.
        tested_on: Description of the test texts.
        tested: Number of test texts; None if unknown.
        accuracy: The classifier's accuracy.
        macro_f1: The classifier's macro-F1.
        reason: Why it has no accuracy.
        simulation_only: Whether it was trained on private records.
    """

    trained_on: str
    texts: int | None
    tested_on: str
    tested: int | None
    accuracy: Estimate
    macro_f1: Estimate
    reason: str | None
    simulation_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility(Document):
    """The table of accuracies, with sentences on the measurements.

    Attributes:
        rows: Rows of the table.
        notes: The sentences.
        measure: `ACCURACY` or `MICRO_F1`. If it is `MICRO_F1`, micro F1 replaces each row's accuracy, and the rows have
            no macro-F1.
    """

    rows: tuple[UtilityRow, ...]
    notes: tuple[str, ...]
    measure: str = ACCURACY


def accuracies(metrics: Metrics) -> Accuracies:
    """Return the accuracies that were measured or, for texts with several labels, the micro F1."""
    unit = "sections" if "sections" in metrics.content else "texts"
    if sets := metrics.label_sets:
        return Accuracies(
            measure=MICRO_F1,
            synthetic=sets.synthetic.value,
            interval=sets.synthetic.interval,
            trained_on=sets.trained_on,
            zero_shot=sets.without.value,
            gain=sets.gain,
            real=sets.real.value,
            majority=sets.constant_answer.value,
            tested=metrics.test_records,
            unit=unit,
        )
    # Several trainings have a mean, of which the plain figure is the first.
    synthetic = _first(_accuracy(metrics.utility), _accuracy(metrics.synthetic))
    return Accuracies(
        synthetic=synthetic.value,
        interval=synthetic.interval,
        trained_on=metrics.synthetic and metrics.synthetic.records,
        zero_shot=_accuracy(metrics.zero_shot).value,
        released=_accuracy(metrics.released_classifier).value,
        gain=metrics.gain,
        real=_accuracy(metrics.real_private).value,
        majority=_accuracy(metrics.majority_class).value,
        tested=metrics.test_records,
        unit=unit,
    )


def counted(metrics: Metrics) -> Estimate:
    """Return the fraction of the parties' records that a classifier labels correctly, by a noised count, if any."""
    return _accuracy(metrics.federated)


def unmeasured(metrics: Metrics, *, complete: bool = True, texts: int = 1) -> str:
    """Return a clause that says why a run has no accuracy and no distance from real texts.

    Args:
        metrics: Figures, without such a one.
        complete: Whether the run reached its end.
        texts: Number of its texts.
    """
    if not complete:
        return "the run has not reached its end"
    if not texts:
        return "there are no texts"
    figures = (figure.reason for name, figure in metrics.named.items() if name in _MEASURES)
    reasons = (group.reason for group in (metrics.federated, metrics.utility) if group)
    if reason := next(filter(None, (*figures, *reasons)), None):
        return reason
    return "no figure could be computed from the test texts" if metrics.test_records else NO_TEST_TEXTS


def utility(metrics: Metrics) -> Utility:
    """Return the table; without figures it has no rows."""
    if metrics.label_sets:
        note = "Micro F1 of one classifier a label; its definition and macro F1 are in the table of label sets below."
        return Utility(rows=tuple(_of_sets(metrics, metrics.label_sets)), notes=(note,), measure=MICRO_F1)
    rows = tuple(_rows(metrics))
    if (unit := accuracies(metrics).unit) != "texts":
        rows = tuple(replace(row, tested_on=row.tested_on.replace("texts", unit)) for row in rows)
    definitions = {
        "The classifier": metrics.definition,
        "Without the hospitals": metrics.zero_shot and metrics.zero_shot.definition,
        "The released numbers": metrics.released_classifier and metrics.released_classifier.definition,
        "The second classifier": metrics.utility_encoder and metrics.utility_encoder.definition,
        "The hospitals' own records": metrics.federated and metrics.federated.definition,
    }
    notes = [f"{title}: {text}" for title, text in definitions.items() if text and rows]
    remarks = dict.fromkeys(group.note for group in (metrics.utility, metrics.utility_encoder) if group)
    return Utility(rows=rows, notes=(*notes, *(f"Note: {remark}." for remark in remarks if remark)))


def _rows(metrics: Metrics) -> Iterator[UtilityRow]:
    synthetic, real, detailed = metrics.synthetic, metrics.real_private, metrics.utility
    tested, trained = metrics.test_records, synthetic and synthetic.records
    number = real and real.records
    if synthetic or detailed:
        yield _row("synthetic texts", trained, tested, detailed, synthetic)
    yield from _by_probabilities(metrics)
    yield from _without_hospitals(metrics, trained)
    as_many = metrics.utility_real
    # Other test texts, of a later evaluation, are no reference.
    if as_many and as_many.test != metrics.test:
        as_many = None
    if as_many:
        drawn = as_many.trained_on
        if drawn is None and number is not None and trained is not None:
            drawn = min(number, trained)
        if real is None or drawn != number:
            yield _row("private records, as many as texts", drawn, tested, as_many, simulation_only=True)
            as_many = None
    if real or as_many:
        yield _row("all private records", number, tested, as_many, real, simulation_only=True)
    if metrics.majority_class:
        yield _row("nothing: always the most frequent label", 0, tested, metrics.majority_class)
    if encoder := metrics.utility_encoder:
        name = "all private records" if encoder.simulation_only else "synthetic texts"
        texts = trained if encoder.records is None else encoder.records
        yield _row(f"{name}, second classifier", texts, tested, encoder, simulation_only=encoder.simulation_only)
    if federated := metrics.federated:
        row = _row("synthetic texts", trained, federated.rows, federated)
        yield replace(row, tested_on="the hospitals' records, counted with noise")


def _of_sets(metrics: Metrics, sets: LabelSets) -> Iterator[UtilityRow]:
    """Yield the rows for texts with several labels."""
    tested, without = metrics.test_records, sets.gain and sets.gain.texts

    def row(name: str, texts: int | None, micro_f1: Estimate, *, simulation_only: bool = False) -> UtilityRow:
        return _row(name, texts, tested, Classifier(accuracy=micro_f1), simulation_only=simulation_only)

    yield row("synthetic texts", sets.trained_on, sets.synthetic)
    if sets.without.value is not None:
        if without != sets.trained_on:
            yield row("synthetic texts, as many as in the next row", without, sets.equally_many)
        yield row(WITHOUT, without, sets.without)
    if sets.real.value is not None:
        yield row("all private records", None, sets.real, simulation_only=True)
    if sets.constant_answer.value is not None:
        yield row("nothing: the best constant answer", 0, sets.constant_answer)


def _by_probabilities(metrics: Metrics) -> Iterator[UtilityRow]:
    """Yield rows that show what the probabilities of the labels add, and the classifier that gives them."""
    for name, classifier in (
        ("synthetic texts, most probable labels alone", metrics.utility_hard_labels),
        ("synthetic texts and public texts (transfer.jsonl)", metrics.utility_with_transfer),
        (RELEASED, metrics.released_classifier),
    ):
        if classifier:
            yield _row(name, classifier.trained_on or 0, metrics.test_records, classifier)


def _without_hospitals(metrics: Metrics, trained: int | None) -> Iterator[UtilityRow]:
    """Yield rows of the zero-shot texts and, if these are fewer than `trained`, of equally many synthetic texts."""
    zero_shot, tested = metrics.zero_shot, metrics.test_records
    if zero_shot is None:
        return
    if zero_shot.trained_on != trained:
        name = "synthetic texts, as many as in the next row"
        yield _row(name, zero_shot.trained_on, tested, metrics.as_many_as_zero_shot)
    yield _row(WITHOUT, zero_shot.trained_on, tested, zero_shot)


def _row(
    trained_on: str,
    texts: int | None,
    tested: int | None,
    *classifiers: Classifier | None,
    simulation_only: bool = False,
) -> UtilityRow:
    """Make a row: each figure comes from the first classifier that has it, and the reason from the first of all."""
    known = [classifier for classifier in classifiers if classifier]
    accuracy = _first(*(classifier.accuracy for classifier in known))
    return UtilityRow(
        trained_on=trained_on,
        texts=texts,
        tested_on="test texts",
        tested=tested,
        accuracy=accuracy,
        macro_f1=_first(*(classifier.macro_f1 for classifier in known)),
        reason=next((one.reason for one in known), None) if accuracy.value is None else None,
        simulation_only=simulation_only,
    )


def _accuracy(classifier: Classifier | None) -> Estimate:
    return classifier.accuracy if classifier else Estimate()


def _first(*estimates: Estimate) -> Estimate:
    return next((estimate for estimate in estimates if estimate.value is not None), Estimate())
