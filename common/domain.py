"""The nouns that both sides are written in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

PartyId = int
"""Position of a party in the roster, from 0."""

MOST_RECORDS = 2**20
"""Largest number of records that a party may declare; what is taken of one that declares none."""

NOT_STATED = "not stated"
"""What a plan says of a purpose or a recipient that nobody has stated."""

_PARTY = re.compile(r"\bparty ([0-9]{1,7})\b")


@dataclass(frozen=True, slots=True)
class Record:
    """One private record. Nothing of it has a repr, so that it cannot reach a log or a traceback.

    Attributes:
        text: What it says.
        label: Its class.
        user: Whose it is, where its file says so.
    """

    text: str = field(repr=False)
    label: str = field(repr=False)
    user: str | None = field(default=None, repr=False)


def named(text: str, names: Sequence[str]) -> str:
    """The text with the hospitals' names, by number, in place of "party 0" and so on, as far as there are names."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return names[number] if number < len(names) else found[0]

    return _PARTY.sub(name, text)
