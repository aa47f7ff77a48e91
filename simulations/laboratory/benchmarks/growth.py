"""The picture of a growth, as SVG for light and dark pages: lines in panels, both axes logarithmic.

So a line that is twice as steep grows with the square. Lines differ in colour and in mark. A missing value leaves a
gap; so does zero, which has no logarithm.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from simulations.laboratory.svg import PALETTES, opening

_WIDTH, _ROW = 800, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 18, 62, 40
"""Margins of a panel."""
_HEAD = 8
_MARKS = (
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # a dot, a square, a triangle, a diamond
    "m-3.5 -3.5h7v7h-7z",
    "m0 -5l4.8 8.5h-9.6z",
    "m0 -5l5 5l-5 5l-5 -5z",
)
_LETTER, _SAMPLE, _APART = 6.6, 18, 12
"""Widths of a letter of the legend, of the mark before a name, and of the gap behind it."""

_PALETTES = tuple(
    {**palette, "colours": (palette["ink"], *palette["hues"], *last)}
    for palette, last in zip(PALETTES, (("#4a4f57", "#b3161b"), ("#a9b1bb", "#ff8080")), strict=True)
)

_RULES = """\
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
.head { font-size: 14px; font-weight: 650; } .rule { fill: none; } path.line { fill: none; stroke-width: 1.8; }
"""
_OF_PALETTE = """\
text { fill: {{ palette.soft }}; } .head { fill: {{ palette.ink }}; }
"""
_TEMPLATE = (
    opening(_RULES, _OF_PALETTE)
    + """\
<rect class="paper" width="{{ width }}" height="{{ height }}"/>
{% for panel in panels %}
<text class="head" x="{{ panel.left }}" y="{{ panel.top - 40 }}">{{ panel.title }}</text>
{% for line in panel.lines %}
<path class="c{{ line.colour }}" d="M{{ line.x }} {{ line.y }}{{ line.mark }}"/>
<text x="{{ line.x + 9 }}" y="{{ line.y + 4 }}">{{ line.name }}</text>
{% endfor %}
{% for y, name in panel.y_ticks %}
<path class="rule" d="M{{ panel.left }} {{ y }}H{{ panel.right }}"/>
<text x="{{ panel.left - 6 }}" y="{{ y + 4 }}" text-anchor="end">{{ name }}</text>
{% endfor %}
{% for x, name in panel.x_ticks %}
<text x="{{ x }}" y="{{ panel.bottom + 17 }}" text-anchor="middle">{{ name }}</text>
{% endfor %}
<text x="{{ (panel.left + panel.right) / 2 }}" y="{{ panel.bottom + 33 }}" text-anchor="middle">{{ x_name }}</text>
{% for line in panel.lines %}
<path class="line c{{ line.colour }}" d="{{ line.path }}"/>
<path class="c{{ line.colour }}" d="{{ line.marks }}"/>
{% endfor %}
{% endfor %}
</svg>
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines over the sizes that were measured.

    Attributes:
        title: What is measured, with its unit.
        lines: By name, a value for each size; None if there is none. A line without any keeps its colour free.
    """

    title: str
    lines: Mapping[str, Sequence[float | None]]


def draw(title: str, *, x_name: str, sizes: Sequence[int], rows: Sequence[Sequence[Panel]]) -> str:
    """The picture, as SVG.

    Args:
        title: For screen readers.
        x_name: What the sizes count.
        sizes: (sizes,) at least two, ascending and positive.
        rows: Panels side by side, row below row; each has a positive value.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    panels = [
        _laid_out(
            panel, sizes, left=at * _WIDTH / len(row), right=(at + 1) * _WIDTH / len(row), top=_HEAD + row_at * _ROW
        )
        for row_at, row in enumerate(rows)
        for at, panel in enumerate(row)
    ]
    summary = " ".join(_words(panel, sizes, x_name) for row in rows for panel in row)
    picture = environment.from_string(_TEMPLATE).render(
        width=_WIDTH,
        height=_HEAD + _ROW * len(rows),
        palettes=_PALETTES,
        title=title,
        summary=summary,
        panels=panels,
        x_name=x_name,
    )
    return picture + "\n"


def _laid_out(panel: Panel, sizes: Sequence[int], *, left: float, right: float, top: float) -> dict[str, Any]:
    """Places of everything in a panel, in user units, y downward."""
    left, right, top, bottom = left + _LEFT, right - _RIGHT, top + _TOP, top + _ROW - _BOTTOM
    ticks = _ticks([value for line in panel.lines.values() for value in line if value])

    def x(size: float) -> float:
        return round(left + _share(size, sizes[0], sizes[-1]) * (right - left), 1)

    def y(value: float) -> float:
        return round(bottom - _share(value, ticks[0], ticks[-1]) * (bottom - top), 1)

    lines = []
    legend_x, legend_y = left + 4, top - 25
    for number, (name, values) in enumerate(panel.lines.items()):
        if not any(values):
            continue
        width = _SAMPLE + _LETTER * len(name)
        if legend_x + width > right + _RIGHT:
            legend_x, legend_y = left + 4, legend_y + 15
        spots = [f"{x(size)} {y(value)}" if value else "" for size, value in zip(sizes, values, strict=True)]
        mark = _MARKS[number % len(_MARKS)]
        lines.append(
            {
                "name": name,
                "colour": number % len(_PALETTES[0]["colours"]),
                "mark": mark,
                "x": round(legend_x, 1),
                "y": legend_y,
                "path": "".join(
                    f"{'L' if before else 'M'}{spot}" for before, spot in itertools.pairwise(["", *spots]) if spot
                ),
                "marks": "".join(f"M{spot}{mark}" for spot in spots if spot),
            }
        )
        legend_x += width + _APART
    return {
        "title": panel.title,
        "left": round(left, 1),
        "right": round(right, 1),
        "top": top,
        "bottom": bottom,
        "lines": lines,
        "x_ticks": [(x(size), str(size)) for size in sizes],
        "y_ticks": [(y(value), f"{value:g}") for value in ticks],
    }


def _share(value: float, low: float, high: float) -> float:
    """Where a value is between two others, as its logarithm is."""
    return math.log(value / low) / math.log(high / low)


def _ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around all values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _words(panel: Panel, sizes: Sequence[int], x_name: str) -> str:
    """Every value of a panel in words."""
    lines = (
        f"{name}: {', '.join('none' if value is None else f'{value:.3g}' for value in values)}"
        for name, values in panel.lines.items()
    )
    return f"{panel.title}, at {', '.join(map(str, sizes))} {x_name}: {'; '.join(lines)}."
