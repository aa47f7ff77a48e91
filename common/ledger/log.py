"""The log of a ledger inside one transaction: its checked events, and the entries derived from them.

    kind        body                                                 meaning
    charge      digests of plan and query, release, data_set, time   the answer may be given from now on
    keep                                                             the noised answer is stored, and may be sent
    survivors   parties                                              the only parties whose sum may be opened
    unmask                                                           the shares that open that sum may be sent
    close                                                            the answer is erased for good
    end         time                                                 the run is over: nothing more is charged in it

Run and position (the index of the answer in the run) identify the entry that an event concerns; `end` concerns a run,
and its position is 0.
"""

import hmac
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

from common.domain import PartyId
from common.errors import ConfigError, InternalError
from common.ledger.chain import Event, broken_ledger_error, canonical, follow, seal
from common.privacy.accountant import ReleasedAnswers


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charged answer.

    Attributes:
        run: Name of the run.
        index: Index of the answer in the run.
        plan_digest: Digest of the agreed plan.
        query_digest: Digest of the query as asked.
        release: Cost of the answer.
        data_set: Name of the records that were charged; empty if no name was given, as at the coordinator.
        charged: Time of the charge, ISO 8601 in UTC.
        kept: Whether an answer was stored; an earlier version stored answers without an event, so that this is False.
        answer: The noised answer, which is stored until the entry is closed; the coordinator's ledger never stores it.
        survivors: The only parties whose sum may be opened, or None before they are recorded.
        unmasked: Whether shares that open the entry's sum may have been sent.
        committed: Whether the round is over.
    """

    run: str
    index: int
    plan_digest: bytes
    query_digest: bytes
    release: ReleasedAnswers
    data_set: str = ""
    charged: str = ""
    kept: bool = False
    answer: bytes | None = field(default=None, repr=False)
    survivors: frozenset[PartyId] | None = None
    unmasked: bool = False
    committed: bool = False

    @property
    def cost(self) -> ReleasedAnswers:
        """The release, with the run's name added to its subsample's name, since each run draws separate subsamples."""
        if not self.release.draw:
            return self.release
        return replace(self.release, draw=json.dumps([self.run, self.release.draw]))


_Value = TypeVar("_Value")


class Log:
    """State derived from a ledger's events: its head, and the entries in the order of their charges.

    `Ledger` keeps a log after the transaction in which it was read, and uses it as long as `is_current` returns True.
    So the answers, which may be large, are not part of a log.

    Args:
        database: A connection inside a transaction.
        path: The file, named in errors.

    Attributes:
        key: The ledger's key.
        start: Chain before the first event.
        head: Digest of all events so far.
        events: Number of events so far.
        entries: Entries, keyed by run and index.
        runs: Indices of each run's entries.
        ended: Times at which runs ended for good, keyed by run.

    Raises:
        LedgerError: If the chain is broken, or events and answers are inconsistent.
    """

    def __init__(self, database: Connection, path: Path) -> None:
        row = database.execute("SELECT value FROM meta WHERE name = 'key'").fetchone()
        if row is None:
            raise broken_ledger_error(f"{path}, key")
        self.key: bytes = row[0]
        # Derived from the key, so that replacing the key breaks the chain: with another key all records would seem new.
        self.start = hmac.digest(self.key, b"caucus ledger 2, chain", "sha256")
        self._schema = _schema(database)
        self.head, self.events = self.start, 0
        self.entries: dict[tuple[str, int], Entry] = {}
        self.runs: dict[str, list[int]] = {}
        self.ended: dict[str, str] = {}
        self._values: dict[Any, Any] = {}
        self._releases: dict[str, ReleasedAnswers] = {}
        for event in self.read(database, path):
            try:
                self._apply(event)
            except (LookupError, TypeError, ValueError, ConfigError) as error:
                raise broken_ledger_error(f"{path}, event {event.sequence}") from error
        stored = {(run, index) for run, index in database.execute("SELECT run, position FROM answers")}
        wanted = {place for place, entry in self.entries.items() if entry.kept and not entry.committed}
        for run, index in sorted(stored | wanted):
            entry = self.entries.get((run, index))
            if entry is None or entry.committed or (run, index) not in stored:
                raise broken_ledger_error(f"{path}, run {run}, answer {index}")

    def read(self, database: Connection, path: Path) -> Iterator[Event]:
        """Return an iterator over all events of the file, which checks each event against the chain before it."""
        rows = database.execute("SELECT sequence, run, position, kind, body, chain FROM events ORDER BY sequence")
        return follow(self.start, rows, where=path)

    def is_current(self, database: Connection) -> bool:
        """Return whether the file ends with this log's head, and the triggers that guard its rows were not dropped."""
        row = database.execute("SELECT sequence, chain FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        return (row or (0, self.start)) == (self.events, self.head) and _schema(database) == self._schema

    def contains(self, database: Connection, head: str) -> bool:
        """Return whether this digest, in lower-case hexadecimal, was once the head."""
        if head in (self.start.hex(), self.head.hex()):
            return True
        return database.execute("SELECT 1 FROM events WHERE lower(hex(chain)) = ?", (head,)).fetchone() is not None

    def reserved(self, run: str, index: int) -> Entry:
        """Return the entry with this run and index, which must have been reserved before."""
        try:
            return self.entries[run, index]
        except KeyError:
            raise InternalError("an answer that was never reserved", where=f"run {run}, answer {index}") from None

    def charge(self, database: Connection, entry: Entry) -> None:
        """Append the event that charges a new entry."""
        body = {
            "plan": entry.plan_digest.hex(),
            "query": entry.query_digest.hex(),
            "release": entry.release.to_dict(),
            "data_set": entry.data_set,
            "time": entry.charged,
        }
        self._append(database, entry.run, entry.index, "charge", body)

    def keep(self, database: Connection, entry: Entry) -> None:
        """Append the event after which an entry's stored answer may be sent.

        It has no digest of the answer, which could be guessed from it.
        """
        self._append(database, entry.run, entry.index, "keep", {})

    def survivors(self, database: Connection, entry: Entry, parties: list[PartyId]) -> None:
        """Append the event that names the parties whose answers an entry's sum contains."""
        self._append(database, entry.run, entry.index, "survivors", {"parties": parties})

    def unmask(self, database: Connection, entry: Entry) -> None:
        """Append the event after which the shares that open an entry's sum may be sent."""
        self._append(database, entry.run, entry.index, "unmask", {})

    def same_question(self, entry: Entry) -> Iterator[Entry]:
        """Yield the other entries in the same run for the same question."""
        for index in self.runs[entry.run]:
            other = self.entries[entry.run, index]
            if index != entry.index and other.query_digest == entry.query_digest:
                yield other

    def close(self, database: Connection, entry: Entry) -> None:
        """Append the event that closes an entry, and erase its answer, unless the entry is closed already."""
        if not entry.committed:
            self._append(database, entry.run, entry.index, "close", {})
            database.execute("DELETE FROM answers WHERE run = ? AND position = ?", (entry.run, entry.index))

    def close_before(self, database: Connection, run: str, index: int) -> None:
        """Close the entries of a run with a lower index."""
        for below in sorted(number for number in self.runs.get(run, ()) if number < index):
            self.close(database, self.entries[run, below])

    def end(self, database: Connection, run: str, when: str) -> None:
        """Close all entries of a run and erase its sample keys; append the event that ends it, unless it has ended."""
        self.close_before(database, run, sys.maxsize)
        database.execute("UPDATE samples SET key = NULL WHERE run = ? AND key IS NOT NULL", (run,))
        if run not in self.ended:
            self._append(database, run, 0, "end", {"time": when})

    def _append(self, database: Connection, run: str, index: int, kind: str, body: dict[str, Any]) -> None:
        event = seal(self.head, sequence=self.events + 1, run=run, position=index, kind=kind, body=canonical(body))
        database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (event.sequence, event.run, event.position, event.kind, event.body, event.chain),
        )
        self._apply(event)

    def _apply(self, event: Event) -> None:
        place = (self._same(event.run), event.position)
        body = json.loads(event.body)
        match event.kind:
            case "charge" if place not in self.entries:
                release = repr(body["release"])
                if release not in self._releases:
                    self._releases[release] = ReleasedAnswers.from_dict(body["release"])
                self.entries[place] = Entry(
                    run=place[0],
                    index=event.position,
                    plan_digest=self._same(bytes.fromhex(body["plan"])),
                    query_digest=bytes.fromhex(body["query"]),
                    release=self._releases[release],
                    data_set=self._same(body["data_set"]),
                    charged=body["time"],
                )
                self.runs.setdefault(place[0], []).append(event.position)
            case "keep" if not self.entries[place].kept and not self.entries[place].committed:
                self.entries[place] = replace(self.entries[place], kept=True)
            case "survivors" if self.entries[place].survivors is None and not self.entries[place].committed:
                self.entries[place] = replace(self.entries[place], survivors=self._same(frozenset(body["parties"])))
            case "unmask" if self.entries[place].survivors is not None and not self._over(place):
                self.entries[place] = replace(self.entries[place], unmasked=True)
            case "close" if not self.entries[place].committed:
                self.entries[place] = replace(self.entries[place], committed=True)
            case "end" if event.position == 0 and event.run not in self.ended:
                self.ended[place[0]] = str(body["time"])
            case _:
                raise ValueError(event.kind)
        self.events, self.head = event.sequence, event.chain

    def _over(self, place: tuple[str, int]) -> bool:
        return self.entries[place].unmasked or self.entries[place].committed

    def _same(self, value: _Value) -> _Value:
        """Return one object for equal values, to save memory: most entries share their run, plan and survivors."""
        same: _Value = self._values.setdefault(value, value)
        return same


def _schema(database: Connection) -> int:
    """Return SQLite's schema version, which changes whenever a table or a trigger changes."""
    ((number,),) = database.execute("PRAGMA schema_version")
    return int(number)
