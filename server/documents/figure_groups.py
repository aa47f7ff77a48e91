"""Groups of figures in the format of `metrics.json`.

A figure is a number, or a mapping with a "value" (null if it could not be computed; then there is a "reason"), an
"interval" of two numbers, the number of "rows" behind it and a separate "definition". A mapping of figures is a group,
with a "definition" and a "note"; the name of a figure in a nested mapping begins with the name of that mapping.
"simulation_only" marks all figures in a mapping as computed from private records.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.documents.codec import is_number
from server.documents.files import Document

GENERAL = "in general"
"""Title for the group of figures that belong to no other group."""
_ABOUT = {"definition", "note", "simulation_only", "interval", "reason", "value", "rows", "confusion"}

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Document):
    """One figure of a group.

    Attributes:
        name: The figure's name within its group.
        value: The figure's value; None if it could not be computed.
        interval: The figure's 95 % interval.
        rows: Number of texts or records from which it was computed.
        definition: Definition of this figure, in addition to its group's.
        reason: Why there is no value.
        simulation_only: Whether it was computed from private records.
    """

    name: str
    value: float | None
    interval: Interval | None
    rows: int | None
    definition: str | None
    reason: str | None
    simulation_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureGroup(Document):
    """Figures with a common title, definition and note.

    Attributes:
        title: Title of the group.
        definition: Definition of its figures.
        test: Name of the file of test texts, if the figures were computed in a later evaluation.
        note: Remarks, and other texts of the group.
        simulation_only: Whether all of its figures were computed from private records.
        figures: The figures in the file's order.
    """

    title: str
    definition: str | None
    test: str | None = None
    note: str | None
    simulation_only: bool
    figures: tuple[Figure, ...]


def groups_of(content: Mapping[str, Any]) -> tuple[FigureGroup, ...]:
    """Return the figures outside any group as the first group, then all groups with figures in their original order.

    Raises:
        AttributeError, TypeError, ValueError: A figure is of the wrong format.
    """
    single = {name: value for name, value in content.items() if not _is_group(value)}
    grouped = {name: value for name, value in content.items() if _is_group(value)}
    made = [_as_group(GENERAL, single), *(_as_group(name, value) for name, value in grouped.items())]
    return tuple(group for group in made if group.figures)


def shareable(figures: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yield all finite numbers with their names, joined by slashes.

    Figures that only a simulation can compute are left out, and so are confusion matrices, which have a number for each
    pair of labels.
    """
    if simulation_only(figures):
        return
    for name, value in figures.items():
        if isinstance(value, Mapping) and name not in _ABOUT:
            yield from shareable(value, f"{above}{name}/")
        elif (number := finite(value)) is not None:
            yield f"{above}{name}", number


def finite(value: object) -> float | None:
    """Return the value as a finite float; None for anything else."""
    return float(value) if is_number(value) and math.isfinite(value) else None


def _as_group(title: str, content: Mapping[str, Any]) -> FigureGroup:
    return FigureGroup(
        title=title.replace("_", " "),
        definition=content.get("definition"),
        test=test if isinstance(test := content.get("test"), str) else None,
        note="; ".join(_notes(content)) or None,
        simulation_only=simulation_only(content),
        figures=tuple(_figures(content, "", marked=simulation_only(content))),
    )


def _notes(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a group, except its definition."""
    for key, value in content.items():
        if isinstance(value, str) and key != "definition" and not _is_figure(value):
            yield value if key == "note" else f"{str(key).replace('_', ' ')}: {value}"


def _figures(content: Mapping[str, Any], above: str, *, marked: bool) -> Iterator[Figure]:
    for key, value in content.items():
        if key in _ABOUT:
            continue
        name = above + str(key).replace("_", " ")
        if _is_figure(value):
            yield _as_figure(name, value if isinstance(value, Mapping) else {"value": value}, marked=marked)
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{name}: ", marked=marked or simulation_only(value))


def _as_figure(name: str, figure: Mapping[str, Any], *, marked: bool) -> Figure:
    value, interval = figure.get("value"), figure.get("interval")
    low_and_high = None if interval is None else tuple(float(end) for end in interval)
    return Figure(
        name=name,
        value=float(value) if isinstance(value, str) else value,  # infinity is a text in JSON
        interval=low_and_high,  # type: ignore[arg-type]
        rows=figure.get("rows"),
        definition=figure.get("definition"),
        reason=figure.get("reason"),
        simulation_only=marked or simulation_only(figure),
    )


def _is_figure(value: object) -> bool:
    if isinstance(value, Mapping):
        return "value" in value or "reason" in value
    return value in ("inf", "-inf") or is_number(value)


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) and not _is_figure(value)


def simulation_only(content: Mapping[str, Any]) -> bool:
    """Return whether a mapping is marked as computed from private records."""
    return bool(content.get("simulation_only"))
