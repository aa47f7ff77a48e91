import os
import signal
import sys
import time

import pytest

from common import processes
from common.errors import ConfigError
from common.processes import Child


def until(condition):
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture
def supervised(tmp_path):
    """A supervisor in a process of its own, with one child that writes its number and sleeps."""
    (tmp_path / "run").mkdir()
    code = "import os,time; open('born','a').write(f'{os.getpid()}\\n'); print(sorted(os.environ)); time.sleep(60)"
    child = Child(name="child", command=(sys.executable, "-uc", code), environment=processes.environment(tmp_path))
    process = os.fork()
    if process == 0:
        try:
            processes.FIRST_WAIT = processes.LONGEST_WAIT = 0.05
            processes.supervise([child], folder=tmp_path)
        finally:
            os._exit(0)
    try:
        yield tmp_path, process
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def born(folder):
    path = folder / "born"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_what_ends_starts_again_and_stop_ends_all(supervised):
    folder, supervisor = supervised
    (first,) = until(lambda: born(folder))
    os.kill(first, signal.SIGKILL)
    second = until(lambda: born(folder)[1:])[0]
    until(
        lambda: (processes.status(folder) or {"children": {"child": {"restarts": 0}}})["children"]["child"]["restarts"]
    )
    with pytest.raises(ConfigError, match=f"expected none; got process {supervisor}"):
        processes.supervise([], folder=folder)
    os.kill(supervisor, signal.SIGTERM)
    until(lambda: not alive(second))
    until(lambda: processes.running(folder) is None)
    assert processes.stop(folder) is False


def test_a_killed_supervisor_takes_its_children_with_it(supervised):
    folder, supervisor = supervised
    (child,) = until(lambda: born(folder))
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not alive(child))


def test_a_child_sees_nothing_of_our_environment(supervised, monkeypatch):
    folder, _ = supervised
    log = folder / "logs" / "child.log"
    seen = until(lambda: log.exists() and log.read_text())
    names = set(eval(seen))
    assert names <= {
        *processes.QUIET, "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "PYTHONPATH", "TZ", "PATH", "HOME", "FLWR_HOME"
    }  # fmt: skip
