"""Advice on the users and labels of the hospital's own records, for `caucus-party check`; no user is ever named."""

from collections.abc import Sequence

from client.deploy.shown_labels import MOST_LABELS, shown_label
from common.domain import Record
from common.spelling import alike


def on_users(private: Sequence[Record], unit: str) -> list[str]:
    """Return advice where several names may be one user's, or where there are none although users are protected.

    Args:
        private: The hospital's records.
        unit: The unit that the hospital's limits protect, "sample" or "user".
    """
    users = {record.user for record in private} - {None}
    similar = sum(map(len, alike(user for user in users if user is not None)))
    advice = []
    if similar:
        advice.append(
            f"{similar} of the {len(users)} users differ from another one in case, spaces or encoding alone, and each "
            "is protected as a user apart: write each user in one way"
        )
    if unit == "user" and private and not users:
        advice.append("Name the users in a column `user`: without it, all records count as those of one user")
    return advice


def on_labels(private: Sequence[Record]) -> list[str]:
    """Return advice on labels that look like others, or that have spaces at an end; plans compare each letter."""
    labels = list(dict.fromkeys(label for record in private for label in record.labels))
    groups = [" and ".join(map(_quoted, group)) for group in alike(labels)[:MOST_LABELS]]
    spaced = [_quoted(label) for label in labels if label != label.strip()][:MOST_LABELS]
    advice = []
    if groups:
        advice.append(f"A plan's labels are compared letter by letter: write {', '.join(groups)} in one way")
    if spaced:
        advice.append(f"Remove the spaces at the ends of {', '.join(spaced)}, unless plans have them too")
    return advice


def _quoted(label: str) -> str:
    # As ASCII, since two encodings of the same letters look the same.
    return f"'{shown_label(ascii(label)[1:-1])}'"
