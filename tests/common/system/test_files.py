import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from common.errors import ConfigError, DataError
from common.system import files
from common.system.files import (
    SECRET,
    check_records,
    check_secret,
    content_of,
    new_folder,
    temporary_folder,
    write_atomic,
)

ENDED = """
import os, signal, sys
from common.system.files import temporary_folder
signal.signal(int(sys.argv[1]), signal.SIG_DFL)  # which `nohup make test` ignores
with temporary_folder("caucus-") as folder:
    (folder / "records").write_text("private")
    if not os.fork():
        os.kill(os.getpid(), signal.SIGTERM)
    os.wait()
    print((folder / "records").exists(), flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
"""


def test_a_secret_is_born_closed(tmp_path):
    write_atomic(tmp_path / "key", b"k", mode=SECRET)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    check_secret(tmp_path / "key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_what_others_can_read_is_refused_with_the_command_that_closes_it(mode, tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"k")
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"got {mode:04o}; at"):
        check_secret(path)
    with pytest.raises(DataError, match="mode 0600"):
        check_records(path)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigError, match="secret file;"):
        check_secret(tmp_path / "key")
    with pytest.raises(DataError, match="of records;"):
        check_records(tmp_path / "notes.csv")


def test_a_folder_in_use_is_never_taken(tmp_path):
    new_folder(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "new" / "file").touch()
    with pytest.raises(ConfigError, match="empty one"):
        new_folder(tmp_path / "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_an_empty_folder_of_another_account_becomes_our_own_and_a_link_is_none(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    (tmp_path / "link").symlink_to(theirs)
    with pytest.raises(ConfigError, match="a link"):
        new_folder(tmp_path / "link")
    assert theirs.stat().st_uid == 65534
    new_folder(theirs)
    assert (theirs.stat().st_uid, stat.S_IMODE(theirs.stat().st_mode)) == (0, 0o700)


@pytest.mark.parametrize("name", ["service.json", "service.json.part"])
@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_no_link_in_place_of_a_file_that_is_replaced_or_beside_it_is_followed(name, plant, tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"kept")
    plant(tmp_path / name, tmp_path / "ledger.db")
    write_atomic(tmp_path / "service.json", b"{}")
    assert (tmp_path / "ledger.db").read_bytes() == b"kept"
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.db", "service.json"}
    assert (tmp_path / "service.json").read_bytes() == b"{}"
    assert not (tmp_path / "service.json").is_symlink()


def test_a_folder_may_be_a_link_of_our_own_and_none_of_another_account(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    write_atomic(tmp_path / "link" / "file", b"kept")
    assert content_of(tmp_path / "link" / "file") == b"kept"
    if os.geteuid() == 0:
        os.lchown(tmp_path / "link", 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 1 + os.getuid())
    for use in (lambda path: write_atomic(path, b"new"), content_of):
        with pytest.raises(NotADirectoryError, match="link/file"):
            use(tmp_path / "link" / "file")
    assert content_of(tmp_path / "folder" / "file") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_root_replaces_stays_its_accounts_with_the_mode_asked_for(tmp_path):
    for name, owner in (("key", (65534, 65533)), ("own", (0, 0))):
        path = tmp_path / name
        path.touch(mode=0o644)
        os.chown(path, *owner)
        write_atomic(path, b"k", mode=SECRET)
        status = path.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (*owner, 0o600)


def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "key"
    write_atomic(path, b"before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=str(path)):
        write_atomic(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_no_more_than_a_limit_is_read_and_nothing_but_a_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    monkeypatch.setattr(files, "LARGEST_READ", 4)
    assert content_of(path) == b"1234"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    for name, error in (("none", FileNotFoundError), ("link", OSError), ("pipe", OSError), ("", OSError)):
        with pytest.raises(error, match=str(tmp_path)):
            content_of(tmp_path / name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_folder_and_that_of_a_fork_does_not_touch_it(number, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", ENDED, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-number, "True\n", "")
    assert not list(tmp_path.iterdir())


def test_a_temporary_folder_is_closed_and_leaves_a_programs_own_handler_and_other_threads_alone():
    def used():
        with temporary_folder("caucus-") as folder:
            states.append((stat.S_IMODE(folder.stat().st_mode), signal.getsignal(signal.SIGTERM)))
        assert not folder.exists()

    states = []
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        used()
        other = threading.Thread(target=used)
        other.start()
        other.join()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        used()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    modes, handlers = zip(*states, strict=True)
    assert set(modes) == {0o700}
    assert handlers[0] not in (signal.SIG_DFL, signal.SIG_IGN)
    assert handlers[1:] == (signal.SIG_DFL, signal.SIG_IGN)


def test_the_umask_is_as_before_once_the_last_thread_has_left():
    before = os.umask(0o022)
    first, second = files.only_for_owner(), files.only_for_owner()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # began first, and ends first
    during = os.umask(0o077)
    second.__exit__(None, None, None)
    assert (during, os.umask(before)) == (0o077, 0o022)
