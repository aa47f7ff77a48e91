"""Pictures of READMEs: the report's plots in rows, as one SVG file for light and dark pages."""

from collections.abc import Sequence

from server.report.plots import WIDTH, Lines
from server.report.write import render

_HEAD, _LINE, _GAP = 26, 19, 14
"""Heights of a plot's title, of a line of a legend or of the note, and of the gap below them."""
_COLUMNS = 4
"""Columns of a legend, each wide enough for a name of 28 letters."""


def picture(title: str, rows: Sequence[Sequence[Lines]], *, note: str = "") -> str:
    """Draw a picture as SVG.

    Args:
        title: Title for screen readers, which also get every value.
        rows: Rows of at most two plots; the plots of a row have the same lines.
        note: Text below them.
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
