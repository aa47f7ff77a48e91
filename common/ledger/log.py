"""The log of a ledger inside one transaction: its events, checked, and the entries that they make.

    kind        body                                                 meaning
    charge      plan, query: digests; release; data_set; time        the answer may be given from now on
    survivors   parties                                              the only parties whose sum may be opened
    close                                                            the answer is erased for good

Run and position (the number of the answer in the run) name the entry that an event is about.
"""

import hmac
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from common.domain import PartyId
from common.errors import ConfigError, InternalError
from common.ledger.chain import Event, broken, canonical, follow, seal
from common.privacy.accountant import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charged answer.

    Attributes:
        run: Name of the run.
        index: Number of the answer in the run.
        plan_digest: Digest of the agreed plan.
        query_digest: Digest of the query as asked.
        release: Cost of the answer.
        data_set: Name of the records that it was charged to; empty if none was given, as at the coordinator.
        charged: Time of the charge, ISO 8601 in UTC.
        answer: The noised answer, from its keeping until the entry is closed; none in the coordinator's ledger.
        survivors: Parties whose unmasking shares were given, or None before.
        committed: Whether the round is over.
    """

    run: str
    index: int
    plan_digest: bytes
    query_digest: bytes
    release: Release
    data_set: str = ""
    charged: str = ""
    answer: bytes | None = field(default=None, repr=False)
    survivors: frozenset[PartyId] | None = None
    committed: bool = False

    @property
    def cost(self) -> Release:
        """The release, with the run in the name of its subsample: subsamples of other runs are different ones."""
        draw = self.release.draw and json.dumps([self.run, self.release.draw])
        return replace(self.release, draw=draw)


class Log:
    """Events in their order, and entries in the order of their charges.

    Args:
        database: A connection inside a transaction, with the write lock if anything is appended.
        path: The file, named in errors.

    Raises:
        LedgerError: If the chain is broken, or events or answers do not fit together.
    """

    def __init__(self, database: Connection, path: Path) -> None:
        self.database = database
        row = database.execute("SELECT value FROM meta WHERE name = 'key'").fetchone()
        if row is None:
            raise broken(f"{path}, key")
        self.key: bytes = row[0]
        # Derived from the key, so that replacing the key breaks the chain: with another key all records would seem new.
        self.start = hmac.digest(self.key, b"caucus ledger 2, chain", "sha256")
        rows = database.execute("SELECT sequence, run, position, kind, body, chain FROM events ORDER BY sequence")
        self.events = follow(self.start, rows, where=path)
        self.entries: dict[tuple[str, int], Entry] = {}
        for event in self.events:
            try:
                self._apply(event)
            except (LookupError, TypeError, ValueError, ConfigError) as error:
                raise broken(f"{path}, event {event.sequence}") from error
        for run, index, answer in database.execute("SELECT run, position, answer FROM answers"):
            entry = self.entries.get((run, index))
            if entry is None or entry.committed:
                raise broken(f"{path}, run {run}, answer {index}")
            self.entries[run, index] = replace(entry, answer=answer)

    @property
    def head(self) -> bytes:
        """Digest of all events so far."""
        return self.events[-1].chain if self.events else self.start

    def reserved(self, run: str, index: int) -> Entry:
        """An entry that was reserved before."""
        try:
            return self.entries[run, index]
        except KeyError:
            raise InternalError("an answer that was never reserved", where=f"run {run}, answer {index}") from None

    def charge(self, entry: Entry) -> None:
        """Appends the charge of a new entry."""
        body = {
            "plan": entry.plan_digest.hex(),
            "query": entry.query_digest.hex(),
            "release": entry.release.to_dict(),
            "data_set": entry.data_set,
            "time": entry.charged,
        }
        self._append(entry.run, entry.index, "charge", body)

    def survivors(self, entry: Entry, parties: list[PartyId]) -> None:
        """Appends the parties that an entry's sum is over."""
        self._append(entry.run, entry.index, "survivors", {"parties": parties})

    def close(self, entry: Entry) -> None:
        """Appends the end of an entry."""
        self._append(entry.run, entry.index, "close", {})

    def _append(self, run: str, index: int, kind: str, body: dict[str, Any]) -> None:
        event = seal(self.head, sequence=len(self.events) + 1, run=run, position=index, kind=kind, body=canonical(body))
        self.database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (event.sequence, event.run, event.position, event.kind, event.body, event.chain),
        )

    def _apply(self, event: Event) -> None:
        place = (event.run, event.position)
        body = json.loads(event.body)
        match event.kind:
            case "charge" if place not in self.entries:
                self.entries[place] = Entry(
                    run=event.run,
                    index=event.position,
                    plan_digest=bytes.fromhex(body["plan"]),
                    query_digest=bytes.fromhex(body["query"]),
                    release=Release.from_dict(body["release"]),
                    data_set=body["data_set"],
                    charged=body["time"],
                )
            case "survivors" if self.entries[place].survivors is None and not self.entries[place].committed:
                self.entries[place] = replace(self.entries[place], survivors=frozenset(body["parties"]))
            case "close" if not self.entries[place].committed:
                self.entries[place] = replace(self.entries[place], committed=True)
            case _:
                raise ValueError(event.kind)
