"""The state of a run, as read from its folder, and the display of its log until the run ends.

A run is executed by a separate process, which Flower starts. The process locks the folder while it works. Before it
ends, it writes a complete result there, or a file that states why it ended (`server/failure.py`). If a folder is not
locked and contains neither a result nor such a file, its process was killed. Flower is queried only about a run for
which no process has begun.
"""

import contextlib
import json
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from common.errors import CaucusError
from common.phrases import series
from common.system import processes
from common.system.files import text_of, write_atomic
from server.deploy.settings import LOCKS, CoordinatorSettings
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.failure import ABSENT, AWAITING, CANCELLED, FAILURE, LOCK, LOG, REJECTED, is_at_work
from server.flower.commands import flwr
from server.report.ending import ending
from server.report.weaknesses import read_weaknesses

POLL_SECONDS = 0.2
"""Seconds between two reads of a run folder."""
ASK_FLOWER_EVERY = 10.0
"""Seconds between two requests to Flower, whose command takes two seconds."""
LEAST_ROOM = 2**16
"""Number of free bytes below which the disk of a run folder counts as full."""
FLOWER = "flower.json"
"""File of a deployed run with its ID in Flower, `serve`'s processes, and the log's size when the run was submitted."""

STOPPED = "stopped.txt"
"""File of a run that was stopped with `serve`; it contains the time."""
DIED = "the process of the run ended without reporting an error"


class RunStatus(StrEnum):
    """The possible states of a run."""

    NEW = "not started"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETE = "complete"
    AWAITING = "awaiting approval"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"


GOES_ON = (RunStatus.STARTING, RunStatus.RUNNING)
"""States of a run that has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run.

    Attributes:
        name: Name of the run's folder.
        status: The run's state.
        rounds: Number of rounds completed so far.
        reason: Reason for the failure, or time of the cancellation or of the coordinator's stop; otherwise empty.
        hospitals: Names of the hospitals that still have to approve the run.
        weaknesses: Weaknesses of the results of a complete run, each with advice.
    """

    name: str
    status: RunStatus
    rounds: int = 0
    reason: str = ""
    hospitals: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the progress in plain words."""
        words = {
            RunStatus.RUNNING: f"running, whole rounds so far: {self.rounds}",
            RunStatus.AWAITING: f"awaiting approval of {series(self.hospitals, 'and')}",
            RunStatus.FAILED: f"failed: {self.reason}",
            RunStatus.CANCELLED: f"cancelled at {self.reason}",
            RunStatus.STOPPED: f"stopped with the coordinator at {self.reason}",
        }
        return words.get(self.status, self.status.value)


def progress(folder: Path) -> Progress:
    """Read the state of a run from its folder."""
    began = bool(text_of(folder / LOCK))  # asked first: a process that begins after this question has not died
    working = is_at_work(folder)  # asked next: a process that ends after this question leaves its last words first
    current = Progress(name=folder.name, status=RunStatus.NEW, rounds=text_of(folder / RoundReport.FILE).count("\n"))
    if _complete(folder):
        return replace(current, status=RunStatus.COMPLETE, weaknesses=tuple(map(str, read_weaknesses(folder))))
    # Its process ends within seconds; what it may say of its own end is less than this.
    stopped = "" if working and not (folder / FAILURE).exists() else text_of(folder / STOPPED)
    if when := text_of(folder / CANCELLED) or stopped:
        status = RunStatus.STOPPED if when == stopped else RunStatus.CANCELLED
        return replace(current, status=status, reason=when)
    if names := text_of(folder / AWAITING):
        return replace(current, status=RunStatus.AWAITING, hospitals=tuple(names.splitlines()))
    if reason := text_of(folder / FAILURE):
        return replace(current, status=RunStatus.FAILED, reason=reason)
    if began and not working:
        return replace(current, status=RunStatus.FAILED, reason=DIED)
    begun = RunStatus.STARTING if (folder / FLOWER).exists() else RunStatus.NEW
    return replace(current, status=RunStatus.RUNNING if working else begun)


def checked_progress(settings: CoordinatorSettings, folder: Path, *, known: bool = True) -> Progress:
    """Return the run's progress. If its process has not begun, ask Flower first: a run that Flower gave up has failed.

    If `known` is false, so has a run that Flower does not report.
    """
    flower = last_flower_run(settings, folder) if progress(folder).status is RunStatus.STARTING else None
    current = progress(folder)  # read again: the folder is written before Flower knows
    if current.status is not RunStatus.STARTING or not (has_ended(flower) if flower else not known):
        return current
    said = (flower.get("status-details") or flower["status"]) if flower else "Flower says nothing of it"
    details = " ".join(str(said).split())
    disk = ", and a full disk" if _disk_is_full(folder) else ""  # the run could not even write its error
    reason = f"the process of the run did not begin: {details}{disk}"
    return replace(current, status=RunStatus.FAILED, reason=reason)


def run_folders(runs: Path) -> list[Path]:
    """Return the folders of all runs, by name."""
    return sorted(path.parent for path in runs.glob("*/config.yaml"))


def mark_stopped(runs: Path) -> None:
    """Mark the runs whose processes are at work as stopped with the coordinator."""
    for folder in run_folders(runs):
        if is_at_work(folder):
            with contextlib.suppress(OSError):  # on a full disk the other runs and the processes still have to end
                write_time(folder / STOPPED)


def write_time(path: Path) -> None:
    """Write the present time into a file that says when a run was cancelled or stopped."""
    write_atomic(path, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC".encode())


def submit(settings: CoordinatorSettings, folder: Path) -> None:
    """Have Flower start the run in this folder."""
    log = folder / LOG
    at = log.stat().st_size if log.exists() else 0
    for name in (FAILURE, REJECTED, ABSENT, AWAITING, CANCELLED, STOPPED):
        (folder / name).unlink(missing_ok=True)
    (folder / LOCK).write_bytes(b"")
    write_atomic(folder / "run.toml", f"run-folder = {json.dumps(str(folder), ensure_ascii=False)}\n".encode())
    answer = flwr(settings.folder, "run", "--run-config", str(folder / "run.toml"), str(settings.folder / "bundle"))
    note = {"run-id": str(answer["run-id"]), "processes": _processes(settings), "log": at}
    write_atomic(folder / FLOWER, json.dumps(note).encode())


def follow_log(settings: CoordinatorSettings, folder: Path, *, at: int = 0) -> Iterator[str]:
    """Yield the lines of the run's log, without its first `at` bytes, until the run ends.

    Raises:
        CaucusError: The run has ended but is not complete.
        KeyboardInterrupt: The operator pressed Ctrl-C; the message states how to continue.
    """
    try:
        yield from _followed(settings, folder, at)
    except KeyboardInterrupt:
        follow, cancel = (command(settings, verb, folder.name) for verb in ("follow", "cancel"))
        goes_on = f"{folder.name} goes on by itself. {follow} shows its log, {cancel} stops it"
        raise KeyboardInterrupt(goes_on) from None


def _followed(settings: CoordinatorSettings, folder: Path, at: int) -> Iterator[str]:
    log, resume = folder / LOG, f"{command(settings, 'resume', folder.name)} goes on"
    for state in watch_progress(settings, folder):
        silent = state.status is RunStatus.FAILED and not (folder / FAILURE).exists()
        current = _with_last_words(settings, folder, state) if silent else state
        lines, at = _new_lines(log, at)
        # The reason of a failure is the error that follows, and is not shown as a line of the log as well.
        yield from (
            line for line in lines if not (current.status is RunStatus.FAILED and line.endswith(current.reason))
        )
        match current.status:
            case RunStatus.COMPLETE:
                yield from ending(folder)
                return
            case RunStatus.AWAITING:
                approve = "They decide with caucus-party approve, which says if a limit is in the way"
                users = "Where files name users, a plan needs privacy.unit=user privacy.max_records=N"
                do = f"{approve}: ask them. {users}. After that {resume}"
                raise CaucusError(f"{current.name} is {current}", do=do)
            case RunStatus.CANCELLED | RunStatus.STOPPED:
                raise CaucusError(f"{current.name} is {current}", do=resume)
            case RunStatus.FAILED:
                rejected = (folder / REJECTED).exists()  # then the reason says what to do
                raise CaucusError(current.reason, where=log, do=None if rejected else resume)


def watch_progress(settings: CoordinatorSettings, folder: Path) -> Iterator[Progress]:
    """Yield the state of a run repeatedly; while the run is starting, ask Flower at intervals whether it has ended."""
    asked = time.monotonic()
    while True:
        current = progress(folder)
        if current.status is RunStatus.STARTING and time.monotonic() - asked > ASK_FLOWER_EVERY:
            current, asked = checked_progress(settings, folder), time.monotonic()
        yield current
        time.sleep(POLL_SECONDS)


def command(settings: CoordinatorSettings, verb: str, name: str) -> str:
    """Return a command line of `caucus-coordinator` for a run, which the operator can type."""
    return shlex.join(["caucus-coordinator", verb, str(settings.folder), name])


def last_flower_run(settings: CoordinatorSettings, folder: Path) -> dict[str, Any] | None:
    """Return Flower's record of the folder's last run; None if there is no run, or if Flower does not answer."""
    text = text_of(folder / FLOWER)
    if not text:
        return None
    try:
        (run,) = flwr(settings.folder, "list", "--run-id", json.loads(text)["run-id"])["runs"]
    except (CaucusError, ValueError):
        return None
    return dict(run)


def log_start(folder: Path) -> int:
    """Return the number of bytes in the run's log that earlier attempts wrote."""
    text = text_of(folder / FLOWER)
    return int(json.loads(text).get("log", 0)) if text else 0


def has_ended(run: dict[str, Any]) -> bool:
    """Return whether Flower considers a run finished."""
    return str(run["status"]).startswith(("finished", "stopped"))


def _with_last_words(settings: CoordinatorSettings, folder: Path, current: Progress) -> Progress:
    """Write to the folder why a run's process was killed or never began, and return the progress with that reason."""
    began = bool(text_of(folder / LOCK))  # the process wrote its number there
    reason = f"{DIED}: {_cause(settings, folder)}" if began else current.reason
    with contextlib.suppress(OSError):  # on a full disk they are printed alone
        with (folder / LOG).open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')},000 ERROR caucus.run: {reason}\n")
        write_atomic(folder / FAILURE, reason.encode())
    return replace(current, reason=reason)


def _cause(settings: CoordinatorSettings, folder: Path) -> str:
    if _disk_is_full(folder):
        return "a full disk"
    before, now = json.loads(text_of(folder / FLOWER)).get("processes"), _processes(settings)
    if not now:
        return "caucus-coordinator serve was stopped"
    if now != before:
        return "caucus-coordinator serve or one of its processes ended and was started again"
    return "it was killed, perhaps for lack of memory; if so, dmesg says it"


def _disk_is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < LEAST_ROOM


def _processes(settings: CoordinatorSettings) -> dict[str, int | None]:
    """Return the process IDs of SuperLink and the executor, keyed by name; empty if `serve` is not running."""
    children = processes.child_states(settings.folder, LOCKS)
    return {name: children[name]["process"] for name in ("superlink", "executor") if name in children}


def _new_lines(log: Path, at: int) -> tuple[list[str], int]:
    if not log.exists():
        return [], at
    with log.open("rb") as file:
        file.seek(at)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode(errors="replace").splitlines(), at + len(whole)


def _complete(folder: Path) -> bool:
    text = text_of(folder / RunSummary.FILE)
    return bool(text) and RunSummary.parse(text).complete and (folder / "report.html").exists()
