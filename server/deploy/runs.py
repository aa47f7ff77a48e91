"""`caucus-coordinator run`, `resume`, `follow` and `cancel`: runs of a deployment, each a folder under `runs/`.

`run` performs quick checks first, then builds the run's parts, and only then writes the configuration into the folder
and has Flower start the ServerApp. From then on this process only prints the run's log (`run_state.py`). The
coordinator's page uses `start`, `resume` and `cancel` for the same purposes, and shows the log itself.
"""

import argparse
import contextlib
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.domain import is_one_population
from common.errors import CaucusError, CheckpointError, ConfigError
from common.phrases import Phrase, series
from common.system.commands import Commands, add_command, add_folder
from common.system.enrolment import LONGEST_NAME
from common.system.files import write_atomic
from common.system.locks import alone
from server.deploy.enrolment import attendance, enrolled_parties
from server.deploy.run_state import (
    FLOWER,
    POLL_SECONDS,
    RunStatus,
    command,
    follow_log,
    has_ended,
    last_flower_run,
    log_start,
    progress,
    submit,
    write_time,
)
from server.deploy.settings import CoordinatorSettings
from server.failure import CANCELLED, is_at_work
from server.flower.commands import flwr
from server.prepare.compose import compose_settings, load_settings, store
from server.prepare.files import check_files
from server.settings.schema import Hospital, Settings
from server.settings.sections import setting, with_values

ENDING_SECONDS = 60.0
"""Seconds to wait for the process of a failed or cancelled run to end, since two must not work in the same folder."""
OVERRIDES = "overrides.txt"
"""File of a deployed run that contains the overrides with which it was started, as typed in a shell."""
LONGEST_FILE_NAME = 255
"""Maximum number of bytes in a file name."""


def register(commands: Commands) -> None:
    """Add the `run`, `resume`, `follow` and `cancel` commands."""
    run = add_command(
        commands,
        "run",
        _run,
        summary="run a federation with the enrolled hospitals",
        description="Check settings and hospitals, print the answers' expected signal and noise, and ask if votes "
        "are likely to be noise. Then write the configuration into FOLDER/runs/NAME, start the run, and print its log "
        "until it ends. The run continues after Ctrl-C.",
        example="caucus-coordinator run coordinator first method=class_sums privacy.epsilon=4",
    )
    resume = add_command(
        commands,
        "resume",
        _resume,
        summary="resume a run that was interrupted or cancelled, or awaited approval",
        description="Resume after the last whole step; answers that were paid for are not asked for again.",
        example="caucus-coordinator resume coordinator first",
    )
    follow = add_command(
        commands,
        "follow",
        _follow,
        summary="print the log of a run until it ends",
        description="Print the whole log of a run, and new lines until the run ends. The run continues after Ctrl-C.",
        example="caucus-coordinator follow coordinator first",
    )
    cancel = add_command(
        commands,
        "cancel",
        _cancel,
        summary="stop one run; it can be resumed",
        description="Stop one run. Queries that were asked stay charged, and the hospitals keep their answers, so "
        "that a resumed run pays nothing twice.",
        example="caucus-coordinator cancel coordinator first",
    )
    for parser in (run, resume, follow, cancel):
        add_folder(parser, "caucus-coordinator")
        parser.add_argument("name", metavar="NAME", help="name of the run")
    for parser in (run, resume):
        parser.add_argument(
            "--wait",
            action="store_true",
            help="start even if too few hospitals are online, and wait for them up to federation.timeout seconds",
        )
    run.add_argument(
        "--yes",
        action="store_true",
        help="without asking where votes are likely to be noise, or calls of models are many",
    )
    run.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4 task=csv")


def with_hospitals(settings: CoordinatorSettings, overrides: list[str], name: str = "plan") -> Settings:
    """Return the checked settings of a run with all enrolled hospitals and their roster.

    Relative paths in the overrides are relative to the working directory. The run's ID is its name followed by eight
    random digits.

    Raises:
        ConfigError: No hospital is enrolled, the run leaves out enrolled parties, a file of private records is named,
            or a setting is wrong.
    """
    parties = enrolled_parties(settings)
    if not parties:
        raise ConfigError("hospitals", expected="at least one", got="none", do="Run caucus-coordinator enrol")
    typed = compose_settings([f"federation.parties={len(parties)}", *overrides], "server")
    if typed.federation.parties != len(parties):
        expected, got = f"{len(parties)}, one for each enrolled hospital", str(typed.federation.parties)
        do = "Leave it out, enrol or remove a hospital, or set federation.max_dropouts to go on without some"
        raise ConfigError("federation.parties", expected=expected, got=got, do=do)
    if records := setting(typed, "task.train"):
        raise ConfigError("task.train", expected="none: hospitals have the records", got=records, do="Leave it out")
    known: dict[str, Any] = {
        "run": f"{name}-{secrets.token_hex(4)}",
        "federation.max_records": max(entry.party.max_records for entry in parties),
        "federation.hospitals": tuple(Hospital(name=entry.party.name, node=int(entry.node)) for entry in parties),
    }
    if typed.secagg.malicious and not typed.secagg.roster:
        known["secagg.roster"] = str(settings.folder / "identities.json")
    return with_values(typed, known)


def _run(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    yield from start(settings, chosen.name, chosen.overrides, wait=chosen.wait, yes=chosen.yes)
    yield from follow_log(settings, _folder(settings, chosen.name))


def start(settings: CoordinatorSettings, name: str, overrides: list[str], *, wait: bool, yes: bool) -> Iterator[str]:
    """Check a new run, write its folder and have Flower start it; yield messages for the operator.

    With `wait` it starts even if too few hospitals are online, and with `yes` without asking, even if votes are likely
    to be noise or calls of models are many.

    Raises:
        CaucusError: The name is taken, a setting is wrong, too many hospitals are offline, nobody agreed to votes that
            are likely to be noise or to many calls of models, or Flower fails. No folder remains then.
    """
    folder = _folder(settings, name)
    if folder.exists():
        status = progress(folder).status
        goes_on = f"Run {command(settings, 'resume', name)} to go on with it, or choose"
        do = f"{'Choose' if status is RunStatus.COMPLETE else goes_on} another name"
        raise CheckpointError("name of the run", expected="a new one", got=f"that of a run which is {status}", do=do)
    typed = with_hospitals(settings, overrides, name)
    check_files(typed)
    yield from _offline_hospitals(settings, typed, wait=wait)

    from server.deploy.plan_lines import check_agreed, foresee
    from server.prepare.automatic import resolve_auto
    from server.prepare.calls import AGREED, check_calls, expected_calls
    from server.prepare.components import build_components

    run = resolve_auto(typed)
    parts = build_components(run)  # a wrong setting fails here and not in Flower's process
    hospitals = "1 hospital" if parts.plan.parties == 1 else f"{parts.plan.parties} hospitals"
    yield f"{run.method.name} with {hospitals}: epsilon {parts.epsilon:g}"
    yield taking_part(parts.plan.labels)
    lines, noise = foresee(run, parts, sum(entry.party.max_records for entry in enrolled_parties(settings)))
    yield from lines
    check_agreed(noise, yes=yes)
    if not yes:
        check_calls(expected_calls(run, parts), run, parts)
    store(with_values(run, AGREED), folder)
    write_atomic(folder / OVERRIDES, shlex.join(overrides).encode())
    try:
        with alone(folder):
            submit(settings, folder)
    except BaseException:
        shutil.rmtree(folder)  # nothing has begun
        raise


def taking_part(labels: Sequence[str]) -> str:
    """Return a sentence that states which records a plan with these labels asks about."""
    if is_one_population(labels):
        return "all records take part, as one population"
    return f"records with these labels take part: {', '.join(labels)}"


def _resume(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    folder = started_run_folder(settings, chosen.name)
    if progress(folder).status is RunStatus.COMPLETE:
        yield f"done: {folder / 'report.html'}"
        return
    yield from resume(settings, folder, wait=chosen.wait)
    yield from follow_log(settings, folder, at=log_start(folder))


def resume(settings: CoordinatorSettings, folder: Path, *, wait: bool) -> Iterator[str]:
    """Have Flower continue a run that ended before it was complete; yield messages for the operator.

    Raises:
        CaucusError: The run is complete, belongs to another process, or has not ended; or too many hospitals are
            offline, and `wait` is false.
    """
    _check_unfinished(folder)
    # The lock shows whether a process is running; Flower reports a killed one as running for a while.
    if not _ended(folder):
        follow = f"{command(settings, 'follow', folder.name)} shows its log"
        raise CaucusError("run", expected="one that has ended", got="a running process", where=folder, do=follow)
    yield from _offline_hospitals(settings, load_settings(folder), wait=wait)
    with alone(folder):
        _stop(settings, folder)
        submit(settings, folder)


def _follow(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    yield from follow_log(settings, started_run_folder(settings, chosen.name))


def _cancel(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    yield from cancel(settings, started_run_folder(settings, chosen.name))


def cancel(settings: CoordinatorSettings, folder: Path) -> Iterator[str]:
    """Stop a run and mark it as cancelled; yield sentences on the consequences.

    Raises:
        CaucusError: The run is complete, belongs to another process, or cannot be stopped.
    """
    with alone(folder):
        _check_unfinished(folder)
        write_time(folder / CANCELLED)
        if not _stop(settings, folder) and is_at_work(folder):
            (folder / CANCELLED).unlink()
            do = "See that caucus-coordinator serve runs, and cancel again"
            raise CaucusError("run", expected="one that Flower stops", got="no end of it", where=folder, do=do)
    resumed = command(settings, "resume", folder.name)
    yield f"{folder.name} is cancelled; to resume it goes on where it stopped ({resumed})"
    yield "until then the hospitals keep their answers, so that none is paid for twice"
    if not _ended(folder):
        yield "its process is still running, and ends after the current step"


def started_run_folder(settings: CoordinatorSettings, name: str) -> Path:
    """Return the folder of a run that was started.

    Raises:
        ConfigError: The name is not valid for a folder.
        CheckpointError: There is no such run.
    """
    folder = _folder(settings, name)
    if not (folder / "config.yaml").exists():
        names = sorted(path.name for path in (settings.folder / "runs").iterdir())
        expected = f"one of {', '.join(names)}" if names else "a run that was started"
        raise CheckpointError("run", expected=expected, got=repr(name))
    return folder


def is_steered(folder: Path) -> bool:
    """Return whether a run was created by `caucus-coordinator steer`, without hospitals and Flower."""
    return not (folder / FLOWER).exists() and bool(setting(load_settings(folder), "method.census"))


def _check_unfinished(folder: Path) -> None:
    """Raise a CheckpointError if a run is complete, or is not executed by Flower."""
    if progress(folder).status is RunStatus.COMPLETE:
        raise CheckpointError("run", expected="one that is not complete", got="a complete one", where=folder)
    if is_steered(folder):
        do = "Stop that process by Ctrl-C, and go on by caucus-coordinator steer with --resume"
        got = "one that caucus-coordinator steer makes, in a process of its own"
        raise CheckpointError("run", expected="one that was started with hospitals", got=got, where=folder, do=do)


def _folder(settings: CoordinatorSettings, name: str) -> Path:
    fits = 0 < len(name) <= LONGEST_NAME and name.isprintable() and len(os.fsencode(name)) <= LONGEST_FILE_NAME
    if not fits or name != Path(name).name or name.startswith("."):
        expected = f"a file name of at most {LONGEST_NAME} printable characters"
        raise ConfigError("name of the run", expected=expected, got=repr(name))
    return settings.folder / "runs" / name


def _offline_hospitals(settings: CoordinatorSettings, run: Settings, *, wait: bool) -> Iterator[str]:
    """Yield a sentence that names the offline hospitals; raise a CaucusError if too few are online to begin now."""
    hospitals = attendance(settings)
    offline = [str(hospital) for hospital in hospitals if not hospital.online]
    if not offline:
        return
    online, needed = len(hospitals) - len(offline), run.federation.parties - run.federation.max_dropouts
    waits = f"waits for them up to federation.timeout={run.federation.timeout:g} seconds"
    if online < needed and not wait:
        got = Phrase(online, "; ", series(offline, "and"))
        do = f"Ask them to start, or add --wait: the run then {waits}"
        raise CaucusError("hospitals online", expected=f"at least {needed}", got=got, do=do)
    yield f"{series(offline, 'and')}; the run {waits}" + (" and goes on without them" if online >= needed else "")


def _stop(settings: CoordinatorSettings, folder: Path) -> bool:
    """Ask Flower to stop the folder's run if it has not ended; return whether it has ended by now."""
    before = last_flower_run(settings, folder)
    if before and not has_ended(before):
        with contextlib.suppress(CaucusError):  # it may have ended just now
            flwr(settings.folder, "stop", before["run-id"])
        before = last_flower_run(settings, folder)
    return bool(before and has_ended(before))


def _ended(folder: Path) -> bool:
    """Wait until no process works in the folder; return False if one still does after `ENDING_SECONDS`."""
    deadline = time.monotonic() + ENDING_SECONDS
    while is_at_work(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
