"""`caucus-coordinator run` and `resume`: runs of a deployment, each a folder under `runs/`.

`run` writes the configuration into the folder and lets Flower start the ServerApp. From then on this process only
prints the run's log. The status of a run is that of its folder (`run.json`), not Flower's.
"""

import argparse
import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import CaucusError, CheckpointError, ConfigError
from common.messages import Reason
from common.system.commands import add_command
from common.system.files import text_of, write_atomic
from server.app import build_parts, composed, load, store
from server.deploy.enrolment import enrolled
from server.deploy.flower import flwr
from server.deploy.settings import CoordinatorSettings
from server.failure import FAILURE, lock_folder

POLL_SECONDS = 1.0
ASK_FLOWER_EVERY = 10.0
"""Seconds between two questions to Flower; one of its commands takes two."""
ENDING_SECONDS = 60.0
"""Seconds to wait for the process of a failed or killed run to end: two must not work in one folder."""
LEAST_ROOM = 2**16
"""Free bytes below which the disk of a run folder counts as full."""
ENDED = ("finished:", "finished", "stopped")


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `run` and `resume`."""
    run = add_command(
        commands,
        "run",
        _run,
        summary="run a federation with the enrolled hospitals",
        description="Write the configuration into FOLDER/runs/NAME, start the run, and print its log until it ends.",
        example="caucus-coordinator run coordinator first method=wasp privacy.epsilon=4",
    )
    resume = add_command(
        commands,
        "resume",
        _resume,
        summary="resume a run that was interrupted or awaits approval",
        description="Resume after the last whole step; answers that were paid for are not asked for again.",
        example="caucus-coordinator resume coordinator first",
    )
    for parser in (run, resume):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-coordinator init")
        parser.add_argument("name", metavar="NAME", help="name of the run")
    run.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4 task=csv")


def settled(settings: CoordinatorSettings, overrides: list[str]) -> Any:  # noqa: ANN401 Hydra's configuration
    """The configuration of a run with all enrolled hospitals and their roster.

    Raises:
        ConfigError: Nobody is enrolled.
    """
    count = len(enrolled(settings))
    if not count:
        raise ConfigError("hospitals", expected="at least one", got="none", do="caucus-coordinator enrol")
    config = composed([f"federation.parties={count}", *overrides], "server")
    if config.secagg.mode == "malicious" and not config.secagg.roster:
        config.secagg.roster = str(settings.folder / "identities.json")
    return config


def _run(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    folder = _folder(settings, chosen.name)
    if folder.exists():
        raise CheckpointError(
            "run folder", expected="a new name", got="a run of that name", where=folder, do="caucus-coordinator resume"
        )
    config = settled(settings, chosen.overrides)
    parts = build_parts(config)  # a wrong setting fails here and not in Flower's process
    yield f"{config.method.name} with {parts.plan.parties} hospitals: epsilon {parts.plan.epsilon:g}"
    yield f"records with these labels take part: {', '.join(parts.plan.labels)}"
    store(config, folder)
    yield from _started(settings, folder, chosen)


def _resume(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    folder = _folder(settings, chosen.name)
    if not (folder / "config.yaml").exists():
        raise CheckpointError("run folder", expected="a run that was started", got="none", where=folder)
    # The lock shows whether a process is at work; Flower reports a killed one as running for a while.
    deadline = time.monotonic() + ENDING_SECONDS
    while (lock := lock_folder(folder)) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if lock is None:
        raise CaucusError("run", expected="one that has ended", got="a process at work", where=folder)
    lock.close()
    before = _last(settings, folder)
    if before and not _ended(before):
        with contextlib.suppress(CaucusError):  # it may have ended just now
            flwr(settings, "stop", before["run-id"])
    load(folder)
    yield from _started(settings, folder, chosen)


def _started(settings: CoordinatorSettings, folder: Path, chosen: argparse.Namespace) -> Iterator[str]:
    (folder / FAILURE).unlink(missing_ok=True)
    log = folder / "run.log"
    at = log.stat().st_size if log.exists() else 0
    write_atomic(folder / "flower.json", json.dumps({"run-id": _submit(settings, folder)}).encode())
    go_on = f"caucus-coordinator resume {chosen.folder} {chosen.name} goes on"
    asked, ended = time.monotonic(), None
    while not _complete(folder):
        failed = text_of(folder / FAILURE)
        if failed:
            raise CaucusError(_advised(failed), do=go_on)
        if ended:
            where = settings.folder / "logs" / "executor.log"
            raise CaucusError("run", expected="its end", got=_and_the_disk(ended, folder), where=where, do=go_on)
        if time.monotonic() - asked > ASK_FLOWER_EVERY:
            asked, flower = time.monotonic(), _last(settings, folder)
            # Read the folder once more before this counts: it is written before Flower knows.
            ended = flower["status"] if flower and _ended(flower) else None
        else:
            time.sleep(POLL_SECONDS)
        lines, at = _new_lines(log, at)
        yield from lines
    yield f"done: {folder / 'report.html'}"


def _submit(settings: CoordinatorSettings, folder: Path) -> str:
    answer = flwr(settings, "run", "--run-config", f'run-folder="{folder}"', str(settings.folder / "bundle"))
    return str(answer["run-id"])


def _advised(failed: str) -> str:
    if Reason.AWAITING.name in failed:
        return f"{failed} The hospitals named AWAITING have yet to approve the plan (caucus-party approve)"
    return failed


def _and_the_disk(ended: str, folder: Path) -> str:
    """Add a full disk as the cause: the run could not even write its error."""
    return f"{ended}, and a full disk" if shutil.disk_usage(folder).free < LEAST_ROOM else ended


def _new_lines(log: Path, at: int) -> tuple[list[str], int]:
    if not log.exists():
        return [], at
    with log.open("rb") as file:
        file.seek(at)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode(errors="replace").splitlines(), at + len(whole)


def _complete(folder: Path) -> bool:
    text = text_of(folder / "run.json")
    return bool(text) and json.loads(text)["status"] == "complete" and (folder / "report.html").exists()


def _last(settings: CoordinatorSettings, folder: Path) -> dict[str, Any] | None:
    """Flower's record of the folder's last run, or None."""
    text = text_of(folder / "flower.json")
    if not text:
        return None
    try:
        (run,) = flwr(settings, "list", "--run-id", json.loads(text)["run-id"])["runs"]
    except (CaucusError, ValueError):
        return None
    return dict(run)


def _ended(run: dict[str, Any]) -> bool:
    return str(run["status"]).startswith(ENDED)


def _folder(settings: CoordinatorSettings, name: str) -> Path:
    if not name or name != Path(name).name or name.startswith("."):
        raise ConfigError("name of the run", expected="a file name", got=name)
    return settings.folder / "runs" / name
