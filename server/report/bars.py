"""The verdict's figures as bars: each figure of its sentences, with a name and its 95 % interval.

Accuracies (micro F1 for texts with several labels) are drawn on a scale from 0 to 1. If texts have no labels, the bars
show the distances of equally large sets of texts from real texts, on a scale that ends at the largest distance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from server.documents.figure_groups import Interval
from server.documents.files import Document
from server.documents.metrics import Estimate, Metrics, Nearness
from server.metrics.intervals import OVER_TRAININGS
from server.report.utility import ACCURACY, NO_TEST_TEXTS, RELEASED, WITHOUT, accuracies, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar(Document):
    """One figure of the verdict.

    Attributes:
        name: What the figure describes, in words.
        value: The figure.
        interval: Its 95 % interval; None if the figure has no interval.
        colour: Index of the bar's colour, from 0 to 7.
        simulation_only: Whether it was computed from private records.
    """

    name: str
    value: float
    interval: Interval | None = None
    colour: int
    simulation_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Document):
    """The bars beside a verdict.

    Attributes:
        title: Kind of the figures.
        caption: How the figures were obtained.
        shares: Whether the figures are fractions, to be written as percentages.
        top: The value at which a bar has its full length.
        over: What the bars' intervals are over, in words.
        missing: Why there are no bars; empty if there are any.
        rows: The bars; empty if nothing was measured.
    """

    title: str
    caption: str
    over: str
    missing: str = ""
    shares: bool
    top: float
    rows: tuple[Bar, ...]


def bars(metrics: Metrics, missing: str = NO_TEST_TEXTS) -> Bars:
    """Return the bars of all figures that a verdict names; `missing` says why if there are none."""
    if metrics.nearness:
        rows = tuple(_distances(metrics.nearness))
        ends = [end for row in rows for end in (row.value, *(row.interval or ()))]
        caption = f"Between {_number(metrics.nearness.texts)}texts of each kind and real texts (FID): lower is better"
        top = max(ends, default=1.0) or 1.0
        return Bars(
            title="Distance from real texts",
            caption=caption,
            over="over the texts of each kind, with the same real texts to compare them with (jackknife)",
            missing="" if rows else missing,
            shares=False,
            top=top,
            rows=rows,
        )
    measured, rows, share = accuracies(metrics), tuple(_shares(metrics)), counted(metrics)
    if not rows and share.value is not None:
        rows = (Bar(name="all synthetic texts", value=share.value, interval=share.interval, colour=0),)
        caption = "How many of the hospitals' own records a classifier labels correctly, by a count with noise"
        return Bars(title="Accuracy", caption=caption, over="over the noise alone", shares=True, top=1.0, rows=rows)
    texts = f"{_number(measured.tested)}real {measured.unit}" + (f" ({metrics.test})" if metrics.test else "")
    what = f"How many of {texts} a classifier labels correctly"
    if measured.measure != ACCURACY:
        what = f"How well a classifier finds the labels of {texts} (micro F1)"
    return Bars(
        title="Accuracy" if measured.measure == ACCURACY else "Micro F1",
        caption=f"{what}, by what it was trained on. The coordinator kept these texts for the test. Higher is better",
        over=_over(metrics),
        missing="" if rows else missing,
        shares=True,
        top=1.0,
        rows=rows,
    )


def _over(metrics: Metrics) -> str:
    """Return what the intervals of accuracies are over: several trainings, for whole sets alone, or the test texts."""
    if metrics.utility and OVER_TRAININGS in (metrics.utility.definition or ""):
        return "over several trainings, where it is of all texts or records, and else over the test texts"
    return "over the test texts"


def _shares(metrics: Metrics) -> Iterator[Bar]:
    """Yield the bars of accuracies: first those that show what the hospitals add, then all texts and references."""
    measured, gain = accuracies(metrics), metrics.label_sets.gain if metrics.label_sets else metrics.gain
    alike, without, real, released = _intervals(metrics)
    unit = measured.unit
    whole = f"all {_number(measured.trained_on)}synthetic {unit}"
    alone = gain is not None and gain.texts == measured.trained_on
    if gain is not None and measured.zero_shot is not None:
        name = whole if alone else f"{gain.texts:,} of the synthetic {unit}"
        yield Bar(name=name, value=measured.zero_shot + gain.value, interval=alike, colour=0)
        name = f"{gain.texts:,} {unit} of {WITHOUT}"
        yield Bar(name=name, value=measured.zero_shot, interval=without, colour=3)
    elif measured.zero_shot is not None:
        yield Bar(name=WITHOUT, value=measured.zero_shot, interval=without, colour=3)
    if measured.synthetic is not None and not alone:
        yield Bar(name=whole, value=measured.synthetic, interval=measured.interval, colour=0)
    if measured.real is not None:
        number = _number(metrics.real_private and metrics.real_private.records)
        yield Bar(name=f"{number}real records", value=measured.real, interval=real, colour=1, simulation_only=True)
    if measured.released is not None:
        yield Bar(name=RELEASED, value=measured.released, interval=released, colour=2)
    if measured.majority is not None:
        answer = "the most frequent label" if measured.measure == ACCURACY else "the best constant answer"
        yield Bar(name=f"nothing: always {answer}", value=measured.majority, colour=4)


def _intervals(metrics: Metrics) -> Iterator[Interval | None]:
    """Yield the intervals for equally many texts, without the hospitals, for real records and for released numbers."""
    if sets := metrics.label_sets:
        yield from (of.interval for of in (sets.equally_many, sets.without, sets.real, Estimate()))
        return
    real, sampled = metrics.real_private, metrics.utility_real
    if real and sampled and sampled.accuracy.value == real.accuracy.value:
        real = sampled
    for of in (metrics.as_many_as_zero_shot, metrics.zero_shot, real, metrics.released_classifier):
        yield of.accuracy.interval if of else None


def _distances(near: Nearness) -> Iterator[Bar]:
    of: tuple[tuple[str, Estimate, int], ...] = (
        ("synthetic texts", near.synthetic, 0),
        (f"texts of {WITHOUT}", near.without, 3),
        ("other real texts", near.real, 1),
    )
    for name, estimate, colour in of:
        if estimate.value is not None:
            yield Bar(name=name, value=estimate.value, interval=estimate.interval, colour=colour)


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,} "
