"""Documents on the hospitals of a deployed run: their versions of Caucus, and the delivery of the texts.

`hospitals.json` contains the version of Caucus at each hospital, as the hospital reported it when it last opened the
run. The version is unverified, so it is only displayed. `sending/sent.json` lists the hospitals that were sent the
run's texts. When the texts are sent again, the file is renamed to `sending/before.json`, which is read until the new
file exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from server.documents.files import Document, read_document


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalVersion(Document):
    """The version of Caucus at one hospital, as the hospital reported it.

    Attributes:
        caucus: Version of Caucus, in the form that `common/wire.py` accepts; empty if the hospital reported none.
        at: Time at which the hospital opened the run, such as 2026-11-24 09:00:00Z.
    """

    caucus: str
    at: str

    def __str__(self) -> str:
        """Return the version in words, for use after the hospital's name."""
        return f"{f'caucus {self.caucus}' if self.caucus else 'version unknown'} at {self.at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalVersions(Document):
    """The `hospitals.json` document.

    Attributes:
        versions: The version at each hospital that has opened the run, keyed by the hospital's name.
    """

    FILE: ClassVar[str] = "hospitals.json"

    versions: Mapping[str, HospitalVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentDocument(Document):
    """The `sending/sent.json` document.

    Attributes:
        texts: Hex SHA-256 of the texts. A hospital that was only sent earlier texts with another digest does not have
            these texts.
        sent_at: Time of the last sending, to the microsecond.
        received: Time at which each hospital that has the texts accepted them, keyed by the hospital's name.
        missing: Reason why a hospital that answered the run does not have the texts, keyed by the hospital's name.
    """

    FILE: ClassVar[str] = "sent.json"
    BEFORE: ClassVar[str] = "before.json"

    texts: str
    sent_at: str
    received: Mapping[str, str]
    missing: Mapping[str, str]

    @classmethod
    def last(cls, folder: Path, problems: list[str]) -> Self | None:
        """Return the last completed delivery, which is the current or the previous one; None if none was completed.

        The arguments are the same as for `read_document`.
        """
        before = folder / cls.BEFORE
        return cls.read(folder, problems, needed=False) or read_document(before, cls.parse, problems, needed=False)
