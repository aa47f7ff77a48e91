"""Files that contain secrets or must survive a power cut."""

import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from common.errors import ConfigError, DataError

SECRET = 0o600
PUBLIC = 0o644


def write_atomic(path: Path, data: bytes, *, mode: int = PUBLIC) -> None:
    """Replace `path` by `data`, wholly or not at all, and keep it across a power cut.

    It follows no link that another account, which may write the folder too, has put beside `path`.
    """
    beside = path.with_name(path.name + ".part")
    try:
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)  # free its space on a full disk
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def new_folder(path: Path, *, mode: int = 0o700) -> None:
    """Make a folder that only its owner can enter.

    Raises:
        ConfigError: It exists and is not empty: nothing is ever overwritten.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError("folder", expected="a new or empty one", got="one that is in use", where=path)
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that only its owner can enter, removed at the end, also at SIGTERM and SIGHUP that have no handler.

    By itself Python ends there at once, and leaves the folder. A signal is heard in the main thread alone.
    """
    process, main = os.getpid(), threading.current_thread() is threading.main_thread()
    unheard = [each for each in (signal.SIGTERM, signal.SIGHUP) if main and signal.getsignal(each) is signal.SIG_DFL]
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:

        def end(number: int, _: FrameType | None) -> None:
            if os.getpid() == process:  # not in a fork of it
                shutil.rmtree(folder, ignore_errors=True)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        for each in unheard:
            signal.signal(each, end)
        try:
            yield Path(folder)
        finally:
            for each in unheard:
                signal.signal(each, signal.SIG_DFL)


def check_secret(path: Path) -> None:
    """Refuse a secret that is missing or that other users of the machine can read.

    Raises:
        ConfigError: Naming the file and its mode.
    """
    if not path.is_file():
        raise ConfigError("secret file", expected="an existing file", got="none", where=path)
    _closed(path, ConfigError, "secret file")


def check_records(path: Path) -> None:
    """Refuse a file of private records that is missing, or that other users of the machine can read.

    Raises:
        DataError: Naming the file.
    """
    if not path.is_file():
        got = "a folder" if path.is_dir() else "none"
        raise DataError("file of records", expected="an existing file", got=got, where=path)
    _closed(path, DataError, "file of records")


def _closed(path: Path, error: type[ConfigError | DataError], what: str) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise error(what, expected="mode 0600", got=f"{mode:04o}", where=path, do=f"chmod 600 {path}")


def text_of(path: Path) -> str:
    """A file's text; empty if there is no file."""
    return path.read_text(encoding="utf-8") if path.exists() else ""
