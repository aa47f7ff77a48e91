"""The verdict's figures as bars: each figure of its sentences, with a name and its 95% interval.

Accuracies (micro F1 for texts with several labels) are drawn on a scale from 0 to 1. If texts have no labels, the bars
show the distances of equally large sets of texts from real texts, on a scale that ends at the largest distance.
"""

from collections.abc import Collection
from dataclasses import dataclass

from common.page.words import catalogue
from server.documents.files import Document
from server.documents.metrics import Interval, Metrics
from server.guarantee.messages import fill_in
from server.metrics.intervals import OVER_TRAININGS
from server.report.quality import DISTANCE, NO_TEST_TEXTS, WITHOUT, Role, UtilityRow, read_quality, read_utility

_COLOURS = {Role.AS_MANY: 0, Role.WITHOUT: 3, Role.ALL: 0, Role.REAL: 1, Role.RELEASED: 2, Role.GUESSING: 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar(Document):
    """One figure of the verdict.

    Attributes:
        name: What the figure describes, in words.
        value: The figure.
        interval: Its 95% interval; None if the figure has no interval.
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
    shown, quality = compared_figures(metrics), read_quality(metrics)
    counted = [] if shown else _measured_bars(metrics, {Role.COUNTED})
    bars = shown or counted
    shares, say = quality.measure != DISTANCE, catalogue(__package__).bars
    facts = {
        "q": quality,
        "counted": bool(counted),
        "test": metrics.test,
        # For the intervals of whole sets alone.
        "trainings": OVER_TRAININGS in (metrics.text("utility", "definition") or ""),
    }
    highest = max((end for bar in bars for end in (bar.value, *(bar.interval or ()))), default=0.0)
    return Bars(
        title=fill_in(say.title, **facts),
        caption=fill_in(say.caption, **facts),
        over=fill_in(say.over, **facts),
        missing="" if bars else missing,
        shares=shares,
        top=1.0 if shares else highest or 1.0,
        rows=tuple(bars),
    )


def compared_figures(metrics: Metrics) -> list[Bar]:
    """Return the figures on test texts that a verdict names, those of equally many texts first."""
    return _measured_bars(metrics, _COLOURS)


def _measured_bars(metrics: Metrics, roles: Collection[Role]) -> list[Bar]:
    rows = (row for row in read_utility(metrics).rows if row.accuracy.value is not None)
    return [_bar(row) for row in rows if row.role in roles]


def _bar(row: UtilityRow) -> Bar:
    assert row.role is not None
    assert row.accuracy.value is not None
    name = f"texts of {WITHOUT}" if row.trained_on == WITHOUT else row.trained_on.removeprefix("all ")
    return Bar(
        name=f"{row.texts:,} {name}" if row.texts else name,
        value=row.accuracy.value,
        interval=row.accuracy.interval,
        colour=_COLOURS.get(Role(row.role), 0),
        simulation_only=row.simulation_only,
    )
