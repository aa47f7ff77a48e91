import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from common.errors import ConfigError
from common.system import processes
from common.system.locks import hold_locks, holder
from tests.support.locking import locking


@pytest.fixture
def holding(tmp_path):
    """A function that starts a process which has locks of the folder, and returns it."""
    with ExitStack() as started:
        yield lambda *names, within=(): started.enter_context(locking(tmp_path, *names, within=within))


def test_one_process_has_a_lock_and_others_learn_which(holding, tmp_path):
    assert holder(tmp_path, "service") is None
    process = holding("service")
    assert holder(tmp_path, "service") == process.pid
    with pytest.raises(ConfigError) as refused, hold_locks(tmp_path, ["service"], stop="caucus-party stop h"):
        pass
    assert (refused.value.got, refused.value.where) == (f"process {process.pid}", tmp_path)
    assert "caucus-party stop h" in refused.value.do


def test_halves_do_not_conflict_and_the_whole_conflicts_with_each(holding, tmp_path):
    holding("service")
    for names in (["service", "relay"], ["relay", "service"]):
        with pytest.raises(ConfigError, match="service of"), hold_locks(tmp_path, names, stop="stop"):
            pass
    assert holder(tmp_path, "relay") is None
    relay = holding("relay")
    assert holder(tmp_path, "relay") == relay.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_lock_ends_with_its_process_however_that_ends(number, holding, tmp_path):
    process = holding("service")
    process.send_signal(number)
    process.wait()
    assert holder(tmp_path, "service") is None
    with hold_locks(tmp_path, ["service"], stop="stop"):
        pass


def test_stop_ends_a_process_that_has_written_nothing_yet(holding, tmp_path):
    process = holding("service")
    assert processes.status(tmp_path, "service") == {"process": process.pid, "children": {}}
    assert processes.stop(tmp_path, ["service"]) is True
    assert process.wait() == -signal.SIGTERM


def test_a_lock_is_not_its_childrens(tmp_path):
    with hold_locks(tmp_path, ["service"], stop="stop"):
        child = os.fork()
        if child == 0:
            os._exit(0 if holder(tmp_path, "service") == os.getppid() else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can make a container")
def test_a_holder_in_another_container_is_seen_from_outside_and_has_no_number_inside(holding, tmp_path):
    inside = ("unshare", "--fork", "--pid", "--kill-child", "--mount-proc")
    holding("relay", within=inside)
    holding("service")
    assert holder(tmp_path, "relay")
    ask = "import sys; from pathlib import Path; from common.system.locks import holder\n"
    ask += "print(holder(Path(sys.argv[1]), 'service'))"
    command = [*inside, sys.executable, "-c", ask, str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stdout == "0\n"


@pytest.mark.parametrize(
    "take",
    [lambda folder: hold_locks(folder, ["service"], stop="stop").__enter__(), lambda folder: holder(folder, "service")],
)
def test_no_link_in_place_of_a_lock_is_followed(take, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "service.lock").symlink_to(tmp_path / "ledger.db")
    (tmp_path / "ledger.db").write_bytes(b"kept")
    with pytest.raises(OSError, match="symbolic links"):
        take(tmp_path)
