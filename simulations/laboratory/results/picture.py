"""The README's picture, as SVG, for light and dark pages: accuracy against epsilon, by number of records.

It is drawn from `findings.json`. Lines differ in colour and in mark, or in dashes where epsilon changes nothing; a bar
or a band is one standard deviation over the seeds in either direction.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from simulations.laboratory.results.cells import WITHOUT_EPSILON
from simulations.laboratory.results.claims import RECORDS
from simulations.laboratory.svg import PALETTES, opening

FILE = "accuracy.svg"
_LEFT, _RIGHT, _TOP, _BOTTOM, _BETWEEN = 56, 10, 62, 78, 22
_WIDTH, _HEIGHT = 800, 418
_APART = 7
"""Between lines at one place, so that bars do not cover one another."""
_LETTER = 7.7
"""Width of a letter of the legend, in a wide font."""
_SAMPLE = 37
"""Of the legend, before a name."""

_PALETTES = tuple(
    {**palette, "colours": (first, *palette["hues"])}
    for palette, first in zip(PALETTES, ("#4a4f57", "#c7ccd2"), strict=True)
)

_RULES = """\
text { font: 14px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
.head { font-weight: 650; } .tick { font-size: 13px; }
.line, .bar, .rule { fill: none; } .line { stroke-width: 2; } .bar { stroke-width: 1.5; }
.band { opacity: .13; stroke: none; }
"""
_OF_PALETTE = """\
text { fill: {{ palette.ink }}; } .tick { fill: {{ palette.soft }}; }
"""
_TEMPLATE = (
    opening(_RULES, _OF_PALETTE)
    + """\
{% macro mark(number, x, y) %}
{% set kind = number % 4 %}
{% if kind == 0 %}<path d="M{{ x }} {{ (y - 5) | round(1) }}l5 5l-5 5l-5 -5z"/>
{% elif kind == 1 %}<circle cx="{{ x }}" cy="{{ y }}" r="4"/>
{% elif kind == 2 %}<rect x="{{ (x - 3.5) | round(1) }}" y="{{ (y - 3.5) | round(1) }}" width="7" height="7"/>
{% else %}<path d="M{{ x }} {{ (y - 5) | round(1) }}l4.8 8.5h-9.6z"/>
{% endif %}
{% endmacro %}
<rect class="paper" width="{{ width }}" height="{{ height }}"/>
{% for entry in legend %}
<g class="c{{ entry.number }}"><path class="line" stroke-dasharray="{{ entry.dashes }}" \
d="M{{ entry.x }} 19h30"/>{% if not entry.dashes %}{{ mark(entry.number, entry.x + 15, 19) }}{% endif %}</g>
<text x="{{ entry.x + sample }}" y="24">{{ entry.name }}</text>
{% endfor %}
<text class="tick" transform="translate(16 {{ (top + bottom) / 2 }}) rotate(-90)" text-anchor="middle">\
{{ y_name }}</text>
{% for panel in panels %}
{% set first = loop.first %}
<text class="head" x="{{ (panel.left + panel.right) / 2 }}" y="{{ top - 12 }}" text-anchor="middle">\
{{ panel.title }}</text>
{% for y, text in y_ticks %}
<path class="rule" d="M{{ panel.left }} {{ y }}H{{ panel.right }}"/>
{% if first %}<text class="tick" x="{{ panel.left - 8 }}" y="{{ y + 4.5 }}" text-anchor="end">{{ text }}</text>
{% endif %}
{% endfor %}
{% for x, text in panel.x_ticks %}
<text class="tick" x="{{ x }}" y="{{ bottom + 19 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
{% for line in panel.lines %}
<g class="c{{ line.number }}">
{% if line.dashes %}
<rect class="band" x="{{ panel.left }}" y="{{ line.band[0] }}" width="{{ panel.right - panel.left }}" \
height="{{ line.band[1] }}"/>
{% endif %}
<path class="line" stroke-dasharray="{{ line.dashes }}" d="{{ line.path }}"/>
{% if line.bars %}<path class="bar" d="{{ line.bars }}"/>
{% endif %}
{% for x, y in line.marks %}{{ mark(line.number, x, y) }}{% endfor %}
</g>
{% endfor %}
{% endfor %}
<text class="tick" x="{{ (panels[0].left + panels[-1].right) / 2 }}" y="{{ bottom + 42 }}" text-anchor="middle">\
{{ x_name }}</text>
<text class="tick" x="{{ (panels[0].left + panels[-1].right) / 2 }}" y="{{ bottom + 64 }}" text-anchor="middle">\
{{ note }}</text>
</svg>
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line in one panel, or in all.

    Attributes:
        name: As the legend calls it.
        records: Number of private records; None if it sees none.
        flat: Whether epsilon changes nothing.
        points: By epsilon, mean and standard deviation over the seeds, in percent.
    """

    name: str
    records: int | None
    flat: bool
    points: Mapping[float | str, tuple[float, float]]


def draw(findings: Sequence[Mapping[str, Any]]) -> str | None:
    """The picture, as SVG; None if nothing that has private records was measured.

    Args:
        findings: "picture" of `findings.json`.
    """
    lines = [line for line in map(_line, findings) if line.points]
    sizes = sorted({line.records for line in lines if line.records is not None})
    if not sizes:
        return None
    names = list(dict.fromkeys(line.name for line in lines))
    flat = dict.fromkeys(line.name for line in lines if line.flat)
    dashes = dict.fromkeys(names, "") | dict(zip(flat, itertools.cycle(("2 5", "9 5")), strict=False))
    ticks = _ticks([mean + spread for line in lines for mean, sd in line.points.values() for spread in (-sd, sd)])
    seeds = findings[0]["figures"][0]["planned"]
    epsilons = [figure["epsilon"] for figure in findings[0]["figures"]]
    width = (_WIDTH - _LEFT - _RIGHT - _BETWEEN * (len(sizes) - 1)) / len(sizes)
    steep = [name for name in names if name not in flat]
    panels = []
    for at, records in enumerate(sizes):
        left = _LEFT + at * (width + _BETWEEN)
        places = {epsilon: left + (number + 0.5) * width / len(epsilons) for number, epsilon in enumerate(epsilons)}
        panels.append(
            {
                "title": f"{records} private records",
                "left": round(left, 1),
                "right": round(left + width, 1),
                "x_ticks": [(round(x, 1), _shown(epsilon)) for epsilon, x in places.items()],
                "lines": [
                    {"number": names.index(line.name), "dashes": dashes[line.name]}
                    | (
                        _flat(line, left, width, ticks)
                        if line.flat
                        else _steep(line, places, _APART * (steep.index(line.name) - (len(steep) - 1) / 2), ticks)
                    )
                    for line in lines
                    if line.records in {None, records}
                ],
            }
        )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return (
        environment.from_string(_TEMPLATE).render(
            width=_WIDTH,
            height=_HEIGHT,
            top=_TOP,
            bottom=_HEIGHT - _BOTTOM,
            sample=_SAMPLE,
            palettes=_PALETTES,
            title="Accuracy against ε",
            summary=_summary(lines),
            legend=_legend(names, dashes),
            panels=panels,
            x_name="ε: the smaller, the more private; ∞: without noise",
            note=f"{', '.join(findings[0]['data'])}, means of {seeds} seeds; bars and bands: one standard deviation",
            y_name="accuracy on real texts, %",
            y_ticks=[(_y(value, ticks), value) for value in ticks],
        )
        + "\n"
    )


def _line(finding: Mapping[str, Any]) -> _Line:
    """One line of `picture.yaml`, measured."""
    name, _, records = finding["claim"]["name"].partition(RECORDS)
    ((_, overrides),) = finding["claim"]["rows"].items()
    return _Line(
        name=name,
        records=int(records) if records else None,
        flat=not set(WITHOUT_EPSILON).isdisjoint(overrides),
        points={
            figure["epsilon"]: (100 * figure["mean"], 100 * (figure["deviation"] or 0))
            for figure in finding["figures"]
            if figure["mean"] is not None
        },
    )


def _legend(names: Sequence[str], dashes: Mapping[str, str]) -> list[dict[str, Any]]:
    """One row of entries, each as wide as its name needs."""
    widths = [_SAMPLE + _LETTER * len(name) + 18 for name in names]
    places = itertools.accumulate(widths, initial=_LEFT)
    return [
        {"name": name, "number": number, "dashes": dashes[name], "x": round(x, 1)}
        for number, (name, x) in enumerate(zip(names, places, strict=False))
    ]


def _ticks(values: Sequence[float]) -> list[int]:
    """Multiples of ten around all values; of five where these lie close together."""
    step = 10 if max(values) - min(values) > 25 else 5
    low, high = int(min(values) // step), int(-(-max(values) // step))
    return [step * at for at in range(low, max(high, low + 1) + 1)]


def _y(value: float, ticks: Sequence[int]) -> float:
    return round(_HEIGHT - _BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _flat(line: _Line, left: float, width: float, ticks: Sequence[int]) -> dict[str, Any]:
    """A line from side to side, with a band."""
    mean, spread = next(iter(line.points.values()))
    above, below = _y(mean + spread, ticks), _y(mean - spread, ticks)
    path = f"M{round(left, 1)} {_y(mean, ticks)}h{round(width, 1)}"
    return {"path": path, "band": (above, round(below - above, 1)), "bars": "", "marks": []}


def _steep(line: _Line, places: Mapping[float | str, float], shift: float, ticks: Sequence[int]) -> dict[str, Any]:
    """A line over epsilon, with bars."""
    spots = [(round(places[epsilon] + shift, 1), mean, spread) for epsilon, (mean, spread) in line.points.items()]
    marks = [(x, _y(mean, ticks)) for x, mean, _ in spots]
    return {
        "path": "M" + "L".join(f"{x} {y}" for x, y in marks),
        "bars": "".join(f"M{x} {_y(mean - spread, ticks)}V{_y(mean + spread, ticks)}" for x, mean, spread in spots),
        "marks": marks,
    }


def _summary(lines: Sequence[_Line]) -> str:
    """Every mean in words."""
    parts = []
    for line in lines:
        about = line.name if line.records is None else f"{line.name}, {line.records} private records"
        means = [f"{mean:.1f} at ε = {_shown(epsilon)}" for epsilon, (mean, _) in line.points.items()]
        flat = f"{next(iter(line.points.values()))[0]:.1f}"
        parts.append(f"{about}: {flat if line.flat else ', '.join(means)}.")
    return "Accuracy in percent. " + " ".join(parts)


def _shown(epsilon: float | str) -> str:
    return "∞" if epsilon == "inf" else f"{epsilon:g}"
