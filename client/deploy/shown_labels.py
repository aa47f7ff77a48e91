"""Labels of the hospital's own records, as all commands and the page show them: few, and never a whole text.

If the columns of a file were swapped, its labels would be texts.
"""

from collections import Counter
from collections.abc import Mapping

from common.spelling import BLANK

MOST_LABELS, LONGEST_LABEL = 30, 40
"""Maximum number of labels shown, and of characters shown of each."""


def shown_labels(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent labels, as shown, with their numbers of records; the last entry counts all others."""
    shown = Counter[str]()
    for label, count in Counter(counts).most_common(MOST_LABELS):
        shown[shown_label(label)] += count
    if len(counts) > MOST_LABELS:
        shown[f"and {len(counts) - MOST_LABELS} others"] = sum(counts.values()) - shown.total()
    return dict(shown)


def shown_label(label: str) -> str:
    """Return the label, cut, in a form that fits on one line and cannot move a terminal's cursor."""
    signs = (sign if sign.isprintable() and sign not in BLANK else ascii(sign)[1:-1] for sign in label)
    seen = "".join(signs)
    return seen if len(seen) <= LONGEST_LABEL else f"{seen[:LONGEST_LABEL]}..."
