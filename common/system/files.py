"""Files that contain secrets or must survive a power cut."""

import os
import stat
from pathlib import Path

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
