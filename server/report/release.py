"""`release.md`: one page for the person who decides whether a run's texts are passed on.

It says what was tested, what was found, what was not tested and who decided, from the facts of the report alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from common.page.words import catalogue
from server.documents.metrics import GENERAL
from server.report.facts import Facts

FILE = "release.md"
_MARKUP = re.compile(r"([\\`*_|<>\[\]#])")


def view(facts: Facts, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of the template `release.md`.

    Args:
        facts: Facts of the run.
        plain: The content of `report.json`.
    """
    say = catalogue(__package__)
    always, of_some, unseen = (vars(group) for group in (say.tests, say.tests_of_some, say.unseen))
    tests, reasons = of_some | always, _reasons(facts)
    tested = [
        group
        for group in facts.metrics.groups
        if group.title in tests and any(figure.value is not None for figure in group.figures)
    ]
    titles = {group.title for group in tested}
    if "utility" in titles:  # has the same accuracy
        tested = [group for group in tested if group.title != "synthetic"]
    named = facts.metrics.named
    return {
        **plain,
        "tests": tests,
        "tested": tested,
        "untested": {
            title: words
            for title, words in tests.items()
            if title not in titles and (title in always or reasons.get(title))
        },
        "reasons": reasons,
        "unseen": {title: words for title, words in unseen.items() if title in titles},
        "worst": (worst := named.get("utility: worst label")) and worst.value is not None and worst,
    }


def escape_markdown(value: object) -> str:
    """Return a text from a setting or a file as one line of plain text in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))


def _reasons(facts: Facts) -> dict[str, str]:
    """Return why figures are missing, keyed by the title of their group; a whole group may be one missing figure."""
    figures = [(group.title, figure) for group in facts.metrics.groups for figure in group.figures]
    whole = {figure.name: figure.reason for title, figure in figures if title == GENERAL and figure.reason}
    return {title: figure.reason for title, figure in reversed(figures) if figure.reason} | whole
