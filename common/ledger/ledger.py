"""The record, kept on disk, of all answers. The coordinator and each party keep one, and a party trusts only its own.

A ledger is an append-only log of events, sealed by a hash chain (`common/ledger/chain.py`) in one SQLite file
(`common/ledger/file.py`). An entry is one answer, identified by run and index; its state follows from its events. It is
charged when it is reserved, before any private data is accessed, so that a crash can lose an answer but never a charge:

    reserve ─▶ keep: the noised answer itself ─▶ survivors ─▶ unmask ─▶ commit: the answer is erased and can never be
    (charge)                                     (survivors)  (unmask)  (close)                           given again

Invariants:

1. Nothing is removed or rewritten except an entry's answer, erased by `commit`, and a run's sample keys, erased by
   `forget`. The database itself rejects other changes, and the chain reveals changes that bypass the database. The
   chain is checked when the file is opened. It is checked again whenever its last event differs from the last one that
   this process has seen, or a trigger was dropped or created. Checked events stay in memory, where edits of the file do
   not affect them; an edit that meets neither condition is detected at the next start or by `verify`.
2. One run has one plan: a run that continues under a different plan is refused.
3. Each run and index has one answer, the noised vector that was stored before anything was sent. A repeated query gets
   the same vector again, even if the records have changed since, so an interrupted round is answered at no cost:
   nothing new is revealed. Storing a key for the noise instead would leak: if the records had changed, two answers with
   the same noise would reveal the difference. A different query with the same run and index is refused. The same query
   is refused after the entry was closed. Until an answer is stored, the query is also refused for other records, since
   those records were not charged.
4. What may leave is an event before it leaves: the charge, the stored answer, the survivors, the unmasking. So a copy
   that lacks any of them lacks the head.
5. Each entry has one set of survivors. Once shares that open its sum may have been sent, this set is also the only one
   for its question, under any index in the run, since sums over two sets could be subtracted from each other.
6. Nothing more is charged in a run that has ended (`accept`): what was answered in it may be known to no ledger.

The budget over all runs applies to each record: a data set with one record appended must not get a fresh budget. So the
records of each data set are stored as keyed digests. A limit is compared with all charges to data sets that share a
record with the data set to be charged, inside the transaction that writes the charge (`common/ledger/data_sets.py`).

A ledger restored from a backup lacks later charges: note its head elsewhere (for a hospital, `client/noted_head.py`
does so). `accept` adds what it lacks.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import Connection
from threading import Lock

from common.domain import PartyId
from common.errors import (
    DamagedLedgerError,
    FullError,
    IncompleteLedgerError,
    InternalError,
    RefusedError,
    SurvivorsError,
)
from common.ledger import data_sets
from common.ledger.chain import RESTORE, Event
from common.ledger.file import LedgerFile
from common.ledger.log import Entry, Log
from common.privacy.accountant import ReleasedAnswers
from common.rng import secure_bytes
from common.system.log_lines import now

Allow = Callable[[tuple[ReleasedAnswers, ...]], None]
"""Function that raises RefusedError if these charges together are too many for one record."""

_KEY_BYTES = 32

MOST_KEPT = 2**28
"""Maximum total size, in bytes, of the stored answers of open runs, so that a coordinator that opens many runs and
closes none cannot fill disk and memory. The size depends only on the queries, so a refusal reveals nothing about the
records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Head of a ledger. If it is noted elsewhere, `verify` can later show whether anything before it was lost.

    Attributes:
        events: Number of events.
        chain: Hex digest of all events.
    """

    events: int
    chain: str


@dataclass(frozen=True, slots=True)
class ChargedRun:
    """How many answers were charged in a run, and the hex digest of its plan, which is empty if none was charged."""

    charges: int
    plan_digest: str


class Ledger:
    """A ledger of answers, safe for several threads and processes: each call is one transaction.

    Args:
        path: The file; it is created, readable by its owner only, if it does not exist.
        read_only: If True, the file is neither created nor changed.
        durable: Whether written events survive a power cut. False for a simulation, where many ledgers would spend most
            of the time waiting for the disk. A crash of the process loses nothing in either case.
        head: Hex digest of a head noted earlier, as for `verify`.

    Raises:
        LedgerError: Here and in every method: the file cannot be opened or written, is not a ledger of this version,
            was edited, or is damaged.
    """

    def __init__(
        self, path: Path | str, *, read_only: bool = False, durable: bool = True, head: str | None = None
    ) -> None:
        self._path = Path(path)
        self._lock = Lock()
        self._log: Log | None = None
        self._file = LedgerFile(self._path, secret=secure_bytes(_KEY_BYTES), read_only=read_only, durable=durable)
        self.verify(head)

    def reserve(
        self,
        *,
        run: str,
        index: int,
        plan_digest: bytes,
        query_digest: bytes,
        release: ReleasedAnswers,
        attempts: int = 1,
        data_set: str = "",
        allow: Allow | None = None,
    ) -> Entry:
        """Charge one answer, or return the entry that was charged before.

        Args:
            run: Name of the run.
            index: Index of the answer in the run.
            plan_digest: Digest of the agreed plan.
            query_digest: Digest of the query that was asked.
            release: Cost of this one answer.
            attempts: Number of attempts at each question. The first question has the indices from 0 to attempts - 1,
                the next one those from `attempts` on, and so on.
            data_set: Name of the records, as returned by the `data_set` method; an empty name stands for any records.
            allow: Function called before a new charge is written, with the costs of all charges to data sets that share
                a record with this data set; the new cost is the last. If the function raises, nothing is written. No
                other charge can be written in between.

        Returns:
            The entry in its current state.

        Raises:
            RefusedError: If a different query or different records were charged for this run and index or for another
                attempt at the question, or if the run has a different plan or has ended for good.
        """
        new = Entry(
            run=run,
            index=index,
            plan_digest=plan_digest,
            query_digest=query_digest,
            release=release,
            data_set=data_set,
            charged=now(),
        )
        place = f"run {run}, answer {index}"
        with self._open(write=True) as (log, database):
            if run in log.ended:
                raise RefusedError("the run has ended for good", where=place, do="Start a new run.")
            if any(log.entries[run, other].plan_digest != plan_digest for other in log.runs.get(run, ())):
                raise RefusedError("the run has another plan", do="Start a new run to use a new plan.")
            first = index - index % attempts
            same = (log.entries.get((run, other)) for other in range(first, first + attempts))
            if any(entry and entry.query_digest != query_digest for entry in same):
                raise RefusedError("another query was answered here", where=place)
            if (run, index) not in log.entries:
                charged = _charged(log, database, data_set)
                if allow:
                    allow((*(other.cost for other in charged), new.cost))
                log.charge(database, new)
                return new
            entry = _with_answer(log.entries[run, index], database)
        if entry.release != release:
            raise RefusedError("this answer has another cost", where=place)
        if entry.data_set != data_set and entry.answer is None and not entry.committed:
            raise RefusedError("other records than were charged", where=place, do="Bring them back, or start a new run")
        return entry

    def keep(self, run: str, index: int, answer: bytes) -> bytes:
        """Store a noised answer before it leaves the party; the first answer stored is final.

        Returns:
            The stored answer, which is the one to send.

        Raises:
            RefusedError: If the entry is closed.
            FullError: If the answers of open runs exceed `MOST_KEPT`.
        """
        with self._open(write=True) as (log, database):
            entry = _with_answer(log.reserved(run, index), database)
            if entry.committed:
                raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
            if entry.answer is not None:
                return entry.answer
            ((stored,),) = database.execute("SELECT coalesce(sum(length(answer)), 0) FROM answers")
            if stored + len(answer) > MOST_KEPT:
                raise FullError("answers of open runs", expected=f"{MOST_KEPT} bytes at most", where=f"run {run}")
            database.execute("INSERT INTO answers VALUES (?, ?, ?)", (run, index, answer))
            log.keep(database, entry)
        return answer

    def survivors(self, run: str, index: int, parties: AbstractSet[PartyId]) -> None:
        """Record the only set of parties whose sum may be opened; call this before sending a signature over it.

        Raises:
            SurvivorsError: If another set was recorded before, or no set was recorded before the entry was committed,
                or the same question was opened over another set.
        """
        with self._open(write=True) as (log, database):
            entry = log.reserved(run, index)
            _one_sum(log, entry, parties)
            if entry.survivors is None and not entry.committed:
                log.survivors(database, entry, sorted(parties))
            elif entry.survivors != parties:
                raise SurvivorsError("this set of survivors is not the first", where=f"run {run}, answer {index}")

    def unmask(self, run: str, index: int) -> None:
        """Record that the shares that open this entry's sum may be sent; call this before sending them.

        Repeated calls have no effect.

        Raises:
            SurvivorsError: If no survivors were recorded, or the same question was opened over another set.
            RefusedError: If the entry is closed.
        """
        with self._open(write=True) as (log, database):
            entry = log.reserved(run, index)
            if entry.survivors is None:
                raise SurvivorsError("no survivors were recorded", where=f"run {run}, answer {index}")
            if entry.unmasked:
                return
            if entry.committed:
                raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
            _one_sum(log, entry, entry.survivors)
            log.unmask(database, entry)

    def commit(self, run: str, index: int) -> None:
        """Close an entry and erase its answer. Repeated calls have no effect."""
        with self._open(write=True) as (log, database):
            log.close(database, log.reserved(run, index))

    def commit_before(self, run: str, index: int) -> None:
        """Commit all entries of the run with a lower index, as `commit` does."""
        with self._open(write=True) as (log, database):
            log.close_before(database, run, index)

    def accept(
        self,
        lost: Iterable[Entry],
        runs: Iterable[str] = (),
        *,
        going_on: bool = False,
        note: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """Charge what another ledger charged, and end every run, all in one transaction.

        Nobody knows which answers the other ledger gave since, and which sums it opened. So no answer is ever given
        again, and nothing more is charged in a run that is known from before.

        Args:
            lost: The charges that this ledger lacks.
            runs: Names of runs that may have been answered, in addition to those that this ledger has.
            going_on: Whether the present runs go on, since the other ledger answered in none of them; only the charges
                in `lost` are closed then.
            note: Function that puts this on record elsewhere, given the hex digests of the heads before and after. It
                is called before the ledger has any of this, and nothing is accepted if it raises an error.
        """
        with self._open(write=True) as (log, database):
            head = log.head.hex()
            before = frozenset(log.runs) if going_on else frozenset()
            for entry in lost:
                log.charge(database, entry)
            when = now()
            for run in sorted({*log.runs, *runs} - before):
                log.end(database, run, when)
            note(head, log.head.hex())

    def ended(self, run: str) -> str:
        """Return when a run ended for good, ISO 8601 in UTC; empty if it did not."""
        with self._open() as (log, _):
            return log.ended.get(run, "")

    def runs(self) -> dict[str, ChargedRun]:
        """Return what was charged in each run, including runs that ended for good without a charge."""
        with self._open() as (log, _):
            return {run: ChargedRun(0, "") for run in log.ended} | {
                run: ChargedRun(len(indices), log.entries[run, indices[0]].plan_digest.hex())
                for run, indices in log.runs.items()
            }

    def entries(self, run: str | None = None) -> tuple[Entry, ...]:
        """Return all entries, or those of one run, sorted by run and index."""
        with self._open() as (log, database):
            places = sorted(log.entries if run is None else ((run, index) for index in log.runs.get(run, ())))
            entries = (log.entries[place] for place in places)
            return tuple(entry if entry.committed else _with_answer(entry, database) for entry in entries)

    def releases(self, run: str | None = None) -> tuple[ReleasedAnswers, ...]:
        """Return the costs of all charges, or of all charges in one run; closed entries are included."""
        return tuple(entry.cost for entry in self.entries(run))

    def data_set(self, records: Iterable[bytes]) -> str:
        """Store the digests of a data set's records, and return the name of the data set.

        Args:
            records: Each record as bytes, in a fixed encoding; their order does not matter, but their multiplicity
                does.

        Returns:
            64 hex digits, equal only for the same records in the same ledger.
        """
        with self._open() as (log, _):
            key = log.key
        digests = data_sets.record_digests(key, records)
        name = data_sets.data_set_name(key, digests)
        with self._open(write=True) as (_, database):
            data_sets.store(database, name, digests)
        return name

    def charged(self, data_set: str, *, but: str) -> tuple[ReleasedAnswers, ...]:
        """Return the costs that runs other than `but` charged to data sets that may share a record with this one."""
        with self._open() as (log, database):
            return tuple(entry.cost for entry in _charged(log, database, data_set) if entry.run != but)

    def sample_key(self, run: str, draw: str, fresh: bytes) -> bytes:
        """Return the secret key of a Poisson subsample: the first key stored, as one subsample serves all rounds.

        Args:
            run: Name of the run.
            draw: Name of the subsample in the run.
            fresh: 32 bytes of the operating system's entropy, stored if there is no key yet.

        Raises:
            RefusedError: `forget(run)` was called: if records were drawn again, amplification by subsampling would be
                claimed twice.
        """
        if len(fresh) != _KEY_BYTES:
            raise InternalError("sample key", expected=f"{_KEY_BYTES} bytes", got=len(fresh))
        with self._open(write=True) as (_, database):
            row = database.execute("SELECT key FROM samples WHERE run = ? AND draw = ?", (run, draw)).fetchone()
            if row is None:
                database.execute("INSERT INTO samples VALUES (?, ?, ?)", (run, draw, fresh))
                return fresh
        key: bytes | None = row[0]
        if key is None:
            raise RefusedError("this subsample is closed", where=f"run {run}, draw {draw}")
        return key

    def forget(self, run: str) -> None:
        """Close all entries of the run and erase its sample keys; the rows of these keys remain."""
        with self._open(write=True) as (log, database):
            log.close_before(database, run, sys.maxsize)
            database.execute("UPDATE samples SET key = NULL WHERE run = ? AND key IS NOT NULL", (run,))

    def events(self) -> tuple[Event, ...]:
        """Return all events of the log, without answers, keys or record digests."""
        with self._open() as (log, database):
            return tuple(log.read(database, self._path))

    def head(self, *, after: str | None = None) -> Head:
        """Return the current head; all events up to it are on disk.

        Args:
            after: Hex digest of a head noted earlier, as for `verify`.

        Raises:
            LedgerError: The ledger does not contain the head noted earlier.
        """
        with self._open() as (log, database):
            self._check_contains(log, database, after)
            return Head(events=log.events, chain=log.head.hex())

    def copy(self, to: Path) -> Head:
        """Copy a consistent snapshot of the whole file, even while other processes write to it.

        Args:
            to: Path of the new file, which only its owner can read. It is as secret as the ledger.

        Returns:
            The head of the copy.

        Raises:
            LedgerError: A file with that name exists, or the copy cannot be written.
        """
        self._file.copy(to)
        return Ledger(to, read_only=True).head()

    def verify(self, head: str | None = None) -> Head:
        """Check the whole file: its pages, the chain, and that the name of each data set matches its records.

        Returns:
            The ledger's current head.

        Args:
            head: Hex digest of a head noted earlier: no event up to this head may be missing or changed.

        Raises:
            LedgerError: The file is invalid; the message names the first invalid event.
        """
        with self._open(read_again=True) as (log, database):
            (sound, *_), *_ = database.execute("PRAGMA integrity_check(1)")
            if sound != "ok":
                raise DamagedLedgerError("the ledger is damaged", got=sound, where=self._path, do=RESTORE)
            data_sets.check_data_sets(database, log.key, where=self._path)
            self._check_contains(log, database, head)
            return Head(events=log.events, chain=log.head.hex())

    def _check_contains(self, log: Log, database: Connection, head: str | None) -> None:
        if head is not None and not log.contains(database, head.lower()):
            raise IncompleteLedgerError(
                "the ledger does not contain the head that was noted: it is an older copy or another ledger, and "
                "what was spent since would be given back",
                expected=head,
                got=f"another chain of {log.events} events",
                where=self._path,
                do="Restore the file that does; if it is lost, caucus-party ledger accept charges what it held.",
            )

    @contextmanager
    def _open(self, *, write: bool = False, read_again: bool = False) -> Iterator[tuple[Log, Connection]]:
        """Open a transaction with an up-to-date log, which is read again only if another process wrote to the file."""
        with self._lock:
            try:
                with self._file.transaction(write=write) as database:
                    if read_again or self._log is None or not self._log.is_current(database):
                        self._log = Log(database, self._path)
                    yield self._log, database
            except BaseException:
                self._log = None  # it may hold what was undone in the file
                raise


def _one_sum(log: Log, entry: Entry, parties: AbstractSet[PartyId]) -> None:
    """Raise SurvivorsError if a sum over a different set of parties was opened for the same question.

    Raises:
        SurvivorsError: A sum over a different set was opened; the message names the answers of that sum and of this
            entry.
    """
    for other in log.same_question(entry):
        if other.unmasked and other.survivors != parties:
            raise SurvivorsError(
                "the same query was opened over other parties",
                where=f"run {entry.run}, answers {other.index} and {entry.index}",
            )


def _with_answer(entry: Entry, database: Connection) -> Entry:
    query = "SELECT answer FROM answers WHERE run = ? AND position = ?"
    row = database.execute(query, (entry.run, entry.index)).fetchone()
    return entry if row is None else replace(entry, answer=row[0])


def _charged(log: Log, database: Connection, data_set: str) -> list[Entry]:
    """Return the entries of data sets that may share a record with this one; all entries if `data_set` is empty."""
    shared = data_sets.overlapping(database, data_set) if data_set else None
    return [e for e in log.entries.values() if shared is None or not e.data_set or e.data_set in shared]
