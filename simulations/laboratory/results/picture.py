"""The pictures on the page of results: accuracy against epsilon, by number of records, as SVG for light and dark pages.

An error bar extends one standard deviation over the seeds on either side of the mean. If epsilon has no effect, the
line is horizontal.
"""

import math
from collections.abc import Mapping, Sequence

from server.metrics.intervals import Interval
from server.report.plots import WIDTH, Lines, lines
from server.report.write import render
from simulations.laboratory.results.claims import RECORDS
from simulations.laboratory.results.findings import Finding, RowFigure

_HEAD, _LINE, _GAP = 26, 19, 14
"""Heights in pixels: of a plot's title, of a line in the legend or the note, and of the gap below the legend."""
_COLUMNS = 4
"""Number of columns of a legend, each wide enough for a name of 28 letters."""


def draw(findings: Sequence[Finding], model: str) -> str | None:
    """Return the picture as SVG; None if no line with private records was measured.

    Args:
        findings: The measurements of each line of `picture.yaml`.
        model: The language model, as the page names it.
    """
    measured = [
        (*finding.claim.name.partition(RECORDS)[::2], finding.figures)
        for finding in findings
        if any(figure.mean is not None for figure in finding.figures)
    ]
    panels = {
        int(size): _where_all_are({name: figures for name, records, figures in measured if records in {"", size}})
        for size in dict.fromkeys(records for _, records, _ in measured if records)
    }
    panels = {records: panel for records, panel in panels.items() if panel}
    if not panels:
        return None
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    ends = [end for panel in panels.values() for line in panel.values() for figure in line for end in _span(figure)]
    seeds, data = findings[0].figures[0].planned, ", ".join(findings[0].data)
    return _side_by_side(
        [_plot(records, names, panels[records], ends) for records in sorted(panels)],
        note=f"{model}, {data}, means of {seeds} seeds; bars: one standard deviation. Level lines do not depend on ε.",
    )


def _where_all_are(panel: Mapping[str, Sequence[RowFigure]]) -> dict[str, Sequence[RowFigure]]:
    """Return the figures of each method at each epsilon at which all were measured; empty if there is none."""
    columns = [column for column in zip(*panel.values(), strict=True) if all(one.mean is not None for one in column)]
    return dict(zip(panel, zip(*columns, strict=True), strict=False))


def _plot(records: int, names: Sequence[str], panel: Mapping[str, Sequence[RowFigure]], ends: Sequence[float]) -> Lines:
    """Return the plot for this number of records; a method without measurements has no line, but keeps its colour."""
    epsilons = [figure.epsilon for figure in next(iter(panel.values()))]
    missing = [None] * len(epsilons)
    plot = lines(
        f"records-{records}",
        f"Accuracy on real texts, %: {records} private records",
        note="",
        x_name="ε: the smaller, the more private; ∞: without noise",
        places=["∞" if epsilon is None or math.isinf(epsilon) else f"{epsilon:g}" for epsilon in epsilons],
        values={name: list(map(_percent, panel[name])) if name in panel else missing for name in names},
        intervals={name: list(map(_span, panel[name])) if name in panel else missing for name in names},
        including=ends,
        height=320,
    )
    assert plot
    return plot


def _side_by_side(plots: Sequence[Lines], *, note: str) -> str:
    """Return a row of at most two plots with the same lines, with a legend and a note below them."""
    below = _HEAD + plots[0].height + _GAP // 2
    names = [line.name for line in plots[0].series]
    legend = [
        (name, plots[0].left + at % _COLUMNS * (2 * WIDTH - 60) // _COLUMNS, below + at // _COLUMNS * _LINE)
        for at, name in enumerate(names)
    ]
    height = below + -(-len(names) // _COLUMNS) * _LINE + _GAP + _LINE
    rows = [{"plots": plots, "top": _HEAD, "legend": legend}]
    picture = render("picture.svg", title="Accuracy against ε", rows=rows, note=note, width=2 * WIDTH, height=height)
    return picture + "\n"


def _percent(figure: RowFigure) -> float:
    assert figure.mean is not None
    return 100 * figure.mean


def _span(figure: RowFigure) -> Interval:
    """Return the ends, in percent, of an error bar that extends one standard deviation on either side of the mean."""
    assert figure.mean is not None
    return 100 * (figure.mean - (figure.deviation or 0.0)), 100 * (figure.mean + (figure.deviation or 0.0))
