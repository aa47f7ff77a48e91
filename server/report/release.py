"""`release.md`: one page for the person who decides whether a run's texts are passed on.

It says what was tested, what was found, what was not tested and who decided, from the facts of the report alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from server.report.facts import Facts

FILE = "release.md"
TESTS = {
    "utility": "the accuracy of a classifier that learned from the texts, on real test texts",
    "utility encoder": "the accuracy of a second classifier, of the encoder's vectors",
    "language": "the perplexity of a language model that learned from the texts, on real test texts",
    "fidelity": "how near the texts are to real test texts, as a whole",
    "fidelity private": "how near the texts are to the hospitals' records, as a whole",
    "diversity": "how much the texts repeat themselves and each other",
    "privacy": "personal information in the texts, by rules for names, numbers and addresses",
    "nearest": "how near each text is to its nearest record, and how many records it repeats",
    "membership": "whether an attacker can tell which records took part",
    "canaries": "whether an attacker can tell which planted records took part",
    "disclosures": "whether the texts disclose more of the records than of records that no run saw",
    "subgroups": "the accuracy on the hospitals' records, and that of the worst label, length and hospital",
    "sites": "whether the texts tell one hospital from another",
}
"""Groups of figures that test the texts, by title, in words. All other groups of figures are references."""
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
    titles = {group.title for group in facts.metrics.groups}
    return {
        **plain,
        "tests": {title: words for title, words in TESTS.items() if title in titles},
        "untested": {title: words for title, words in TESTS.items() if title not in titles},
        "unseen": {title: words for title, words in UNSEEN.items() if title in titles},
        "worst": _worst(facts),
    }


def escaped(value: object) -> str:
    """Return a text from a setting or a file as one line of plain text in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))


def _worst(facts: Facts) -> dict[str, Any] | None:
    """Return the label with the lowest recall on test texts, and the mean recall of all labels.

    The result is None if no recall was measured.
    """
    recalls = {row.label: row.recall for row in facts.labels.rows if row.recall is not None}
    if not recalls:
        return None
    worst = min(recalls, key=lambda label: recalls[label])
    return {"label": worst, "recall": recalls[worst], "mean": sum(recalls.values()) / len(recalls)}
