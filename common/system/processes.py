"""Supervised child processes: started with a clean environment, restarted when they end, ended with this process.

Each child has its own session, so that all processes that it starts end with it; if this process is killed, the kernel
ends its children. The environment is built from scratch: no secret of the parent's shell is passed on. Each child's log
has a limited size and one older copy.
"""

import contextlib
import ctypes
import json
import logging
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from common.errors import ConfigError
from common.system import locks
from common.system.files import FILE_ALONE, PUBLIC, SECRET, content_of, write_atomic
from common.system.log_lines import COLOUR, printable_line

log = logging.getLogger("caucus.start")

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""Environment variables that stop libraries from phoning home, looking for updates or downloading."""

FIRST_WAIT, LONGEST_WAIT = 1.0, 15.0
"""Shortest and longest wait before a restart, in seconds. The wait doubles after each run shorter than `STEADY`, since
Flower rejects a node until its last heartbeat expires."""
STEADY = 60.0
"""Seconds that a child must run for its next wait to be `FIRST_WAIT` again."""
LARGEST_LOG = 16 * 2**20
"""Size, in bytes, at which a child's log becomes the older copy. Data from unknown senders can cause log lines, so disk
usage is limited to two such files. The logs of runs, the audit log and the ledger are other files."""
GRACE = 10.0
"""Seconds between asking a child to end and killing it."""

_PR_SET_PDEATHSIG = 1
_OWN_ERROR = " ERROR caucus"
_RAISED = re.compile(r"[\w.]*(?:Error|Exception)(?=: |$)")
"""Type of an error in the last line of a traceback."""


def own_error(lines: Sequence[str]) -> str:
    """Return the last error that our own code logged, or else the type of the error with which the process ended.

    A library's message is left out, since it can quote its input.
    """
    logged = [line.partition(_OWN_ERROR)[2].partition(": ")[2] for line in lines if _OWN_ERROR in line]
    raised = _RAISED.match(lines[-1]) if lines else None
    return logged[-1] if logged else raised[0] if raised else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A child process to keep running.

    Attributes:
        name: Name shown to the operator and used for the log file.
        command: Program and arguments; never a secret, since all users can see them.
        environment: The complete environment of the process, built by `child_environment`; it inherits no variable.
        user: Account to run the process under when we are root; None means our own account.
        ends_all: Whether an exit with code 0 ends all children. Any other exit restarts the process.
        ready: File, relative to the working directory, that the process makes once it works; empty if it makes none.
        note: File, relative to the working directory, in which the process notes its state: a JSON object with its
            process ID as `process`; empty if it has none. It is shown to whoever may see the state of the processes.
        reason: Function that finds the reason of an end in the lines that the process wrote.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    ends_all: bool = False
    ready: str = ""
    note: str = ""
    reason: Callable[[Sequence[str]], str] = own_error


def program(name: str) -> str:
    """Return the path of a command that is installed beside the running Python interpreter."""
    return str(Path(sys.executable).parent / name)


def free_port() -> int:
    """Return a port that is currently free on the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def child_environment(home: Path, **more: str) -> dict[str, str]:
    """Return the complete environment of a child process."""
    inherited = {
        name: os.environ[name] for name in ("LANG", "OMP_NUM_THREADS", "PYTHONPATH", "TZ") if name in os.environ
    }
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return {**inherited, **QUIET, "PATH": path, "HOME": str(home), "FLWR_HOME": str(home / "flwr"), **more}


def supervise(
    children: Sequence[Child], *, folder: Path, names: Sequence[str], before_end: Callable[[], None] = lambda: None
) -> list[str] | None:
    """Keep all children running until SIGTERM or SIGINT, or until a child with `ends_all` exits with code 0.

    Args:
        children: Processes to run.
        folder: Their working directory. Their output goes to `logs/NAME.log`, older output to `logs/NAME.log.1`.
        names: The locks that this process holds (`locks.py`); the state of the processes is in each `run/NAME.json`.
        before_end: Called after a signal, before the children are ended.

    Returns:
        If a child with `ends_all` has exited with code 0, the names of the other children that were not running then or
        not ready; None after a signal.
    """
    (folder / "logs").mkdir(exist_ok=True, mode=0o700)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    tended = [_SupervisedProcess(child, folder) for child in children]
    notes = [_note_of(folder, name) for name in names]
    for note in notes:  # a killed supervisor has left its own
        note.unlink(missing_ok=True)
    try:
        while not stop.is_set():
            changed = [child.tend() for child in tended]
            if any(child.done for child in tended):
                return [child.child.name for child in tended if not child.done and not child.works()]
            before = [child.noted for child in tended]
            if [child.read_note() for child in tended] != before or any(changed):
                for note in notes:
                    _write(note, tended)
            stop.wait(0.2)
        before_end()
        return None
    finally:
        for child in reversed(tended):
            child.end()
        for note in notes:
            note.unlink(missing_ok=True)


def status(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the process ID of this folder's supervisor and the state of its children; None if no supervisor runs.

    Process IDs are those in the supervisor's container; the supervisor's ID is 0 if that is not our container.
    """
    process = locks.holder(folder, name)
    if process is None:
        return None
    try:
        children = json.loads(content_of(_note_of(folder, name)))
    except (OSError, ValueError):  # it is about to start them
        children = {}
    return {"process": process, "children": children}


def child_states(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the state of all children of the supervisors that hold these locks of a folder, keyed by name."""
    running = [status(folder, name) or {"children": {}} for name in names]
    # One supervisor that holds several locks is found several times, with the same children.
    return {name: child for supervisor in running for name, child in supervisor["children"].items()}


def stop(folder: Path, names: Sequence[str], *, wait: float = 3 * GRACE) -> bool:
    """Terminate the supervisors that hold these locks of a folder, and their children; return False if there is none.

    Raises:
        ConfigError: A supervisor does not end, or runs in another container.
    """
    processes = {name: process for name in names if (process := locks.holder(folder, name)) is not None}
    for process in set(processes.values()) - {0}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + wait
    while running := [
        process for name, process in processes.items() if process and locks.holder(folder, name) == process
    ]:
        if time.monotonic() > deadline:
            raise ConfigError(f"process {running[0]} of this folder still runs", do="Wait, then run the command again")
        time.sleep(0.1)
    if elsewhere := [name for name, process in processes.items() if not process]:
        got, do = f"{elsewhere[0]} in another container", "Stop that container"
        raise ConfigError("processes of this folder", expected="all in this container", got=got, where=folder, do=do)
    return bool(processes)


class _SupervisedProcess:
    def __init__(self, child: Child, folder: Path) -> None:
        self.child = child
        self.restarts = -1
        self.done = False
        self.process: subprocess.Popen[bytes] | None = None
        self._folder = folder
        self._wait = FIRST_WAIT
        self._since = 0.0
        self._at = 0.0
        self._log = folder / "logs" / f"{child.name}.log"
        self._log_start = 0
        self._reason = ""
        self.noted: dict[str, Any] = {}

    def tend(self) -> bool:
        """Start the child if it is not running and its wait is over. Return True if it ended or was started."""
        now = time.monotonic()
        _shorten(self._log)
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return False
            _end_session(self.process.pid, signal.SIGKILL)
            self._wait = FIRST_WAIT if now - self._since > STEADY else min(2 * self._wait, LONGEST_WAIT)
            self._at = now + self._wait
            self.process = None
            if code == 0 and self.child.ends_all:
                self.done = True
                return True
            log.warning("%s ended with code %s; starts again in %.0f s", self.child.name, code, self._wait)
            self._tell_reason()
            return True
        if now < self._at:
            return False
        if self.child.ready:
            (self._folder / self.child.ready).unlink(missing_ok=True)
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        self.process, self._since, self.restarts = _start(self.child, self._folder), now, self.restarts + 1
        log.info("%s started", self.child.name)
        return True

    def works(self) -> bool:
        """Return whether the child is running, and ready if it tells that."""
        running = self.process is not None and self.process.poll() is None
        return running and (not self.child.ready or (self._folder / self.child.ready).exists())

    def read_note(self) -> dict[str, Any]:
        """Read and return what the running process notes of its state; empty if it has noted nothing."""
        self.noted = {}
        if self.child.note and self.process is not None:
            with contextlib.suppress(OSError, ValueError):
                noted = json.loads(content_of(self._folder / self.child.note))
                if isinstance(noted, dict) and noted.get("process") == self.process.pid:  # else an earlier process's
                    self.noted = noted
        return self.noted

    def _tell_reason(self) -> None:
        """Log why the process ended, in its own words, unless that was the reason the time before."""
        with contextlib.suppress(OSError):
            lines = content_of(self._log)[self._log_start :].decode(errors="replace").splitlines()
            reason = printable_line(COLOUR.sub("", self.child.reason(lines)))
            if reason and reason != self._reason:
                log.warning("%s says: %s", self.child.name, reason)
            self._reason = reason

    def end(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE)
        _end_session(self.process.pid, signal.SIGKILL)
        self.process.wait()


def ends_with(parent: int) -> Callable[[], None]:
    """Return a `preexec_fn` for a child of this process: the kernel kills the child when `parent` ends in any way."""
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _start(child: Child, folder: Path) -> subprocess.Popen[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | FILE_ALONE
    out = os.open(folder / "logs" / f"{child.name}.log", flags, SECRET)
    try:
        account = pwd.getpwnam(child.user) if child.user is not None and os.geteuid() == 0 else None
        return subprocess.Popen(
            list(child.command),
            env=dict(child.environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=ends_with(os.getpid()),  # noqa: PLW1509 one thread, and prctl alone
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )
    finally:
        os.close(out)


def _shorten(path: Path) -> None:
    """Move the content of a log that has reached its maximum size to the older copy.

    The child has the log open for appending, so it is copied and truncated, not renamed: lines that are written at this
    moment may be lost.
    """
    if not path.exists():
        return
    with open(path, "r+b", opener=lambda name, flags: os.open(name, flags | FILE_ALONE)) as file:
        size = file.seek(0, os.SEEK_END)
        if size < LARGEST_LOG:
            return
        try:
            file.seek(max(0, size - LARGEST_LOG - 1))  # the file may be larger than memory
            if size > LARGEST_LOG:
                file.readline(LARGEST_LOG)
            write_atomic(path.with_name(path.name + ".1"), file.read(LARGEST_LOG), mode=SECRET)
        except OSError as error:
            log.warning("%s is cut and not kept: %s", path.name, error.strerror)  # a full disk needs the room most
        file.truncate(0)


def _end_session(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def _note_of(folder: Path, name: str) -> Path:
    return folder / "run" / f"{name}.json"


def _write(note: Path, tended: Sequence[_SupervisedProcess]) -> None:
    children = {
        child.child.name: {
            "process": child.process.pid if child.process else None,
            "restarts": max(child.restarts, 0),
            **({"noted": child.noted} if child.noted else {}),
        }
        for child in tended
    }
    write_atomic(note, json.dumps(children).encode(), mode=PUBLIC)
