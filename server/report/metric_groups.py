"""The figures of `metrics.json` in groups; the report knows no metric by name.

A figure is a number, or a mapping with a "value" (None, and a "reason", if it could not be computed), an "interval" of
two numbers, the number of "rows" behind it and a "definition" of its own. A mapping of figures is a group, with a
"definition" and a "note"; mappings within it give longer names. "simulation_only" marks all figures of a mapping as
computed from private records.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

_ABOUT = {"definition", "note", "simulation_only", "interval", "reason", "value", "rows"}
GENERAL = "in general"
"""Title of the group for figures outside any group."""


def groups(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Groups in the file's order, each with "title", "definition", "note", "private" and "figures".

    A figure has "name", "value" (may be None), "interval", "rows", "definition", "reason" and "private".
    """
    single = {name: value for name, value in metrics.items() if not _is_group(value)}
    all_groups = [_as_group(GENERAL, single)]
    all_groups += [_as_group(name, value) for name, value in metrics.items() if _is_group(value)]
    return [group for group in all_groups if group["figures"]]


def by_name(metrics: Mapping[str, Any]) -> dict[str, float]:
    """All figures that have a finite value, by group and name."""
    figures = {name: figure["value"] for name, figure in _named(metrics)}
    return {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}


def private_names(metrics: Mapping[str, Any]) -> frozenset[str]:
    """Names, as in `by_name`, of the figures that were computed from private records."""
    return frozenset(name for name, figure in _named(metrics) if figure["private"])


def _named(metrics: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for group in groups(metrics):
        for figure in group["figures"]:
            yield f"{group['title']}: {figure['name']}", figure


def _as_group(title: str, content: Mapping[str, Any]) -> dict[str, Any]:
    simulation_only = _simulation_only(content)
    return {
        "title": title.replace("_", " "),
        "definition": content.get("definition"),
        "note": "; ".join(_notes(content)) or None,
        "private": simulation_only,
        "figures": list(_figures(content, "", simulation_only=simulation_only)),
    }


def _notes(content: Mapping[str, Any]) -> Iterator[str]:
    """Texts of a group other than its definition."""
    for key, value in content.items():
        if isinstance(value, str) and key != "definition" and not _is_figure(value):
            yield value if key == "note" else f"{str(key).replace('_', ' ')}: {value}"


def _figures(content: Mapping[str, Any], above: str, *, simulation_only: bool) -> Iterator[dict[str, Any]]:
    for key, value in content.items():
        if key in _ABOUT:
            continue
        name = above + str(key).replace("_", " ")
        if _is_figure(value):
            yield _as_figure(
                name, value if isinstance(value, Mapping) else {"value": value}, simulation_only=simulation_only
            )
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{name}: ", simulation_only=simulation_only or _simulation_only(value))


def _as_figure(name: str, figure: Mapping[str, Any], *, simulation_only: bool) -> dict[str, Any]:
    value, interval = figure.get("value"), figure.get("interval")
    return {
        "name": name,
        # Infinity is a string in JSON.
        "value": None if value is None else float(value) if isinstance(value, str) else value,
        "interval": None if interval is None else [float(end) for end in interval],
        "rows": figure.get("rows"),
        "definition": figure.get("definition"),
        "reason": figure.get("reason"),
        "private": simulation_only or _simulation_only(figure),
    }


def _is_figure(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, Mapping):
        return "value" in value or "reason" in value
    return value in ("inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_group(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, Mapping) and not _is_figure(value)


def _simulation_only(content: Mapping[str, Any]) -> bool:
    return bool(content.get("simulation_only"))
