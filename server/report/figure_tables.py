"""Groups of figures as tables: each figure with the direction of improvement, and references in separate columns.

A group serves as a reference for an earlier group if its title is the earlier title plus one word, its figures have the
same names, and both were measured on the same test texts: "fidelity" compares synthetic texts with real ones, and
"fidelity real" compares two sets of real texts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from common.page.words import catalogue
from common.phrases import capital
from server.documents.metrics import GENERAL, FigureGroup

_OF_UTILITY = {
    *("synthetic", "zero shot", "majority class", "real private", "released classifier", "federated"),
    *("utility", "utility hard labels", "utility with transfer", "utility real", "utility encoder"),
}
"""Groups that contain the accuracy of a classifier."""
_IN_UTILITY = ("accuracy", "macro f1", "trained on", "records", "as many: accuracy", "as many: macro f1")
"""Figures of these groups that the table of utility shows."""

_HEADINGS = {"real": "real against real", "private": "against private records", "public": "public text"}


def better(name: str) -> str | None:
    """Return the direction in which a figure is better: "higher", "lower", or None for neither.

    Args:
        name: The title of the figure's group and the figure's name, as in "spans: real". That figure is an F1, whereas
            "real" in any other group is a distance.
    """
    names, known = {name, name.rpartition(": ")[2]}, catalogue(__package__).better
    if "of a kind: " in name or not names.isdisjoint(chain(*known.lower)):
        return "lower"
    return "higher" if not names.isdisjoint(chain(*known.higher)) else None


def tables(groups: Iterable[FigureGroup]) -> list[dict[str, Any]]:
    """Return the tables of a page, without the figures that the page shows elsewhere.

    Returns:
        Tables with "title", "private", "columns" (headings), "marked" (headings of private records), "rows",
        "has_rows", "has_words" and "notes". A row has "name", "better", "private", "cells" (a figure or None for each
        column), "rows" and "words".
    """
    stacks: list[list[FigureGroup]] = []
    for group in filter(None, map(_without_others, groups)):
        stack = next((stack for stack in stacks if _refers(group, stack[0])), None)
        if stack is None:
            stacks.append([group])
        else:
            stack.append(group)
    return [_table(stack) for stack in stacks]


def _without_others(group: FigureGroup) -> FigureGroup | None:
    """Return the group without the figures that the tables of utility and labels show; None if no figure is left."""
    title, figures = group.title, group.figures
    if title == "label shares":
        return None
    if title in _OF_UTILITY:
        # The number of records that the parties counted with noise is a separate figure.
        elsewhere = ("accuracy",) if title == "federated" else _IN_UTILITY
        figures = tuple(figure for figure in figures if figure.name not in elsewhere)
        group = replace(group, definition=None, note=None)
    if title == GENERAL:
        figures = tuple(figure for figure in figures if figure.name not in {*_OF_UTILITY, "test records"})
        group = replace(group, definition=None)
    return replace(group, figures=figures) if figures else None


def _refers(group: FigureGroup, to: FigureGroup) -> bool:
    before, _, last = group.title.rpartition(" ")
    return bool(before == to.title and last and _names(group) == _names(to) and group.test == to.test)


def _names(group: FigureGroup) -> list[str]:
    return [figure.name for figure in group.figures]


def _table(stack: Sequence[FigureGroup]) -> dict[str, Any]:
    first, *references = stack
    headings = [_HEADINGS.get(last := group.title.rpartition(" ")[2], last) for group in references]
    rows = [
        {
            "name": figure.name,
            "better": better(f"{first.title}: {figure.name}"),
            "private": figure.simulation_only,
            "cells": [group.figures[at] for group in stack],
            "rows": figure.rows,
            "words": figure.reason or figure.definition or "",
        }
        for at, figure in enumerate(first.figures)
    ]
    return {
        "title": capital(first.title),
        "private": first.simulation_only,
        "columns": ["synthetic texts" if references else "value", *headings],
        "marked": [heading for heading, group in zip(headings, references, strict=True) if group.simulation_only],
        "rows": rows,
        "has_rows": any(figure.rows for figure in first.figures),
        "has_words": any(figure.reason or figure.definition for figure in first.figures),
        "notes": list(_notes(["", *headings], stack)),
    }


def _notes(headings: Sequence[str], stack: Sequence[FigureGroup]) -> Iterable[dict[str, str]]:
    """Yield the definitions of the columns, each only once, and their notes."""
    said: set[str] = set()
    for heading, group in zip(headings, stack, strict=True):
        for text in (group.note and f"{group.note}.", group.definition):
            if text and text not in said:
                said.add(text)
                yield {"of": capital(heading), "text": text}
