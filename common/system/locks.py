"""Locks on folders: those that a process holds for its lifetime, and `alone`, which is held for one change.

The first kind shows the process's ID to other processes: the kernel releases such a lock when its process ends, for
whatever reason, and can report which process holds it. So `stop` needs no file with a process ID, which could be
missing or out of date. Record locks (fcntl(2)) are not inherited by children. A lock of a process in another container
is visible, but that process has no ID here.
"""

import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.errors import ConfigError
from common.system.files import FILE_ALONE

MODE = 0o640
"""File mode of a lock: a hospital's other account, in the file's group, may see who holds the lock, but not take it."""

_RECORD = "hhqqi4x"
"""C's struct flock on 64-bit Linux: type, whence, start, length, process."""


@contextmanager
def hold_locks(folder: Path, names: Sequence[str], *, stop: str) -> Iterator[None]:
    """Take these locks, which are files in the folder's `run/`, all or none.

    Raises:
        ConfigError: Another process holds one of the locks; the message contains the command `stop`, which ends it.
    """
    (folder / "run").mkdir(exist_ok=True, mode=0o700)
    with ExitStack() as opened:
        for name in names:
            # The file is opened once: closing any other descriptor of it would give up the lock.
            file = os.open(folder / "run" / f"{name}.lock", FILE_ALONE | os.O_RDWR | os.O_CREAT, MODE)
            opened.callback(os.close, file)
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _running(folder, name, _holder(file), stop) from None
        yield


def check_free(folder: Path, names: Sequence[str], *, stop: str) -> None:
    """Raise the error of `hold_locks` if a process holds one of these locks, but take none."""
    for name in names:
        if (process := holder(folder, name)) is not None:
            raise _running(folder, name, process, stop)


def holder(folder: Path, name: str) -> int | None:
    """Return the ID of the process that holds this lock: 0 if it is in another container, None if nobody holds it."""
    try:
        file = os.open(folder / "run" / f"{name}.lock", FILE_ALONE | os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _holder(file)
    finally:
        os.close(file)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process is in such a block for this folder, and keep others out meanwhile.

    Raises:
        OSError: The folder does not exist, or this account may not read it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # and with it goes the lock


def _running(folder: Path, name: str, process: int | None, stop: str) -> ConfigError:
    known = {None: "a process that has just ended", 0: "a process of another container"}
    got = known.get(process, f"process {process}")
    return ConfigError(
        f"{name} of this folder", expected="none that runs", got=got, where=folder, do=f"First end it: {stop}"
    )


def _holder(file: int) -> int | None:
    asked = struct.pack(_RECORD, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, process = struct.unpack(_RECORD, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else int(process)
