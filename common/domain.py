"""Basic terms that coordinator and hospitals share."""

from dataclasses import dataclass, field

PartyId = int
"""Number of a party: its index in the roster."""

MOST_RECORDS = 2**20
"""Largest number of records that a party may declare, and the default for a party that declares none."""

NOT_STATED = "not stated"
"""Text in a plan in place of an unstated purpose or recipient."""


@dataclass(frozen=True, slots=True)
class Record:
    """One private record. No part of it has a repr, so that it cannot reach a log or a traceback.

    Attributes:
        text: The text of the record.
        label: The class of the record.
        user: The user whose record it is, if its file names users.
    """

    text: str = field(repr=False)
    label: str = field(repr=False)
    user: str | None = field(default=None, repr=False)
