"""Files that contain secrets, must survive a power cut, or lie in a folder that another account can write to.

Such an account can put a symbolic link, a pipe or another file there at any time: the relay's in `node/` and, in
containers, in `run/`. So a file there is opened relative to its folder's descriptor, without following a link,
and all further steps use the file's own descriptor. A folder may be a symbolic link if the link belongs to us or to
root, as in the kernel's rule for shared folders (protected_symlinks).
"""

import errno
import os
import re
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from common.errors import ConfigError, DataError

_UMASK = threading.Lock()
_before: list[int] = []
"""The umask before each block of `only_for_owner` that a thread is in; each that leaves sets the last of them again."""
SECRET = 0o600
PUBLIC = 0o644
FILE_ALONE = os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for such a folder: a link in a file's place is not followed, and opening a pipe does not block."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Pattern of the beginning of an address, such as postgresql://HOST, as a part of a path."""
LARGEST_READ = 2**25
"""Maximum number of bytes read from a file in such a folder, which could be larger than memory."""


@contextmanager
def only_for_owner() -> Iterator[None]:
    """Let only their owner open new files: set the umask of this process, until its last thread leaves such a block."""
    with _UMASK:
        _before.append(os.umask(0o077))
    try:
        yield
    finally:
        with _UMASK:
            os.umask(_before.pop())


def write_atomic(path: Path, data: bytes, *, mode: int = PUBLIC, first: Callable[[], None] = lambda: None) -> None:
    """Replace the content of `path` by `data` atomically, in such a way that it survives a power cut.

    If root replaces a file, the file's owner stays the same; a new file of root's gets the owner of its folder. `first`
    is called once `data` is on disk and nothing but its name is missing; if it raises, `path` is unchanged.

    Raises:
        OSError: The file cannot be written; the message names `path`, which is unchanged.
    """
    name, beside = path.name, path.name + ".part"
    with _folder_of(path) as folder:
        try:
            owner = _owner(name, folder) if os.geteuid() == 0 else None
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)  # what a process that was killed has left, or another account's
            with open(beside, "xb", opener=_opener(folder, mode)) as file:
                new = os.fstat(file.fileno())
                if not owner:
                    give_to_owner_of_folder(file.fileno(), folder)
                elif owner != (new.st_uid, new.st_gid):
                    os.fchown(file.fileno(), *owner)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            first()
            os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)  # free its space on a full disk
            raise
        os.fsync(folder)


def give_to_owner_of_folder(descriptor: int, folder: Path | int) -> None:
    """Give a file that root has opened to the owner of its folder, a path or descriptor: that account must open it."""
    if os.geteuid() == 0:
        owner = os.stat(folder)  # noqa: PTH116 a path or a descriptor
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def content_of(path: Path) -> bytes:
    """Return the content of a file that another account may have written, up to `LARGEST_READ` bytes.

    Raises:
        OSError: The file does not exist, or a symbolic link, a pipe or a folder is in its place; the message names
            `path`.
    """
    with _folder_of(path) as folder, open(path.name, "rb", opener=_opener(folder)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "no file")
        return file.read(LARGEST_READ)


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    """Open a file's folder and yield its descriptor; errors name the file."""
    try:
        status = path.parent.lstat()
        trusted = stat.S_ISLNK(status.st_mode) and status.st_uid in {0, os.geteuid()}
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | (0 if trusted else os.O_NOFOLLOW))
        try:
            yield folder
        finally:
            os.close(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _opener(folder: int, mode: int = SECRET) -> Callable[[str, int], int]:
    return lambda name, flags: os.open(name, flags | FILE_ALONE, mode, dir_fd=folder)


def _owner(name: str, folder: int) -> tuple[int, int] | None:
    """Return a file's user and group; None if it does not exist."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_uid, status.st_gid


def new_folder(path: Path) -> None:
    """Make a folder that only this account, its owner, can enter.

    Raises:
        ConfigError: The folder exists and is not empty: nothing is ever overwritten.
    """
    if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
        do = "Choose another name"
        raise ConfigError("folder", expected="a new or empty one", got="one in use, or a link", where=path, do=do)
    path.mkdir(parents=True, exist_ok=True)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.geteuid() == 0:  # an empty one may be another account's, which could take it away again
            os.fchown(folder, os.geteuid(), os.getegid())
        os.fchmod(folder, 0o700)
    finally:
        os.close(folder)


@contextmanager
def whole_folder(path: Path) -> Iterator[None]:
    """Make a folder as `new_folder` does; if the context fails, remove it with all that is in it."""
    was_there = path.exists()
    new_folder(path)
    try:
        yield
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        if was_there:
            path.mkdir(exist_ok=True)
        raise


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that only its owner can enter; remove it at the end, even after an unhandled SIGTERM or SIGHUP."""
    process, unheard = os.getpid(), list[signal.Signals]()
    if threading.current_thread() is threading.main_thread():  # no other thread receives signals
        both = (signal.SIGTERM, signal.SIGHUP)
        unheard = [number for number in both if signal.getsignal(number) is signal.SIG_DFL]
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:

        def end(number: int, _: FrameType | None) -> None:
            if os.getpid() == process:  # not in a fork of it
                shutil.rmtree(folder, ignore_errors=True)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        for signum in unheard:
            signal.signal(signum, end)
        try:
            yield Path(folder)
        finally:
            for signum in unheard:
                signal.signal(signum, signal.SIG_DFL)


def check_secret(path: Path) -> None:
    """Check that a file of secrets exists and that other users of the machine cannot read it.

    Raises:
        ConfigError: The file is missing, or readable by others; the message names the file and its mode.
    """
    if not path.is_file():
        do = "Check the path, or restore the file from a backup"
        raise ConfigError("secret file", expected="an existing file", got="none", where=path, do=do)
    _closed(path, ConfigError, "secret file")


def check_records(path: Path) -> None:
    """Check that a file of private records exists and that other users of the machine cannot read it.

    Raises:
        DataError: The file is missing, or readable by others; the message names the file, unless it is the address of
            a database.
    """
    what = "file of records"
    if any(_SCHEME.fullmatch(part) for part in path.parts) and not path.is_file():  # it may hold a password
        do = "Put url, query and password into a file NAME.sql.yaml of mode 0600: caucus-party init --records"
        raise DataError(what, expected="an existing file", got="the address of a database (not shown)", do=do)
    if not path.is_file():
        got = "a folder" if path.is_dir() else "none"
        raise DataError(what, expected="an existing file", got=got, where=path, do="Check the path")
    _closed(path, DataError, what)


def check_closed(folder: Path) -> None:
    """Check that other users of the machine can neither enter a folder nor read what is in it.

    Raises:
        ConfigError: The folder or anything in it is open to others; the message names the first five of these.
        OSError: The folder does not exist.
    """
    folder = folder.resolve()  # it may be a link
    opened = [path for path in (folder, *sorted(folder.rglob("*"))) if _is_open(path.lstat())]
    if opened:
        shown = ", ".join(map(str, opened[:5])) + (f" and {len(opened) - 5} others" if len(opened) > 5 else "")
        do = f"Run chmod -R go= {folder}"
        raise ConfigError("other accounts can open private files", got=shown, do=do)


def _is_open(status: os.stat_result) -> bool:
    """Return whether other accounts may use the file or folder, as far as this account can change that."""
    # A volume of Kubernetes belongs to root, and lets this account in by a group that no other account has.
    others = 0o077 if os.geteuid() in {0, status.st_uid} else 0o007
    return not stat.S_ISLNK(status.st_mode) and bool(status.st_mode & others)


def _closed(path: Path, error: type[ConfigError | DataError], what: str) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise error(what, expected="mode 0600", got=f"{mode:04o}", where=path, do=f"Run chmod 600 {path}")


def text_of(path: Path) -> str:
    """Return a file's text; empty if the file does not exist."""
    return path.read_text(encoding="utf-8") if path.exists() else ""
