"""Layout of lines, histograms and maps: coordinates are user units of a view box, with y pointing downward.

Each plot has a summary in words and keeps its values for a table. Lines and labels differ in shape and in colour, the
sources of a map in whether the shapes are filled.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from server.documents.files import Document
from server.documents.metrics import finite

WIDTH, _HEIGHT = 420, 230
_LEFT, _RIGHT, _TOP, _BELOW = 46, WIDTH - 12, 12, 34
"""Ends of the area between the axes; below it, `_BELOW` units are left for the names of the ticks and of the axis."""
_X_LABELS = 10
_APART = 7
"""Largest distance in units between the intervals of two lines at one place."""
_BINS = 24
"""Number of bins of a histogram, about."""
_SHAPES = (
    # A dot, a square, a triangle, a diamond.
    ("h0", "m-2.2-2.2h4.4v4.4h-4.4z", "m0-3l2.8 5h-5.6z", "m0-3.2l3.2 3.2l-3.2 3.2l-3.2-3.2z"),
    # Two crosses, two angles.
    ("m-2-2l4 4m0-4l-4 4", "m-2.7 0h5.4m-2.7-2.7v5.4", "m-2.5 2.2l2.5-4.4l2.5 4.4", "m-2.5-2.2l2.5 4.4l2.5-4.4"),
)
"""SVG path of a point on a map, relative to its place, by source and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Fields that all plots have.

    Attributes:
        key: Identifier, unique on its page.
        title: Title of the plot.
        note: Explanation that a reader needs to understand the plot.
        summary: Description of the drawing in words, for screen readers.
        x_name: Name of the horizontal axis.
        x_ticks: Position and text of each tick on the horizontal axis.
        y_ticks: Position and text of each tick on the vertical axis.
        height: Height of the plot.
    """

    width: ClassVar[int] = WIDTH
    left: ClassVar[int] = _LEFT
    right: ClassVar[int] = _RIGHT
    top: ClassVar[int] = _TOP

    key: str
    title: str
    note: str
    summary: str
    x_name: str
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    height: int = _HEIGHT

    @property
    def bottom(self) -> int:
        """Place of the horizontal axis."""
        return self.height - _BELOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a plot, as numbers and as a drawing.

    Attributes:
        name: Name of the line.
        values: The values; None for a missing one.
        points: Positions of the values in the drawing, without the missing ones.
        path: SVG path through the points.
        intervals: Confidence interval of each value, None for a missing one; empty without intervals.
        whiskers: SVG path of the intervals.
        singles: SVG path of the single results behind the values, a dot for each; empty without them.
    """

    name: str
    values: tuple[float | None, ...]
    points: tuple[tuple[float, float], ...]
    path: str
    intervals: tuple[tuple[float, float] | None, ...] = ()
    whiskers: str = ""
    singles: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Frame):
    """Lines over the same positions on the x axis, such as rounds."""

    kind: ClassVar[str] = "lines"

    places: tuple[str, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Document):
    """Values in bins of equal width.

    Attributes:
        edges: (bins + 1,) ends of the bins, ascending.
        counts: (bins,) values in each bin.
        open_end: Whether the last bin contains all larger values.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    open_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPlot(Frame):
    """A histogram as a drawing; `shade` is a marked interval of the x axis."""

    kind: ClassVar[str] = "bars"

    rows: tuple[tuple[str, int], ...]
    bars: tuple[tuple[float, float, float, float], ...]
    shade: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Points of one source and label, as one path; `source` 0 is drawn with filled shapes, 1 with outlines.

    `kind` is the index of the shape. Like the colour, the shape depends on the label.
    """

    source: int
    label: int
    kind: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots(Frame):
    """Points on a plane, both axes on the same scale."""

    kind: ClassVar[str] = "dots"

    sources: tuple[str, ...]
    labels: tuple[str, ...]
    legend: tuple[tuple[Cloud, ...], ...]
    clouds: tuple[Cloud, ...]
    rows: tuple[tuple[str, str, int, float, float], ...]


def lines(
    key: str,
    title: str,
    *,
    note: str,
    x_name: str,
    places: Sequence[object],
    values: Mapping[str, Sequence[float | None]],
    intervals: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
    singles: Mapping[str, Sequence[Sequence[float]]] | None = None,
    including: Sequence[float] = (0.0,),
    height: int = _HEIGHT,
) -> Lines | None:
    """Lay out lines over evenly spaced places, such as rounds; None if there are no values.

    `values` has a value for each place, keyed by the line's name; a missing value leaves a gap. `intervals` of the
    values are drawn through the points, side by side where lines share a place. `singles` are the results behind each
    value, such as those of the seeds behind a mean, drawn as dots. The y axis covers `including`, too. All other
    arguments are those of `Frame`.
    """
    clean = {name: tuple(map(finite, line)) for name, line in values.items()}
    spans = {name: tuple(line) for name, line in (intervals or {}).items()}
    present = [value for line in clean.values() for value in line if value is not None]
    if not present:
        return None
    ends = [end for line in spans.values() for span in line if span for end in span]
    behind = singles or {}
    reached = [*present, *ends, *(value for line in behind.values() for values in line for value in values), *including]
    ticks = steps(min(reached), max(reached))
    apart = min(_APART, 0.7 * (_RIGHT - _LEFT) / len(places) / len(clean)) if ends else 0.0
    edge = 8 + apart * (len(clean) - 1) / 2
    x = _axis(range(len(places)), _LEFT + edge, _RIGHT - edge)
    y = _axis(ticks, height - _BELOW, _TOP)
    series = []
    for number, (name, line) in enumerate(clean.items()):
        xs = [round(x(place) + apart * (number - (len(clean) - 1) / 2), 1) for place in range(len(places))]
        spots = [None if value is None else (at, y(value)) for at, value in zip(xs, line, strict=True)]
        whiskers = "".join(
            f"M{at} {y(span[0])}V{y(span[1])}" for at, span in zip(xs, spans.get(name, ()), strict=False) if span
        )
        dots = (f"M{at} {y(value)}h0" for at, values in zip(xs, behind.get(name, ()), strict=False) for value in values)
        series.append(
            Series(
                name=name,
                values=line,
                points=tuple(spot for spot in spots if spot is not None),
                path=_path(spots),
                intervals=spans.get(name, ()),
                whiskers=whiskers,
                singles="".join(dots),
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
        x_ticks=tuple((x(at), labels[at]) for at in range(0, len(labels), stride)),
        y_ticks=tuple((y(value), f"{value:g}") for value in ticks),
        height=height,
    )


def count_bins(values: Sequence[float], *, whole: bool = False) -> Histogram:
    """Count at least one value in a few bins of equal width.

    Args:
        values: The values to count.
        whole: Whether the values are integers. If so, the edges of the bins are integers too and start at 0, and the
            last bin is open if up to a hundredth of the values lies far beyond the rest.
    """
    sample = np.asarray(values, dtype=np.float64)
    low, high = float(sample.min()), float(sample.max())
    if whole:
        low, high = 0.0, min(high, 2 * float(np.quantile(sample, 0.99)))
    width = max(_round_step((high - low) / _BINS), 1.0 if whole else 0.0)
    first, last = math.floor(low / width), math.floor(high / width) + 1
    edges = [float(f"{at * width:.9g}") for at in range(first, last + 1)]
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
    return Histogram(edges=tuple(edges), counts=tuple(counts.tolist()), open_end=bool(sample.max() > edges[-1]))


def bars(
    key: str, title: str, *, note: str, x_name: str, histogram: Histogram, shade: tuple[float, float] | None = None
) -> HistogramPlot:
    """Return the drawing of a histogram of 1 to 400 bins; `shade` is clipped to the axis."""
    edges, counts = histogram.edges, histogram.counts
    low, high = edges[0], edges[-1]
    ticks = steps(0.0, float(max(counts)))
    x, y = _axis(edges, _LEFT, _RIGHT), _axis(ticks, _HEIGHT - _BELOW, _TOP)
    spans = list(itertools.pairwise(edges))
    names = [f"{start:g} to {end:g}" for start, end in spans]
    if histogram.open_end:
        names[-1] = f"{spans[-1][0]:g} and more"
    rectangles = tuple(
        (x(start) + 0.5, y(count), max(0.5, round(x(end) - x(start) - 1, 1)), round(y(0.0) - y(count), 1))
        for (start, end), count in zip(spans, counts, strict=True)
    )
    width = edges[1] - edges[0]
    stride = next(step for step in (1, 2, 5, 10, 20, 50) if len(edges) / step <= 9)
    return HistogramPlot(
        key=key,
        title=title,
        note=note,
        summary=f"Histogram of {title}: {sum(counts)} in all, from {low:g} to {high:g}"
        f"{' and more' if histogram.open_end else ''}, most at {names[counts.index(max(counts))]}.",
        x_name=x_name,
        rows=tuple(zip(names, counts, strict=True)),
        bars=rectangles,
        shade=None if shade is None else (x(min(max(shade[0], low), high)), x(min(max(shade[1], low), high))),
        x_ticks=tuple((x(edge), f"{edge:g}") for edge in edges if round(edge / width) % stride == 0),
        y_ticks=tuple((y(value), f"{value:g}") for value in ticks),
    )


def dots(
    key: str, title: str, note: str, sources: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
) -> Dots | None:
    """Return the points by source and label on a square; None if there are no points."""
    all_points = [point for labels in sources.values() for points in labels.values() for point in points]
    if not all_points:
        return None
    lows, highs = (tuple(end(point[axis] for point in all_points) for axis in (0, 1)) for end in (min, max))
    span = max(*(high - low for low, high in zip(lows, highs, strict=True)), 1e-9)
    middle = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    size, edge = WIDTH, 10
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
        height=size,
    )


def _cloud(source: int, label: int, spots: Sequence[tuple[float, float]]) -> Cloud:
    # After eight colours the shapes move on by one, so that no two of 32 labels look alike.
    kind = (label + label // 8) % 4
    path = "".join(f"M{x:g} {y:g}{_SHAPES[source][kind]}" for x, y in spots)
    return Cloud(source=source, label=label, kind=kind, path=path)


def steps(low: float, high: float) -> list[float]:
    """Return a few round numbers, from the last one not above `low` to the first one not below `high`."""
    if high <= low:
        return [0.0, 1.0]
    step = _round_step((high - low) / 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{at * step:.6g}") for at in range(first, last + 1)]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `least`; 1 for 0."""
    if least <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * part for part in (1, 2, 5, 10) if unit * part >= least * (1 - 1e-9))


def _axis(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Return the function from a value to its position on an axis that extends over all of `values`."""
    low, high = values[0], values[-1]

    def position(value: float) -> float:
        share = 0.5 if low == high else (value - low) / (high - low)
        return round(start + share * (end - start), 1)

    return position


def _path(spots: Sequence[tuple[float, float] | None]) -> str:
    """Return the SVG path that joins points by lines; a missing point leaves a gap."""
    joined = zip([None, *spots], spots, strict=False)
    return "".join(f"{'L' if before else 'M'}{spot[0]} {spot[1]}" for before, spot in joined if spot)


def _summary(values: Mapping[str, Sequence[float | None]]) -> str:
    parts = []
    for name, line in values.items():
        present = [value for value in line if value is not None]
        if present:
            parts.append(f"{name}: first {present[0]:.3g}, last {present[-1]:.3g}.")
    return " ".join(parts)
