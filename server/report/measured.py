"""The figures of `metrics.json` in groups, whatever there are: the report knows no metric by name.

A figure is a number, or a mapping with a "value" (or, in place of one, a "reason"), an "interval" of two numbers and a
"definition". A mapping of figures is a group; mappings within it give longer names. "simulation_only" anywhere marks
all that it holds as computed from private records.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

_ABOUT = {"definition", "simulation_only", "private", "interval", "reason", "value", "name", "title"}
GENERAL = "all figures"
"""Title of the group of figures that stand in none."""


def groups(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Groups in the file's order, each with "title", "definition", "private" and "figures".

    A figure has "name", "value" (None where there is none), "interval", "definition", "reason" and "private".
    """
    single = {name: value for name, value in metrics.items() if not _group(value)}
    found = [_made(GENERAL, single)] if any(_figure(value) for value in single.values()) else []
    found += [_made(name, value, private=_private(metrics)) for name, value in metrics.items() if _group(value)]
    return [group for group in found if group["figures"]]


def by_name(metrics: Mapping[str, Any]) -> dict[str, float]:
    """All figures that have a finite value, by group and name."""
    return {
        f"{group['title']}: {figure['name']}": figure["value"]
        for group in groups(metrics)
        for figure in group["figures"]
        if figure["value"] is not None and math.isfinite(figure["value"])
    }


def _made(title: str, content: Mapping[str, Any], *, private: bool = False) -> dict[str, Any]:
    private = private or _private(content)
    return {
        "title": str(content.get("title", title)).replace("_", " "),
        "definition": content.get("definition"),
        "private": private,
        "figures": list(_figures(content, "", private=private)),
    }


def _figures(content: Mapping[str, Any], above: str, *, private: bool) -> Iterator[dict[str, Any]]:
    for key, value in content.items():
        if key in _ABOUT:
            continue
        name = above + str(key).replace("_", " ")
        if _figure(value):
            yield _one(name, value if isinstance(value, Mapping) else {"value": value}, private=private)
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{name}: ", private=private or _private(value))


def _one(name: str, figure: Mapping[str, Any], *, private: bool) -> dict[str, Any]:
    value = figure.get("value")
    return {
        "name": str(figure.get("name", name)),
        "value": float(value) if isinstance(value, str) else value,  # "inf", which JSON lacks
        "interval": figure.get("interval"),
        "definition": figure.get("definition"),
        "reason": figure.get("reason"),
        "private": private or _private(figure),
    }


def _figure(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, Mapping):
        return "value" in value or "reason" in value
    return value in ("inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool))


def _group(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, Mapping) and not _figure(value)


def _private(content: Mapping[str, Any]) -> bool:
    return bool(content.get("simulation_only") or content.get("private"))
