"""`release.md`: one page for the person who decides whether a run's texts are passed on.

It says what was tested, what was found, what was not tested and who decided, from the facts of the report alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from server.documents.metrics import GENERAL
from server.report.facts import Facts

FILE = "release.md"
OF_SOME = {
    "synthetic": "the accuracy of a classifier that learned from the texts, trained once, on real test texts",
    "label sets": "how well classifiers that learned from the texts find the labels of real test texts",
    "nearness": "how near the texts are to real test texts, beside texts of the same models without the hospitals",
    "federated": "the accuracy of a classifier that learned from the texts on hospitals' records, by a noised count",
    "spans": "how well a model that learned from the texts marks entities in real test texts",
    "sections": "how the order and the lengths of sections differ from those of real test texts",
}
"""Groups of figures that test the texts of some tasks or settings alone: they are named only where they were begun."""
TESTS = {
    "utility": "the accuracy of a classifier that learned from the texts, on real test texts",
    "utility encoder": "the accuracy of a second classifier, of the encoder's vectors",
    "language": "the perplexity of a language model that learned from the texts, on real test texts",
    "fidelity": "how near the texts are to real test texts, as a whole",
    "fidelity private": "how near the texts are to the hospitals' records, as a whole",
    "diversity": "how much the texts repeat themselves and each other",
    "privacy": "of 1,000 texts, those with personal information, by rules for names, numbers and addresses",
    "membership": "whether an attacker can tell which records took part",
    "canaries": "whether an attacker can tell which planted records took part",
    "disclosures": "whether the texts disclose more of the records than of records that no run saw",
    "subgroups": "the accuracy on the hospitals' records, and that of the worst label, length and hospital",
    "sites": "whether the texts tell one hospital from another",
}
"""Groups of figures that test the texts, by title, in words. All other groups, but `OF_SOME`, are references."""
UNSEEN = {
    "disclosures": "what none of its features shows, such as a style, a translation or the same in other words; "
    "records whose text occurs more than once; a few records among many; a person with several records. A hospital "
    "repeats the test on records of its own with caucus-party audit",
}
"""Title of a test's group to a description of what the test cannot find."""
_MARKUP = re.compile(r"([\\`*_|<>\[\]#])")


def view(facts: Facts, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of the template `release.md`.

    Args:
        facts: Facts of the run.
        plain: The content of `report.json`.
    """
    tests, reasons = OF_SOME | TESTS, _reasons(facts)
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
            if title not in titles and (title in TESTS or reasons.get(title))
        },
        "reasons": reasons,
        "unseen": {title: words for title, words in UNSEEN.items() if title in titles},
        "worst": (worst := named.get("utility: worst label")) and worst.value is not None and worst,
    }


def escaped(value: object) -> str:
    """Return a text from a setting or a file as one line of plain text in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))


def _reasons(facts: Facts) -> dict[str, str]:
    """Return why figures are missing, keyed by the title of their group; a whole group may be one missing figure."""
    figures = [(group.title, figure) for group in facts.metrics.groups for figure in group.figures]
    whole = {figure.name: figure.reason for title, figure in figures if title == GENERAL and figure.reason}
    return {title: figure.reason for title, figure in reversed(figures) if figure.reason} | whole
