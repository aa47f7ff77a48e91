"""`caucus-coordinator send`: send the texts of a complete run to the hospitals that answered its queries.

A hospital accepts the texts for its own audit (`client/releases.py`) and sends back only a confirmation. Like every
message, the texts are sent by a process that Flower starts; it works in the run's folder `sending`. A hospital that was
offline can be sent the texts later. The coordinator's page calls `begin` to send the texts, and `delivery_state` to
show which hospitals have them.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.errors import CaucusError, CheckpointError, ConfigError
from common.messages import LARGEST_RELEASE
from common.system.commands import Commands, add_command, add_folder
from common.system.locks import alone
from server.deploy.run_state import (
    GOES_ON,
    RunStatus,
    checked_progress,
    command,
    progress,
    submit,
    watch_progress,
)
from server.deploy.runs import is_steered, started_run_folder
from server.deploy.settings import CoordinatorSettings
from server.documents.hospitals import SentDocument
from server.documents.privacy import Privacy
from server.documents.run import TEXTS
from server.failure import LOG
from server.guarantee.case import lacks_guarantee
from server.run_folder import SENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The hospitals that have a run's texts, and those that do not.

    Attributes:
        under_way: Whether the texts are being sent now.
        problem: Why the last process for sending the texts failed; empty if it succeeded, or if there was no such
            process.
        received: Time at which each hospital accepted the texts, keyed by the hospital's name.
        missing: Reason why a hospital that was sent the texts does not have them, keyed by the hospital's name.
    """

    under_way: bool
    problem: str
    received: Mapping[str, str]
    missing: Mapping[str, str]


def register(commands: Commands) -> None:
    """Add the `send` command."""
    parser = add_command(
        commands,
        "send",
        _send,
        summary="send a complete run's texts to the hospitals that answered it; exit code 1 if one does not have them",
        description="Send synthetic.jsonl of a complete run to the hospitals that answered it, so that each can "
        "compare it with its own records. It can be repeated: what a hospital has stays as it is.",
        example="caucus-coordinator send coordinator first",
    )
    add_folder(parser, "caucus-coordinator")
    parser.add_argument("name", metavar="NAME", help="name of the run")


def _send(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    run = started_run_folder(settings, chosen.name)
    begin(settings, run)
    folder, problems = run / SENDING, list[str]()
    next(state for state in watch_progress(settings, folder) if state.status not in GOES_ON)
    done = delivery_state(settings, run, problems)
    for problem in (done.problem, *problems):
        if problem:
            raise CaucusError(problem, where=folder / LOG, do="Read it, then run the command again")
    yield from (f"{name} has the texts since {when}" for name, when in sorted(done.received.items()))
    if done.missing:
        what = f"{len(done.missing)} of {len(done.received) + len(done.missing)} hospitals have not received the texts"
        got = "; ".join(f"{name} {problem}" for name, problem in sorted(done.missing.items()))
        raise CaucusError(what, got=got, do=f"Run {command(settings, 'send', run.name)} to send them again")


def begin(settings: CoordinatorSettings, run: Path) -> None:
    """Have Flower start the process that sends the texts of the run in this folder.

    Raises:
        CaucusError: The texts are already being sent, must not be sent to any hospital, or Flower fails.
    """
    folder = run / SENDING
    with alone(run):
        if problem := unsendable(run):
            raise problem
        # A process that Flower does not report does not block a new one: two of them do no harm, since sending is
        # idempotent, and texts that a hospital already has are unchanged.
        if checked_progress(settings, folder, known=False).status in GOES_ON:
            do = "Wait until it is done"
            raise CaucusError("another process is sending the texts of this run", where=folder, do=do)
        folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            (folder / SentDocument.FILE).replace(folder / SentDocument.BEFORE)
        submit(settings, folder)


def delivery_state(settings: CoordinatorSettings, run: Path, problems: list[str]) -> Sending:
    """Return which hospitals have a run's texts; append to `problems` why a file cannot be read."""
    folder = run / SENDING
    state, delivery = checked_progress(settings, folder, known=False), SentDocument.last(folder, problems)
    under_way = state.status in GOES_ON
    failed = not under_way and not (folder / SentDocument.FILE).exists()  # `begin` has moved that of a sending before
    return Sending(
        under_way=under_way,
        problem=state.reason if failed else "",
        received=delivery.received if delivery else {},
        missing=delivery.missing if delivery else {},
    )


def unsendable(run: Path) -> CaucusError | None:
    """Return an error if a run's texts should not be sent or no hospital would accept them; otherwise return None."""
    status = progress(run).status
    if status is not RunStatus.COMPLETE:
        return CheckpointError("run", expected="a complete one", got=f"one that is {status}", where=run)
    problems: list[str] = []
    privacy = Privacy.read(run, problems)
    if privacy is None or lacks_guarantee(privacy):
        unprotected = "one whose texts can show private records to the other hospitals (epsilon is infinite)"
        got = problems[0] if problems else unprotected
        return ConfigError("run", expected="one with a guarantee", got=got, where=run)
    if is_steered(run) or privacy.earlier or not privacy.spent.queries_asked:
        return ConfigError("run", expected="one that hospitals answered", got="one that asked none", where=run)
    if not (run / TEXTS).exists():
        return CheckpointError(f"the run has no {TEXTS}", where=run, do="Restore it from a backup")
    size = (run / TEXTS).stat().st_size
    if size > LARGEST_RELEASE:
        expected, do = f"at most {LARGEST_RELEASE:,} bytes", "Pass the file on by another way"
        return ConfigError(TEXTS, expected=expected, got=f"{size:,}", where=run, do=do)
    return None
