"""Layout of plots: coordinates are user units of a view box, y downward.

Each plot has a summary in words and keeps its values for a table. Lines and marks differ in shape and in colour.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.documents.figure_groups import finite

_WIDTH, _HEIGHT = 420, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 12, 34
_X_LABELS = 10
_SHAPES = (
    # A dot, a square, a triangle, a diamond.
    ("h0", "m-2.2-2.2h4.4v4.4h-4.4z", "m0-3l2.8 5h-5.6z", "m0-3.2l3.2 3.2l-3.2 3.2l-3.2-3.2z"),
    # Two crosses, two angles.
    ("m-2-2l4 4m0-4l-4 4", "m-2.7 0h5.4m-2.7-2.7v5.4", "m-2.5 2.2l2.5-4.4l2.5 4.4", "m-2.5-2.2l2.5 4.4l2.5-4.4"),
)
"""Path of a point by source and kind, from its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Fields of all plots.

    Attributes:
        key: Identifier, unique on its page.
        title: Title of the plot.
        note: Explanation that a reader needs to understand the plot.
        summary: Description of the drawing in words, for screen readers.
        x_name: Name of the horizontal axis.
        x_ticks: Position and text of each tick on the horizontal axis.
        y_ticks: Position and text of each tick on the vertical axis.
    """

    key: str
    title: str
    note: str
    summary: str
    x_name: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = _HEIGHT - _BOTTOM


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line: its values (None for a missing one), and these values as points of the drawing.

    `intervals` are those of the values, None where there is none, and `whiskers` is their path.
    """

    name: str
    values: tuple[float | None, ...]
    points: tuple[tuple[float, float], ...]
    path: str
    intervals: tuple[tuple[float, float] | None, ...] = ()
    whiskers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Frame):
    """Lines over the same positions on the x axis, such as rounds."""

    places: tuple[str, ...]
    series: tuple[Series, ...]
    kind: str = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Frame):
    """A histogram; `shade` is a marked interval of the x axis."""

    rows: tuple[tuple[str, int], ...]
    bars: tuple[tuple[float, float, float, float], ...]
    shade: tuple[float, float] | None
    kind: str = "bars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Points of one source and label, as one path; `source` 0 is drawn as filled shapes, 1 as lines.

    `kind` is the number of the shape, which is the label's as the colour is.
    """

    source: int
    label: int
    kind: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots(Frame):
    """Points on a plane, both axes on the same scale."""

    sources: tuple[str, ...]
    labels: tuple[str, ...]
    legend: tuple[tuple[Cloud, ...], ...]
    clouds: tuple[Cloud, ...]
    rows: tuple[tuple[str, str, int, float, float], ...]
    kind: str = "dots"


Plot = Lines | Bars | Dots


def lines(
    key: str,
    title: str,
    *,
    note: str,
    x_name: str,
    places: Sequence[object],
    values: Mapping[str, Sequence[float | None]],
    intervals: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
) -> Lines | None:
    """Lines over evenly spaced places, with 0 on the y axis; None if there is no value to draw.

    Intervals, if given, are drawn through the points of a line and stand in the table of values.
    """
    clean = {name: tuple(map(finite, line)) for name, line in values.items()}
    spans = {name: tuple(line) for name, line in (intervals or {}).items()}
    present = [value for line in clean.values() for value in line if value is not None]
    if not present:
        return None
    present += [end for line in spans.values() for span in line if span for end in span]
    ticks = steps(min(0.0, *present), max(0.0, *present))
    inner = _WIDTH - _LEFT - _RIGHT - 16

    def x(at: int) -> float:
        return round(_LEFT + 8 + (0.5 if len(places) == 1 else at / (len(places) - 1)) * inner, 1)

    series = []
    for name, line in clean.items():
        spots = [None if value is None else (x(at), _y(value, ticks)) for at, value in enumerate(line)]
        points = tuple(spot for spot in spots if spot is not None)
        ends = [span and (_y(span[0], ticks), _y(span[1], ticks)) for span in spans.get(name, ())]
        whiskers = "".join(f"M{x(at)} {end[0]}V{end[1]}" for at, end in enumerate(ends) if end)
        series.append(
            Series(
                name=name,
                values=line,
                points=points,
                path=_path(spots),
                intervals=spans.get(name, ()),
                whiskers=whiskers,
            )
        )
    labels = tuple(map(str, places))
    stride = math.ceil(len(labels) / _X_LABELS)
    return Lines(
        key=key,
        title=title,
        note=note,
        summary=f"Line plot of {title}, {x_name} {labels[0]} to {labels[-1]}. {_summary(clean)}",
        x_name=x_name,
        places=labels,
        series=tuple(series),
        x_ticks=tuple((x(at), name) for at, name in enumerate(labels) if at % stride == 0),
        y_ticks=tuple((_y(value, ticks), f"{value:g}") for value in ticks),
    )


def bars(
    key: str,
    title: str,
    *,
    note: str,
    x_name: str,
    edges: Sequence[float],
    counts: Sequence[int],
    open_end: bool = False,
    shade: tuple[float, float] | None = None,
) -> Bars:
    """A histogram of at least one bin.

    Args:
        key: See `Frame`.
        title: See `Frame`.
        note: See `Frame`.
        x_name: See `Frame`.
        edges: (bins + 1,) multiples of one width, ascending; at most 400.
        counts: (bins,) values in each bin.
        open_end: Whether the last bin contains all larger values.
        shade: Marked interval of the axis, clipped to the axis.
    """
    low, high = edges[0], edges[-1]
    ticks = steps(0.0, float(max(counts)))

    def x(value: float) -> float:
        return round(_LEFT + (min(max(value, low), high) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT), 1)

    spans = list(itertools.pairwise(edges))
    names = [f"{start:g} to {end:g}" for start, end in spans]
    if open_end:
        names[-1] = f"{spans[-1][0]:g} and more"
    base = _y(0.0, ticks)
    rectangles = tuple(
        (x(start) + 0.5, _y(count, ticks), max(0.5, round(x(end) - x(start) - 1, 1)), round(base - _y(count, ticks), 1))
        for (start, end), count in zip(spans, counts, strict=True)
    )
    fullest = max(range(len(counts)), key=counts.__getitem__)
    width = edges[1] - edges[0]
    stride = next(step for step in (1, 2, 5, 10, 20, 50) if len(edges) / step <= 9)
    return Bars(
        key=key,
        title=title,
        note=note,
        summary=f"Histogram of {title}: {sum(counts)} in all, from {low:g} to {high:g}"
        f"{' and more' if open_end else ''}, most at {names[fullest]}.",
        x_name=x_name,
        rows=tuple(zip(names, counts, strict=True)),
        bars=rectangles,
        shade=None if shade is None else (x(shade[0]), x(shade[1])),
        x_ticks=tuple((x(edge), f"{edge:g}") for edge in edges if round(edge / width) % stride == 0),
        y_ticks=tuple((_y(value, ticks), f"{value:g}") for value in ticks),
    )


Points = Sequence[Sequence[float]]


def dots(key: str, title: str, note: str, sources: Mapping[str, Mapping[str, Points]]) -> Dots | None:
    """Points by source and label on a square; None without points."""
    all_points = [point for labels in sources.values() for points in labels.values() for point in points]
    if not all_points:
        return None
    lows, highs = (tuple(end(point[axis] for point in all_points) for axis in (0, 1)) for end in (min, max))
    span = max(*(high - low for low, high in zip(lows, highs, strict=True)), 1e-9)
    middle = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    size, edge = _WIDTH, 10
    scale = (size - 2 * edge) / span

    def place(point: Sequence[float]) -> tuple[float, float]:
        # Rounded to a tenth of a unit: finer differences are invisible, and it halves the size of the map on the page.
        return round(size / 2 + (point[0] - middle[0]) * scale, 1), round(size / 2 - (point[1] - middle[1]) * scale, 1)

    labels = tuple(dict.fromkeys(label for by_label in sources.values() for label in by_label))
    clouds, rows = [], []
    for number, (source, by_label) in enumerate(sources.items()):
        for label, points in by_label.items():
            clouds.append(_cloud(number, labels.index(label), [place(point) for point in points]))
            centre = [sum(point[axis] for point in points) / max(1, len(points)) for axis in (0, 1)]
            rows.append((label, source, len(points), centre[0], centre[1]))
    counts = ", ".join(f"{sum(map(len, by.values()))} {source}" for source, by in sources.items())
    return Dots(
        key=key,
        title=title,
        note=note,
        summary=f"Map of {counts}. The table below has the centre of each label.",
        x_name="",
        sources=tuple(sources),
        labels=labels,
        legend=tuple(
            tuple(_cloud(source, label, [(6.0, 6.0)]) for source in range(len(sources))) for label in range(len(labels))
        ),
        clouds=tuple(clouds),
        rows=tuple(sorted(rows, key=lambda row: labels.index(row[0]))),
        x_ticks=(),
        y_ticks=(),
        height=size,
    )


def _cloud(source: int, label: int, spots: Sequence[tuple[float, float]]) -> Cloud:
    # After eight colours the shapes move on by one, so that no two of 32 labels look alike.
    kind = (label + label // 8) % 4
    path = "".join(f"M{x:g} {y:g}{_SHAPES[source][kind]}" for x, y in spots)
    return Cloud(source=source, label=label, kind=kind, path=path)


def steps(low: float, high: float) -> list[float]:
    """Round numbers from the last one not above `low` (at most 0) to the first not below `high`, few of them."""
    span = high - low
    if span <= 0:
        return [0.0, 1.0]
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0) if span / (unit * part) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{at * step:.6g}") for at in range(first, last + 1)]


def _y(value: float, ticks: Sequence[float]) -> float:
    return round(_HEIGHT - _BOTTOM - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _path(spots: Sequence[tuple[float, float] | None]) -> str:
    """Join points by lines; a missing one leaves a gap."""
    joined = zip([None, *spots], spots, strict=False)
    return "".join(f"{'L' if before else 'M'}{spot[0]} {spot[1]}" for before, spot in joined if spot)


def _summary(values: Mapping[str, Sequence[float | None]]) -> str:
    parts = []
    for name, line in values.items():
        present = [value for value in line if value is not None]
        if present:
            parts.append(f"{name}: first {present[0]:.3g}, last {present[-1]:.3g}.")
    return " ".join(parts)
