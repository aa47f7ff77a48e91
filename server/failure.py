"""How a run ends badly: which errors are a setting's, what may be said of any, and where a deployed run leaves it.

Light, so that commands that only look at a run need not load what runs one.
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
"""What Hydra raises over them; a missing part is a CaucusError, and anything else a bug with its traceback."""

FAILURE = "error.txt"
"""In the folder of a deployed run that failed: why, in one line."""


def summary(error: BaseException) -> str:
    """What went wrong, in one line: the error of ours that Hydra wrapped while it built a part, or the error itself."""
    return " ".join(str(error.__cause__ if isinstance(error.__cause__, CaucusError) else error).split())


@contextlib.contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """In a deployment this process is Flower's: the run folder is where its log goes, and why it failed."""
    own = logging.getLogger("caucus")
    lock = lock_folder(folder)
    if lock is None:
        raise CheckpointError("run folder", expected="one process at work in it", got="another", where=folder)
    handler = logging.FileHandler(folder / "run.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    own.addHandler(handler)
    own.setLevel(logging.INFO)
    try:
        yield
    except Exception as error:
        line = _for_folder(error)
        own.error("%s", line)
        write_atomic(folder / FAILURE, line.encode())
        raise  # Flower writes the whole of it into the executor's log
    finally:
        own.removeHandler(handler)
        handler.close()
        lock.close()


def _for_folder(error: Exception) -> str:
    """Why a run failed, in one line that may be passed on.

    Our own errors say what they may. A library's text can quote whatever it was given, an address or a key of a model
    included: of such an error the type and the place in our code must do.
    """
    if isinstance(error, CaucusError) or isinstance(error.__cause__, CaucusError):
        return summary(error)
    places = [(frame.f_globals.get("__name__", ""), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    module, line = [place for place in places if place[0].split(".")[0] in {"common", "server"}][-1]
    return f"{type(error).__name__} in {module}, line {line}; the executor's log has its text and the traceback"


def lock_folder(folder: Path) -> BinaryIO | None:
    """The folder's lock, held until it is closed or this process ends; None if another process has it."""
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
