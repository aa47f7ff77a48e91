"""What has been answered, on disk: the coordinator keeps one ledger, and each party its own, which it trusts alone.

An entry is one answer, named by run and index. It is charged when it is reserved, before anything private is touched,
so that a crash can lose an answer but never a charge:

    reserve ─▶ keep: the noised answer itself ─▶ survivors ─▶ commit: the answer is erased and can never be given again

What the ledger upholds:

1. Nothing is removed or rewritten but an entry's answer, erased by `commit` (the database itself refuses).
2. One run, one plan: a run that goes on under another plan is refused.
3. One answer for each run and index: the noised vector that was kept before anything left. The same query again gets
   that very vector, whatever has become of the records since, so an interrupted round is answered at no cost: nothing
   new is learned. A key for the noise would not do: with other records the same noise would show the difference.
   Another query there is refused; so is the same one after it was closed.
4. One set of survivors for each entry: sums over two sets could be subtracted.

The answer is erased from the database by SQLite's secure_delete; copies that a file system or a solid-state disk keeps
of overwritten blocks are beyond it. A ledger restored from a backup has forgotten what was paid since.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common.domain import PartyId
from common.errors import InternalError, RefusedError
from common.privacy import accountant
from common.privacy.accountant import Release

_BUSY_SECONDS = 30

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    run TEXT NOT NULL,
    position INTEGER NOT NULL,
    plan_digest BLOB NOT NULL,
    query_digest BLOB NOT NULL,
    release TEXT NOT NULL,
    answer BLOB,
    survivors TEXT,
    committed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, position)
);
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS no_rewrite BEFORE UPDATE ON entries
WHEN NEW.run IS NOT OLD.run OR NEW.position IS NOT OLD.position OR NEW.plan_digest IS NOT OLD.plan_digest
  OR NEW.query_digest IS NOT OLD.query_digest OR NEW.release IS NOT OLD.release
  OR (NEW.answer IS NOT NULL AND (OLD.answer IS NOT NULL OR OLD.committed) AND NEW.answer IS NOT OLD.answer)
  OR (OLD.survivors IS NOT NULL AND NEW.survivors IS NOT OLD.survivors) OR NEW.committed < OLD.committed
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

_COLUMNS = "run, position, plan_digest, query_digest, release, answer, survivors, committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charged answer.

    Attributes:
        run: Name of the run.
        index: Number of the answer in the run.
        plan_digest: Digest of the agreed plan.
        query_digest: Digest of the query as asked.
        release: What it costs.
        answer: The noised answer, from when it was kept until it is closed; none in the coordinator's ledger.
        survivors: Parties that unmasking shares were given for, if any were yet.
        committed: Whether the round is over.
    """

    run: str
    index: int
    plan_digest: bytes
    query_digest: bytes
    release: Release
    answer: bytes | None = field(default=None, repr=False)
    survivors: frozenset[PartyId] | None = None
    committed: bool = False


class Ledger:
    """An append-only SQLite file, safe for several threads and processes: each call is one immediate transaction."""

    def __init__(self, path: Path | str) -> None:
        """Opens the file, readable by its owner only, and makes it if it is not there."""
        self._path = Path(path)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        self._path.chmod(0o600)
        with self._transaction() as database:
            for statement in _SCHEMA.split(";\nCREATE"):
                database.execute(statement if "CREATE TABLE" in statement else "CREATE" + statement)

    def reserve(
        self,
        *,
        run: str,
        index: int,
        plan_digest: bytes,
        query_digest: bytes,
        release: Release,
    ) -> Entry:
        """Charges one answer, or finds it charged before.

        Args:
            run: Name of the run.
            index: Number of the answer in the run.
            plan_digest: Digest of the agreed plan.
            query_digest: Digest of the query as asked.
            release: What this one answer costs.

        Returns:
            The entry as it stands.

        Raises:
            RefusedError: If run and index stand for something else, or the run has another plan.
        """
        asked = Entry(
            run=run, index=index, plan_digest=plan_digest, query_digest=query_digest, release=release,
        )  # fmt: skip
        with self._transaction() as database:
            plans = database.execute("SELECT DISTINCT plan_digest FROM entries WHERE run = ?", (run,)).fetchall()
            if plans not in ([], [(plan_digest,)]):
                raise RefusedError("the run has another plan", do="Start a new run to use a new plan.")
            kept = _find(database, run, index)
            if kept is None:
                database.execute(
                    "INSERT INTO entries (run, position, plan_digest, query_digest, release) VALUES (?, ?, ?, ?, ?)",
                    (run, index, plan_digest, query_digest, json.dumps(asdict(release))),
                )
                return asked
        if (kept.query_digest, kept.release) != (query_digest, release):
            raise RefusedError("another query was answered here", where=f"run {run}, answer {index}")
        return kept

    def keep(self, run: str, index: int, answer: bytes) -> bytes:
        """Keeps a noised answer before it leaves; the first that is kept is the answer from then on.

        Returns:
            The answer to give.

        Raises:
            RefusedError: If the entry is closed.
        """
        with self._transaction() as database:
            kept = _reserved(database, run, index)
            if kept.committed:
                raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
            if kept.answer is not None:
                return kept.answer
            database.execute("UPDATE entries SET answer = ? WHERE run = ? AND position = ?", (answer, run, index))
        return answer

    def survivors(self, run: str, index: int, parties: AbstractSet[PartyId]) -> None:
        """Records, before unmasking shares leave, the only set of parties whose sum this entry may open.

        Raises:
            RefusedError: If another set was recorded before, or none before the entry was committed.
        """
        with self._transaction() as database:
            entry = _reserved(database, run, index)
            if entry.survivors is None and not entry.committed:
                database.execute(
                    "UPDATE entries SET survivors = ? WHERE run = ? AND position = ?",
                    (json.dumps(sorted(parties)), run, index),
                )
            elif entry.survivors != parties:
                raise RefusedError("this set of survivors is not the first", where=f"run {run}, answer {index}")

    def commit(self, run: str, index: int) -> None:
        """Closes an entry: erases its answer. Again is nothing new."""
        with self._transaction() as database:
            _reserved(database, run, index)
            database.execute(
                "UPDATE entries SET committed = 1, answer = NULL WHERE run = ? AND position = ?", (run, index)
            )

    def entries(self, run: str | None = None) -> tuple[Entry, ...]:
        """All entries, or those of one run, by run and index."""
        with self._transaction() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM entries WHERE ?1 IS NULL OR run = ?1 ORDER BY run, position",  # noqa: S608
                (run,),
            )
            return tuple(_entry(row) for row in rows)

    def total(self, delta: float, run: str | None = None) -> float:
        """Epsilon, at that delta, of all entries together, reserved ones included; 0 for an empty ledger."""
        return accountant.epsilon((entry.release for entry in self.entries(run)), delta)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, on a connection of its own."""
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA secure_delete = ON")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")


def _reserved(database: sqlite3.Connection, run: str, index: int) -> Entry:
    entry = _find(database, run, index)
    if entry is None:
        raise InternalError("an answer that was never reserved", where=f"run {run}, answer {index}")
    return entry


def _find(database: sqlite3.Connection, run: str, index: int) -> Entry | None:
    row = database.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE run = ? AND position = ?",  # noqa: S608
        (run, index),
    ).fetchone()
    return None if row is None else _entry(row)


def _entry(row: tuple[str, int, bytes, bytes, str, bytes | None, str | None, int]) -> Entry:
    run, index, plan_digest, query_digest, release, answer, survivors, committed = row
    values = json.loads(release)
    return Entry(
        run=run,
        index=index,
        plan_digest=plan_digest,
        query_digest=query_digest,
        release=Release(**{**values, "shifts": tuple(values["shifts"])}),
        answer=answer,
        survivors=None if survivors is None else frozenset(json.loads(survivors)),
        committed=bool(committed),
    )
