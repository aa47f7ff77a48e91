"""Handling of the end of a run: wrong settings, one-line summaries, and a run folder's log, lock and final message.

Errors and log lines name hospitals by number; the log and the final message of a deployed run show their names. This
module imports little, so that commands which only read a run folder start fast.
"""

import contextlib
import copy
import fcntl
import json
import logging
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from common.errors import AwaitingError, CaucusError, DropoutError, FolderInUseError, RejectedError
from common.phrases import NumberedParty, Turnout, Words, render_phrase
from common.system.files import SECRET, text_of, write_atomic
from common.system.log_lines import LOG_FORMAT
from common.system.progress import WarnedOnce

WRONG_SETTINGS = (HydraException, OmegaConfBaseException)
"""Errors that Hydra raises for wrong settings. A missing part is a CaucusError; any other error is a bug."""

EXPECTED = (CaucusError, *WRONG_SETTINGS)
"""Errors of wrong settings and failing parts; any other error is a bug and is shown with its traceback."""

FAILURE = "error.txt"
"""File in the folder of a deployed run that failed; it contains the reason in one line."""
REJECTED = "rejected.txt"
"""Empty file next to `error.txt`; it exists if the hospitals would refuse the run again after resuming."""
ABSENT = "absent.json"
"""File that is written next to `error.txt` if too few hospitals took part; it contains the error, the reason for each
absence, and the advice."""
AWAITING = "awaiting.txt"
"""File in the folder of a deployed run that stopped for approvals; it lists the hospitals' names, one per line."""
CANCELLED = "cancelled.txt"
"""File in the folder of a deployed run that was cancelled; it contains the time."""
TRACEBACK = "state/traceback.txt"
"""File in the folder of a deployed run that ended with a library's error; it has the traceback, which can quote a
text."""
LOG = "run.log"
"""File with a run's log."""
LOCK = "lock"
"""File that a run's process locks; it contains the process ID."""
PATIENCE = 2.0
"""Number of seconds for which a run keeps trying to get the lock, since `is_at_work` holds it for a moment."""


def summary(error: BaseException, names: Sequence[str] = ()) -> str:
    """Return the error in one line. If a library wrapped an error of Caucus, the line describes that inner error."""
    wrapped = isinstance(error.__cause__, CaucusError) and not isinstance(error, CaucusError)
    return " ".join(render_phrase(error.__cause__ if wrapped else error, names).split())


@contextlib.contextmanager
def logging_to(folder: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Log to a folder's `run.log` while holding the folder's lock; write a further file if the run does not complete.

    A run that awaits approvals has not failed: `awaiting.txt` lists the hospitals, and no error is raised. After any
    error, `error.txt` contains the reason, and the error is raised again; `rejected.txt` means that resuming does not
    help. `names` are those of the hospitals, indexed by number; if empty, the log calls them "party 0" and so on.

    Raises:
        FolderInUseError: Another process is working in the folder.
    """
    logger = logging.getLogger("caucus")
    with sole_process(folder), _log_file(logger, folder / LOG, names):
        try:
            yield
        except AwaitingError as pause:
            logger.info("%s", pause)
            waiting = [NumberedParty(party).text(names) for party in pause.parties]
            write_atomic(folder / AWAITING, "\n".join(waiting).encode())
        except (KeyboardInterrupt, SystemExit):
            _last_words(folder, "Flower ended the run: it was stopped, or SuperLink had no news of it for too long")
            raise
        except Exception as error:
            if isinstance(error, RejectedError):
                write_atomic(folder / REJECTED, b"")  # first: who reads the reason then finds it
            _tell_absent(error, folder, names)
            _last_words(folder, _for_folder(error, folder, names))
            raise


@contextlib.contextmanager
def _log_file(logger: logging.Logger, path: Path, names: Sequence[str]) -> Iterator[None]:
    handler = logging.FileHandler(path)
    handler.setFormatter(_Named(names))
    handler.addFilter(WarnedOnce())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        handler.close()


def _tell_absent(error: Exception, folder: Path, names: Sequence[str]) -> None:
    """Write the reason for each absence to a file if the run ended because too few hospitals took part."""
    if isinstance(error, DropoutError) and isinstance(error.got, Turnout):
        absent = {
            "problem": f"{error.what}; expected {error.expected}; got {error.got.present}",
            "absent": {
                NumberedParty(party).text(names): render_phrase(did, names) for party, did in error.got.absent.items()
            },
            "advice": render_phrase(error.do, names),
        }
        write_atomic(folder / ABSENT, json.dumps(absent, ensure_ascii=False).encode())


def _last_words(folder: Path, line: str) -> None:
    # The file first: who follows the log then knows that this line is the reason, and shows it once.
    write_atomic(folder / FAILURE, line.encode())
    logging.getLogger("caucus").error("%s", line)


class _Named(logging.Formatter):
    """Formatter of `run.log`, which replaces hospitals' numbers by their names."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(LOG_FORMAT)
        self._names = names

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            args = (render_phrase(arg, self._names) if isinstance(arg, Words) else arg for arg in record.args)
            record = copy.copy(record)  # other handlers show the same record to other readers
            record.args = tuple(args)
        return super().format(record)


def _for_folder(error: Exception, folder: Path, names: Sequence[str]) -> str:
    """Return the reason for a failure in one line that is safe to pass on.

    The messages of our own errors are safe. A library's message can quote its input, such as an address or a key of a
    model, so only the type of its error and the line of our code are returned. The details are in a file that other
    users of this machine cannot read.
    """
    if isinstance(error, CaucusError) or isinstance(error.__cause__, CaucusError):
        return summary(error, names)
    with contextlib.suppress(OSError):  # on a full disk the reason matters more
        (folder / TRACEBACK).parent.mkdir(exist_ok=True)
        write_atomic(folder / TRACEBACK, "".join(traceback.format_exception(error)).encode(), mode=SECRET)
    places = [(frame.f_globals.get("__name__", ""), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    module, line = [place for place in places if place[0].split(".")[0] in {"common", "server"}][-1]
    return f"{type(error).__name__} in {module}, line {line}; {TRACEBACK} in the run folder has its text"


@contextlib.contextmanager
def sole_process(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, whose file then contains this process's ID; the folder is made if it is missing.

    Raises:
        FolderInUseError: Another process is working in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(folder, patience=PATIENCE)
    if lock is None:
        process = text_of(folder / LOCK) or "unknown"  # that has only just locked it
        raise FolderInUseError(
            "folder",
            expected="at most one process that works in it",
            got=f"another: process {process}",
            where=folder,
            do="Wait until it ends, or end it",
        )
    with lock:
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        yield


def lock_folder(folder: Path, *, patience: float = 0.0) -> BinaryIO | None:
    """Lock a folder until the returned file is closed or this process ends; return None if the folder is locked.

    `patience` is the number of seconds for which to keep trying.
    """
    lock = (folder / LOCK).open("ab")
    deadline = time.monotonic() + patience
    while not _locked(lock, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            lock.close()
            return None
        time.sleep(0.05)
    return lock


def missing_folders(folder: Path) -> list[Path]:
    """Return a folder and those above it that do not exist, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def remove_unused(made: Sequence[Path]) -> None:
    """Remove the folder of a run that never began: it has nothing but its log and its lock, and no process works in it.

    Args:
        made: What `missing_folders` returned before the start; empty if the folder was there.
    """
    if not made or not made[0].is_dir() or is_at_work(made[0]):
        return
    if {path.name for path in made[0].iterdir()} <= {LOG, LOCK}:
        for name in (LOG, LOCK):
            (made[0] / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another run has begun in a folder above
            for path in made:
                path.rmdir()


def is_at_work(folder: Path) -> bool:
    """Return whether a process is working in the folder, which means that the process has locked it."""
    path = folder / LOCK
    if not path.exists():
        return False
    with path.open("rb") as lock:
        return not _locked(lock, fcntl.LOCK_SH)


def _locked(lock: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
