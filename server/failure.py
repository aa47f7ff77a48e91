"""Failures of a run: errors of settings, one-line summaries, and the log, error file and lock of a run folder.

This module imports little, so that commands which only read a run folder start fast.
"""

import contextlib
import fcntl
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from common.errors import CaucusError, CheckpointError
from common.system.files import write_atomic

WRONG_SETTINGS = (HydraException, OmegaConfBaseException)
"""Errors that Hydra raises for wrong settings. A missing part is a CaucusError; any other error is a bug."""

FAILURE = "error.txt"
"""File in the folder of a deployed run that failed: the reason in one line."""


def summary(error: BaseException) -> str:
    """The error in one line; of an error of Caucus that Hydra wrapped, the inner one."""
    wrapped = isinstance(error.__cause__, CaucusError) and not isinstance(error, CaucusError)
    return " ".join(str(error.__cause__ if wrapped else error).split())


@contextlib.contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Log into the folder's `run.log` under its lock; on an error write `error.txt` and raise again.

    Raises:
        CheckpointError: Another process works in the folder.
    """
    logger = logging.getLogger("caucus")
    lock = lock_folder(folder)
    if lock is None:
        raise CheckpointError("run folder", expected="one process at work in it", got="another", where=folder)
    handler = logging.FileHandler(folder / "run.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    except Exception as error:
        line = _for_folder(error)
        logger.error("%s", line)  # noqa: TRY400 the traceback is in the executor's log
        write_atomic(folder / FAILURE, line.encode())
        raise  # Flower writes the traceback into the executor's log
    finally:
        logger.removeHandler(handler)
        handler.close()
        lock.close()


def _for_folder(error: Exception) -> str:
    """Reason of a failure in one line that may be passed on.

    The messages of our own errors are safe. A library's message can quote its input, such as an address or a key of a
    model, so only the type of its error and the line of our code are given.
    """
    if isinstance(error, CaucusError) or isinstance(error.__cause__, CaucusError):
        return summary(error)
    places = [(frame.f_globals.get("__name__", ""), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    module, line = [place for place in places if place[0].split(".")[0] in {"common", "server"}][-1]
    return f"{type(error).__name__} in {module}, line {line}; the executor's log has its text and the traceback"


def lock_folder(folder: Path) -> BinaryIO | None:
    """Lock a folder until the returned file is closed or this process ends; None if another process has the lock."""
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
