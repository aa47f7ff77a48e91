"""Layout of a map: points on a plane by source and label, in the coordinates of `plots.py`.

Labels differ in shape and in colour, sources in whether the shapes are filled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.report.plots import WIDTH, Frame

_SHAPES = (
    # A dot, a square, a triangle, a diamond.
    ("h0", "m-2.2-2.2h4.4v4.4h-4.4z", "m0-3l2.8 5h-5.6z", "m0-3.2l3.2 3.2l-3.2 3.2l-3.2-3.2z"),
    # Two crosses, two angles.
    ("m-2-2l4 4m0-4l-4 4", "m-2.7 0h5.4m-2.7-2.7v5.4", "m-2.5 2.2l2.5-4.4l2.5 4.4", "m-2.5-2.2l2.5 4.4l2.5-4.4"),
)
"""SVG path of a point, relative to its place, by source and kind."""


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

    sources: tuple[str, ...]
    labels: tuple[str, ...]
    legend: tuple[tuple[Cloud, ...], ...]
    clouds: tuple[Cloud, ...]
    rows: tuple[tuple[str, str, int, float, float], ...]
    kind: str = "dots"


Points = Sequence[Sequence[float]]


def dots(key: str, title: str, note: str, sources: Mapping[str, Mapping[str, Points]]) -> Dots | None:
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
        x_ticks=(),
        y_ticks=(),
        height=size,
    )


def _cloud(source: int, label: int, spots: Sequence[tuple[float, float]]) -> Cloud:
    # After eight colours the shapes move on by one, so that no two of 32 labels look alike.
    kind = (label + label // 8) % 4
    path = "".join(f"M{x:g} {y:g}{_SHAPES[source][kind]}" for x, y in spots)
    return Cloud(source=source, label=label, kind=kind, path=path)
