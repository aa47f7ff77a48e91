"""`caucus-coordinator send`: the texts of a complete run, to the hospitals that answered it.

A hospital takes them for an audit of its own (`client/releases.py`) and says nothing else. They are sent by a process
that Flower starts, as every message is, in the folder `sending` of the run. Who was offline can be sent them later.
The coordinator's page does the same by `begin`, and shows who has them by `sent`.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import CaucusError, CheckpointError, ConfigError
from common.messages import LARGEST_RELEASE
from common.system.commands import add_command
from server.deploy.run_state import Status, checked, command, progress, submit, watched
from server.deploy.runs import begun
from server.deploy.settings import CoordinatorSettings
from server.documents.hospitals import Delivery
from server.documents.privacy import Privacy
from server.failure import FAILURE
from server.guarantee.case import unprotected
from server.run_folder import SENDING, TEXTS

UNDER_WAY = (Status.STARTING, Status.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Who has a run's texts.

    Attributes:
        under_way: Whether they are being sent.
        problem: Why the last process that was to send them did not; empty if it did, or there was none.
        received: Time at which each hospital took them, by the hospital's name.
        missing: Why each other hospital that was sent them does not have them, by the hospital's name.
    """

    under_way: bool
    problem: str
    received: Mapping[str, str]
    missing: Mapping[str, str]


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `send`."""
    parser = add_command(
        commands,
        "send",
        _send,
        summary="send a complete run's texts to the hospitals that answered it; exit code 1 if one does not have them",
        description="Send synthetic.jsonl of a complete run to the hospitals that answered it, so that each can "
        "compare it with its own records. It can be repeated: what a hospital has stays as it is.",
        example="caucus-coordinator send coordinator first",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-coordinator init")
    parser.add_argument("name", metavar="NAME", help="name of the run")


def _send(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    run = begun(settings, chosen.name)
    folder = run / SENDING
    before = begin(settings, run)
    ended = next(state for state in watched(settings, folder) if state.status not in UNDER_WAY)
    delivery = Delivery.load_if_there(folder)
    if delivery is None or delivery == before:
        raise CaucusError(ended.reason, where=folder / "run.log")
    yield from (f"{name} has the texts since {when}" for name, when in sorted(delivery.received.items()))
    if delivery.missing:
        raise CaucusError(
            "texts of a run",
            expected=f"at all {len(delivery.received) + len(delivery.missing)} hospitals that answered it",
            got="; ".join(f"{name} {problem}" for name, problem in sorted(delivery.missing.items())),
            do=f"{command(settings, 'send', run.name)} sends them again",
        )


def begin(settings: CoordinatorSettings, run: Path) -> Delivery | None:
    """Let Flower start the process that sends a run's texts; return who was sent them before.

    Args:
        settings: Settings of the coordinator.
        run: The run folder.

    Raises:
        CaucusError: The texts are being sent, no hospital should be sent them, or Flower fails.
    """
    _check(run)
    folder = run / SENDING
    folder.mkdir(exist_ok=True)
    if checked(settings, folder).status in UNDER_WAY:
        raise CaucusError("texts of a run", expected="sent once at a time", got="a process that sends", where=folder)
    before = Delivery.load_if_there(folder)
    submit(settings, folder)
    return before


def sent(settings: CoordinatorSettings, run: Path) -> Sending:
    """Return who has a run's texts, and whether they are being sent."""
    folder = run / SENDING
    state, delivery = checked(settings, folder), Delivery.load_if_there(folder)
    died = state.status is Status.FAILED and (delivery is None or (folder / FAILURE).exists())
    return Sending(
        under_way=state.status in UNDER_WAY,
        problem=state.reason if died else "",
        received=delivery.received if delivery else {},
        missing=delivery.missing if delivery else {},
    )


def _check(run: Path) -> None:
    """Refuse a run whose texts no hospital should be sent, or would take.

    Raises:
        CheckpointError: It is not complete.
        ConfigError: Its texts are not protected, or too large.
    """
    status = progress(run).status
    if status is not Status.COMPLETE:
        raise CheckpointError("run", expected="a complete one", got=f"one that is {status}", where=run)
    problems: list[str] = []
    privacy = Privacy.read(run, problems)
    if privacy is None or unprotected(privacy):
        got = next(
            iter(problems), "one whose texts can show private records to the other hospitals (epsilon is infinite)"
        )
        raise ConfigError("run", expected="one with a guarantee", got=got, where=run)
    size = (run / TEXTS).stat().st_size
    if size > LARGEST_RELEASE:
        raise ConfigError(TEXTS, expected=f"at most {LARGEST_RELEASE:,} bytes", got=f"{size:,}", where=run)
