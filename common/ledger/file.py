"""The SQLite file of a ledger, with its tables and triggers, and the errors that it can cause.

Only its owner can read the file. Triggers prevent rows from being rewritten or removed. They guard against mistakes;
the hash chain reveals changes that bypass them (`common/ledger/chain.py`). SQLite's secure_delete overwrites erased
values, but not the copies of overwritten blocks that a file system or a solid-state disk keeps.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from common.errors import DamagedLedgerError, LedgerError
from common.ledger.chain import RESTORE
from common.system.files import give_to_owner_of_folder

VERSION = 2
_APPLICATION = 0x43415543
"""SQLite's application ID, which marks the file as ours: "CAUC" in ASCII."""
_BUSY_SECONDS = 30
_PRAGMAS = ("journal_mode = DELETE", "secure_delete = ON")

_TABLES = (
    "meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    """events (
        sequence INTEGER PRIMARY KEY, run TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
        body TEXT NOT NULL, chain BLOB NOT NULL
    ) STRICT""",
    "answers (run TEXT NOT NULL, position INTEGER NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (run, position)) STRICT",
    "data_sets (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT",
    "records (digest BLOB NOT NULL, data_set INTEGER NOT NULL, PRIMARY KEY (digest, data_set)) STRICT, WITHOUT ROWID",
    "samples (run TEXT NOT NULL, draw TEXT NOT NULL, key BLOB, PRIMARY KEY (run, draw)) STRICT",
)
_CLOSED = "EXISTS (SELECT 1 FROM events WHERE kind = 'close' AND (run, position) = ({0}.run, {0}.position))"
_KEPT = "EXISTS (SELECT 1 FROM answers WHERE (run, position) = (NEW.run, NEW.position))"
_REFUSED = {
    # INSERT OR REPLACE removes a row without asking the triggers on DELETE.
    "INSERT ON meta": "EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)",
    "INSERT ON events": "NEW.sequence IS NOT 1 + coalesce((SELECT max(sequence) FROM events), 0)",
    "INSERT ON answers": f"{_KEPT} OR {_CLOSED.format('NEW')}",
    "INSERT ON data_sets": "EXISTS (SELECT 1 FROM data_sets WHERE number = NEW.number OR name = NEW.name)",
    "INSERT ON samples": "EXISTS (SELECT 1 FROM samples WHERE (run, draw) = (NEW.run, NEW.draw))",
    **{f"UPDATE ON {table}": "TRUE" for table in ("meta", "events", "answers", "data_sets", "records")},
    "UPDATE ON samples": "NEW.run IS NOT OLD.run OR NEW.draw IS NOT OLD.draw OR NEW.key IS NOT NULL",
    **{f"DELETE ON {table}": "TRUE" for table in ("meta", "events", "data_sets", "records", "samples")},
    "DELETE ON answers": "NOT " + _CLOSED.format("OLD"),
}
_SCHEMA = (
    *(f"CREATE TABLE {table}" for table in _TABLES),
    "CREATE INDEX records_of ON records (data_set, digest)",
    *(
        f'CREATE TRIGGER "no {event}" BEFORE {event} WHEN {condition} '
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for event, condition in _REFUSED.items()
    ),
)

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_CAUSES = {
    sqlite3.SQLITE_BUSY: ("the ledger is held by another process", "Stop the other process that writes it."),
    sqlite3.SQLITE_CANTOPEN: ("the ledger cannot be opened", "Check the path, and who may read and write it."),
    sqlite3.SQLITE_CORRUPT: ("the ledger is damaged", RESTORE),
    sqlite3.SQLITE_FULL: ("the ledger cannot be written: the disk is full", "Free some space and ask again."),
    sqlite3.SQLITE_IOERR: (
        "the ledger cannot be read or written",
        "See whether the disk is full, a limit on file sizes is reached, or the device fails.",
    ),
    sqlite3.SQLITE_NOTADB: ("no ledger, but another kind of file", f"Name the right file. {RESTORE}"),
    sqlite3.SQLITE_PERM: ("the ledger cannot be written", "Let its owner write the file and its folder."),
    sqlite3.SQLITE_READONLY: ("the ledger cannot be written", "Let its owner write the file and its folder."),
    sqlite3.SQLITE_READONLY_ROLLBACK: (
        "the ledger has an interrupted write, which only a process that may write can undo",
        "Start the service, which undoes it: nothing is lost.",
    ),
}
"""What an error of SQLite means, and advice; keyed by its extended code or, if that is not a key, its general one."""


class LedgerFile:
    """Transactions on one file, each on a separate connection; safe for several threads and processes.

    Args:
        path: The file; it is created if it does not exist.
        secret: 32 bytes for a new file, kept in `meta` under "key".
        read_only: If True, the file is neither created nor changed.
        durable: Whether a commit survives a power cut.

    Raises:
        LedgerError: If the file cannot be opened, is not a ledger, or is a ledger of another version.
    """

    def __init__(self, path: Path, *, secret: bytes, read_only: bool = False, durable: bool = True) -> None:
        self._path = path
        self._mode = "ro" if read_only else "rw"
        # EXTRA: no power cut after a commit brings its journal back, which would undo a charge whose answer has left.
        self._synchronous = f"synchronous = {'EXTRA' if durable else 'OFF'}"
        if not read_only:
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
                try:
                    give_to_owner_of_folder(descriptor, path.parent)
                    os.fchmod(descriptor, 0o600)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise LedgerError(
                    "the ledger cannot be written",
                    got=error.strerror,
                    where=path,
                    do="Check the path, and who may read and write it.",
                ) from error
        with self.transaction(write=not read_only) as database:
            if not read_only and _is_empty(database):
                for statement in _SCHEMA:
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {_APPLICATION}")
                database.execute(f"PRAGMA user_version = {VERSION}")
                database.execute("INSERT INTO meta VALUES ('key', ?)", (secret,))
            self._check(database)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction, which is rolled back if anything fails; with `write` it holds the write lock throughout.

        Raises:
            LedgerError: An operation on the file fails.
        """
        address = f"{self._path.absolute().as_uri()}?mode={self._mode}"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
                for pragma in (self._synchronous, *_PRAGMAS):
                    database.execute(f"PRAGMA {pragma}")
                database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield database
                    database.commit()
                except BaseException:
                    database.rollback()
                    raise
        except sqlite3.Error as error:
            # Extended codes hold the general one in their lowest byte. Messages of SQLite hold no values.
            extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            code = extended if extended in _CAUSES else extended & 0xFF
            what, do = _CAUSES.get(code, ("the ledger fails", "Run `caucus-party ledger verify` on it."))
            kind = DamagedLedgerError if code in _DAMAGED else LedgerError
            raise kind(what, got=error, where=self._path, do=do) from error

    def copy(self, to: Path) -> None:
        """Copy a consistent snapshot of the whole file to a new file that only its owner can read.

        Raises:
            LedgerError: A file with that name exists, or the copy cannot be written.
        """
        with self.transaction() as database:
            try:
                os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with closing(sqlite3.connect(to)) as copied:
                    copied.execute("PRAGMA synchronous = EXTRA")
                    database.backup(copied)
            except (OSError, sqlite3.Error) as error:
                if not isinstance(error, FileExistsError):
                    to.unlink(missing_ok=True)
                got = error.strerror if isinstance(error, OSError) else error
                raise LedgerError("the ledger cannot be copied", got=got, where=to, do="Name a new file.") from error

    def _check(self, database: sqlite3.Connection) -> None:
        """Check that the tables and triggers are exactly those of this version."""
        kind = (_pragma(database, "application_id"), _pragma(database, "user_version"))
        schema = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if kind == (_APPLICATION, VERSION) and schema == set(_SCHEMA):
            return
        expected = f"a ledger of version {VERSION}, with its tables and triggers"
        if kind[0] == _APPLICATION and kind[1] != VERSION:
            raise LedgerError(
                "no ledger of this version",
                expected=expected,
                got=f"version {kind[1]}",
                where=self._path,
                do="Keep the file, since what it holds was answered, and use it with the version that wrote it.",
            )
        got = f"version {VERSION}, changed" if kind[0] == _APPLICATION else "another database"
        raise DamagedLedgerError("no ledger of this version", expected=expected, got=got, where=self._path, do=RESTORE)


def _is_empty(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _pragma(database: sqlite3.Connection, name: str) -> int:
    (value,) = database.execute(f"PRAGMA {name}").fetchone()
    return int(value)
