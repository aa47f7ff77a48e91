"""What a run of a deployment knows of its hospitals.

`hospitals.json` has the version of Caucus at each one, as it reported it when it last opened the run: the
hospital's word, which is shown and decides nothing. `sending/sent.json` has the hospitals that were sent the run's
texts; when they are sent again, it becomes `sending/before.json`, until the new one is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from server.documents.files import Document, read


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalVersion(Document):
    """The version of Caucus at one hospital, as the hospital reported it.

    Attributes:
        caucus: Version of Caucus, in the form that `common/wire.py` admits; empty if the hospital reported none.
        at: Time of the opening, such as 2026-11-24 09:00:00Z.
    """

    caucus: str
    at: str

    def __str__(self) -> str:
        """Return it in plain words, to follow the hospital's name."""
        return f"{f'caucus {self.caucus}' if self.caucus else 'version unknown'} at {self.at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalVersions(Document):
    """The document `hospitals.json`.

    Attributes:
        versions: That of each hospital that has opened the run, by the hospital's name.
    """

    FILE: ClassVar[str] = "hospitals.json"

    versions: Mapping[str, HospitalVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Document):
    """The document `sending/sent.json`.

    Attributes:
        texts: Hex SHA-256 of the texts: who was sent others before does not have these.
        sent_at: Time of the last sending, to the microsecond.
        received: Time at which each hospital that has the texts took them, by the hospital's name.
        missing: Why each other hospital that answered the run does not have them, by the hospital's name.
    """

    FILE: ClassVar[str] = "sent.json"
    BEFORE: ClassVar[str] = "before.json"

    texts: str
    sent_at: str
    received: Mapping[str, str]
    missing: Mapping[str, str]

    @classmethod
    def last(cls, folder: Path, problems: list[str]) -> Self | None:
        """Return that of the last sending that was done, be it the present one or one before; None if there is none.

        The arguments are those of `read`.
        """
        before = folder / cls.BEFORE
        return cls.read(folder, problems, needed=False) or read(before, cls.parse, problems, needed=False)
