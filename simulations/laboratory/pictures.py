"""Pictures for READMEs: the report's plots in rows, as one SVG file for light and dark pages."""

from collections.abc import Mapping, Sequence

from server.report.plots import WIDTH, Lines, lines
from server.report.write import render

_HEAD, _LINE, _GAP = 26, 19, 14
"""Heights in pixels: of a plot's title, of a line in the legend or the note, and of the gap below the legend."""
_COLUMNS = 4
"""Number of columns of a legend, each wide enough for a name of 28 letters."""


_BY_EPSILON = 320
"""Height, in pixels, of a plot against epsilon."""
Span = tuple[float, float]


def by_epsilon(
    key: str,
    title: str,
    *,
    epsilons: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    intervals: Mapping[str, Sequence[Span | None]],
    including: Sequence[float],
) -> Lines:
    """Return a plot of lines against epsilon; at least one of the lines must have a value.

    Args:
        key: Identifier of the plot, unique in the picture.
        title: Title of the plot.
        epsilons: Values of epsilon, in the order of the plot; "inf" is shown as ∞.
        values: Values of each line, one per epsilon, keyed by the line's name; None for a missing value.
        intervals: Intervals of these values, in the same form.
        including: Values that the vertical axis must cover, so that the plots of a row have the same axis.
    """
    plot = lines(
        key,
        title,
        note="",
        x_name="ε: the smaller, the more private; ∞: without noise",
        places=["∞" if epsilon == "inf" else epsilon for epsilon in epsilons],
        values=values,
        intervals=intervals,
        including=including,
        height=_BY_EPSILON,
    )
    assert plot
    return plot


def picture(title: str, rows: Sequence[Sequence[Lines]], *, note: str = "") -> str:
    """Return a picture as SVG.

    Args:
        title: Title for screen readers, which can also read every value.
        rows: Rows of at most two plots; the plots of a row have the same lines.
        note: Text below the plots.
    """
    placed, top = [], 0
    for plots in rows:
        top += _HEAD
        below = top + plots[0].height + _GAP // 2
        names = [line.name for line in plots[0].series]
        legend = [
            (name, plots[0].left + at % _COLUMNS * (2 * WIDTH - 60) // _COLUMNS, below + at // _COLUMNS * _LINE)
            for at, name in enumerate(names)
        ]
        placed.append({"plots": plots, "top": top, "legend": legend})
        top = below + -(-len(names) // _COLUMNS) * _LINE + _GAP
    height = top + _LINE * bool(note)
    return render("picture.svg", title=title, rows=placed, note=note, width=2 * WIDTH, height=height) + "\n"
