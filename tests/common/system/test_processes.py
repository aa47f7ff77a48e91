import os
import signal
import sys
import time

import pytest

from common.errors import ConfigError
from common.system import locks, processes
from common.system.processes import Child


def until(condition):
    deadline = time.monotonic() + 120
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


NAMES = ("one", "other")


def supervisor(folder):
    """A process that tries to supervise one child, which writes its number and sleeps; it exits with 2 if refused."""
    code = "import os,time; open('born','a').write(f'{os.getpid()}\\n'); print(sorted(os.environ)); time.sleep(60)"
    child = Child(name="child", command=(sys.executable, "-uc", code), environment=processes.child_environment(folder))
    process = os.fork()
    if process == 0:
        try:
            processes.FIRST_WAIT = processes.LONGEST_WAIT = 0.05
            with locks.hold_locks(folder, NAMES, stop="the command stop"):
                processes.supervise([child], folder=folder, names=NAMES)
        except ConfigError:
            os._exit(2)
        finally:
            os._exit(0)
    return process


@pytest.fixture
def supervised(tmp_path):
    """A folder and its supervisor."""
    process = supervisor(tmp_path)
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
    folder, process = supervised
    (first,) = until(lambda: born(folder))
    os.kill(first, signal.SIGKILL)
    second = until(lambda: born(folder)[1:])[0]
    restarted = {"child": {"process": second, "restarts": 1}}
    for name in NAMES:
        until(lambda name=name: processes.status(folder, name) == {"process": process, "children": restarted})
    assert processes.stop(folder, NAMES) is True
    assert not alive(second)
    assert [processes.status(folder, name) for name in NAMES] == [None, None]
    assert processes.stop(folder, NAMES) is False


def test_what_ends_all_does_so_with_success_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(processes.signal, "signal", lambda *_: None)
    monkeypatch.setattr(processes, "FIRST_WAIT", 0.01)
    fails_first = (
        "import os,sys,time\n"
        "while not os.path.exists('born'): time.sleep(0.01)\n"
        "failed = os.path.exists('failed')\n"
        "open('failed', 'a').close()\n"
        "sys.exit(not failed)\n"
    )
    lasting = "import os,time; open('born','a').write(f'{os.getpid()}\\n'); time.sleep(60)"
    children = [
        Child(name="lasting", command=(sys.executable, "-c", lasting)),
        Child(name="short", command=(sys.executable, "-c", fails_first), ends_all=True),
    ]
    assert processes.supervise(children, folder=tmp_path, names=()) == []
    assert (tmp_path / "failed").exists()
    (process,) = born(tmp_path)
    assert not alive(process)


def test_of_many_that_start_at_once_one_runs_and_stop_ends_it(tmp_path):
    started = {supervisor(tmp_path) for _ in range(6)}
    codes = [os.waitpid(-1, 0)[1] for _ in range(5)]
    assert [os.waitstatus_to_exitcode(code) for code in codes] == [2] * 5
    (child,) = until(lambda: born(tmp_path))
    runs = processes.status(tmp_path, "one")["process"]
    assert runs in started
    assert processes.stop(tmp_path, NAMES) is True
    assert os.waitpid(runs, 0)[1] == 0
    assert not alive(child)


def test_after_a_killed_supervisor_another_starts(tmp_path):
    killed = supervisor(tmp_path)
    until(lambda: born(tmp_path))
    until(lambda: processes.status(tmp_path, "one")["children"])
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert processes.status(tmp_path, "one") is None  # though its note is still there
    following = supervisor(tmp_path)
    until(lambda: born(tmp_path)[1:])
    assert processes.stop(tmp_path, NAMES) is True
    assert os.waitpid(following, 0)[1] == 0


def test_what_runs_in_another_container_is_told_and_not_ended(supervised, monkeypatch):
    folder, _ = supervised
    (child,) = until(lambda: born(folder))
    until(lambda: processes.status(folder, "one")["children"])
    monkeypatch.setattr(locks, "holder", lambda *_: 0)  # as the kernel tells it there
    assert list(processes.status(folder, "one")["children"]) == ["child"]
    with pytest.raises(ConfigError, match=r"another container"):
        processes.stop(folder, NAMES)
    assert alive(child)


def test_what_does_not_end_is_told(tmp_path):
    process = supervisor(tmp_path)
    until(lambda: born(tmp_path))
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(ConfigError, match=f"process {process}"):
        processes.stop(tmp_path, NAMES, wait=0.2)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def test_a_killed_supervisor_takes_its_children_with_it(supervised):
    folder, process = supervised
    (child,) = until(lambda: born(folder))
    os.kill(process, signal.SIGKILL)
    until(lambda: not alive(child))


def test_a_child_sees_nothing_of_our_environment(supervised, monkeypatch):
    folder, _ = supervised
    log = folder / "logs" / "child.log"
    seen = until(lambda: log.exists() and log.read_text())
    names = set(eval(seen))
    assert names <= {
        *processes.QUIET,
        "LANG",
        "LC_CTYPE",
        "OMP_NUM_THREADS",
        "PYTHONPATH",
        "TZ",
        "PATH",
        "HOME",
        "FLWR_HOME",
    }


def test_a_log_that_its_child_made_endless_is_shortened_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LARGEST_LOG", 1000)
    log = tmp_path / "child.log"
    log.touch()
    os.truncate(log, 2**40)
    processes._shorten(log)
    assert log.stat().st_size == 0
    assert log.with_name("child.log.1").stat().st_size <= 1000


def test_a_log_is_kept_to_a_size_with_one_older_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LARGEST_LOG", 1000)
    log = tmp_path / "child.log"
    with log.open("ab", buffering=0) as child:
        for number in range(300):
            child.write(b"line %03d\n" % number)
            processes._shorten(log)
    older = log.with_name("child.log.1")
    lines = (older.read_text() + log.read_text()).splitlines()
    assert lines == [f"line {number:03}" for number in range(300)][-len(lines) :]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["child.log", "child.log.1"]
    assert max(older.stat().st_size, log.stat().st_size) < 1010
    assert older.stat().st_mode & 0o077 == 0


def test_a_log_of_just_the_largest_size_is_kept_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LARGEST_LOG", 9)
    log = tmp_path / "child.log"
    for content, kept in (("one\nline\n", "one\nline\n"), ("an\none\nline\n", "one\nline\n")):
        log.write_text(content)
        processes._shorten(log)
        assert (log.read_text(), log.with_name("child.log.1").read_text()) == ("", kept)
    log.write_text("short")
    processes._shorten(log)
    assert log.read_text() == "short"


def test_a_log_that_cannot_be_copied_is_cut(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(processes, "LARGEST_LOG", 10)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(processes, "write_atomic", full)
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "child.log"
    log.write_text("ten bytes and more")
    kept = processes._SupervisedProcess(Child(name="child", command=("true",)), tmp_path)
    kept.tend()
    kept.end()
    assert not log.read_bytes()
    assert "not kept" in caplog.text


def test_a_reason_is_logged_once_until_another_one_comes(tmp_path, monkeypatch, caplog):
    """The child writes a line and ends; its third line is another one."""
    monkeypatch.setattr(processes, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(processes, "LONGEST_WAIT", 0.0)
    (tmp_path / "logs").mkdir()
    why = "'the disk is full' if os.path.getsize('logs/child.log') < 99 else 'no key'"
    code = f"import os; print('10:00:00,000 ERROR caucus.party:', {why}); exit(1)"
    child = Child(
        name="child", command=(sys.executable, "-uc", code), environment=processes.child_environment(tmp_path)
    )
    tended = processes._SupervisedProcess(child, tmp_path)
    until(lambda: tended.tend() and "no key" in caplog.text)
    tended.end()
    said = [record.getMessage() for record in caplog.records if " says: " in record.getMessage()]
    assert said == ["child says: the disk is full", "child says: no key"]


def test_a_note_counts_only_while_the_process_that_wrote_it_runs(tmp_path):
    (tmp_path / "logs").mkdir()
    code = "import json, os, time; json.dump({'process': os.getpid()}, open('note', 'w')); time.sleep(60)"
    child = Child(
        name="child",
        command=(sys.executable, "-c", code),
        environment=processes.child_environment(tmp_path),
        note="note",
    )
    (tmp_path / "note").write_text('{"process": 1}')
    tended = processes._SupervisedProcess(child, tmp_path)
    assert tended.read_note() == {}
    tended.tend()
    assert until(tended.read_note) == {"process": tended.process.pid}
    tended.end()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], ""),
        (["10:00 ERROR caucus.party: no key; expected: one", "10:01 INFO caucus.party: x"], "no key; expected: one"),
        (["Traceback (most recent call last):", "csv.ReaderError: 'Jane Doe, 67'"], "csv.ReaderError"),
        (["Traceback (most recent call last):", "MemoryError"], "MemoryError"),
        (["csv.ReaderError: two lines", "Doe: 67 y"], ""),
        (["67 y female, fell"], ""),
    ],
)
def test_a_library_s_message_is_no_reason_since_it_can_quote_a_record(lines, reason):
    assert processes.own_error(lines) == reason
