import signal
import stat
import subprocess
import sys
import threading

import pytest

from common.errors import ConfigError, DataError
from common.system.files import SECRET, check_records, check_secret, new_folder, temporary_folder, write_atomic

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
    with pytest.raises(ConfigError, match=f"expected mode 0600; got {mode:04o}; at .*chmod 600"):
        check_secret(path)
    with pytest.raises(DataError, match="file of records; expected mode 0600"):
        check_records(path)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigError, match="secret file; expected an existing file"):
        check_secret(tmp_path / "key")
    with pytest.raises(DataError, match="file of records; expected an existing file"):
        check_records(tmp_path / "notes.csv")


def test_a_folder_in_use_is_never_taken(tmp_path):
    new_folder(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "new" / "file").touch()
    with pytest.raises(ConfigError, match="expected a new or empty one"):
        new_folder(tmp_path / "new")


def test_no_link_beside_a_file_that_is_replaced_is_followed(tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"kept")
    (tmp_path / "service.json.part").symlink_to(tmp_path / "ledger.db")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomic(tmp_path / "service.json", b"{}")
    assert (tmp_path / "ledger.db").read_bytes() == b"kept"
    write_atomic(tmp_path / "service.json", b"{}")
    assert not (tmp_path / "service.json").is_symlink()


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
            found.append((stat.S_IMODE(folder.stat().st_mode), signal.getsignal(signal.SIGTERM)))
        assert not folder.exists()

    found = []
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
    modes, handlers = zip(*found, strict=True)
    assert set(modes) == {0o700}
    assert handlers[0] not in (signal.SIG_DFL, signal.SIG_IGN)
    assert handlers[1:] == (signal.SIG_DFL, signal.SIG_IGN)
