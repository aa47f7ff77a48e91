"""The verdict's figures as bars: each figure of its sentences, with a name and its 95 % interval.

Accuracies (micro F1 for texts with several labels) are drawn on a scale from 0 to 1. If texts have no labels, the bars
show the distances of equally large sets of texts from real texts, on a scale that ends at the largest distance.
"""

from dataclasses import dataclass

from server.documents.files import Document
from server.documents.metrics import Interval, Metrics
from server.metrics.intervals import OVER_TRAININGS
from server.report.quality import ACCURACY, DISTANCE, NO_TEST_TEXTS, WITHOUT, Role, UtilityRow, read_utility

_COLOURS = {Role.AS_MANY: 0, Role.WITHOUT: 3, Role.ALL: 0, Role.REAL: 1, Role.RELEASED: 2, Role.GUESSING: 4}


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
        over: What the bars' intervals are over, in words.
        missing: Why there are no bars; empty if there are any.
        shares: Whether the figures are fractions, to be written as percentages.
        top: The value at which a bar has its full length.
        rows: The bars; empty if nothing was measured.
    """

    title: str
    caption: str
    over: str
    missing: str = ""
    shares: bool
    top: float
    rows: tuple[Bar, ...]


def draw_bars(metrics: Metrics, missing: str = NO_TEST_TEXTS) -> Bars:
    """Return the bars of all figures that a verdict names; `missing` says why if there are none."""
    table = read_utility(metrics)
    rows = [row for row in table.rows if row.role in _COLOURS]
    bars, tested = tuple(filter(None, map(_bar, rows))), metrics.count("test_records")
    title, top, over = table.measure.capitalize(), 1.0, _over(metrics)
    texts = "real sections" if "sections" in metrics.content else "real texts"
    texts = ("" if tested is None else f"{tested:,} ") + texts + (f" ({metrics.test})" if metrics.test else "")
    caption = f"How well a classifier finds the labels of {texts} ({table.measure})"
    if table.measure == ACCURACY:
        caption = f"How many of {texts} a classifier labels correctly"
    caption += ", by what it was trained on. The coordinator kept these texts for the test. Higher is better"
    if table.measure == DISTANCE:
        title = "Distance from real texts"
        caption = "Between as many texts of each kind and real texts (FID): lower is better"
        over = "over the texts of each kind, with the same real texts to compare them with (jackknife)"
        top = max((end for bar in bars for end in (bar.value, *(bar.interval or ()))), default=1.0) or 1.0
    if not bars:
        bars = tuple(filter(None, (_bar(row) for row in table.rows if row.role == Role.COUNTED)))
        if bars:
            caption = "How many of the hospitals' own records a classifier labels correctly, by a count with noise"
            over = "over the noise alone"
    return Bars(
        title=title,
        caption=caption,
        over=over,
        missing="" if bars else missing,
        shares=table.measure != DISTANCE,
        top=top,
        rows=bars,
    )


def _bar(row: UtilityRow) -> Bar | None:
    """Return a row as a bar; None without a value."""
    if row.accuracy.value is None or row.role is None:
        return None
    name = f"texts of {WITHOUT}" if row.trained_on == WITHOUT else row.trained_on.removeprefix("all ")
    return Bar(
        name=f"{row.texts:,} {name}" if row.texts else name,
        value=row.accuracy.value,
        interval=row.accuracy.interval,
        colour=_COLOURS.get(Role(row.role), 0),
        simulation_only=row.simulation_only,
    )


def _over(metrics: Metrics) -> str:
    """Return what the intervals of accuracies are over: several trainings, for whole sets alone, or the test texts."""
    if OVER_TRAININGS in (metrics.text("utility", "definition") or ""):
        return "over several trainings, where it is of all texts or records, and else over the test texts"
    return "over the test texts"
