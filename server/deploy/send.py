"""`caucus-coordinator send`: the texts of a complete run, to the hospitals that answered it.

A hospital takes them for an audit of its own (`client/releases.py`) and says nothing else. They are sent by a process
that Flower starts, as every message is, in the folder `sending` of the run. Who was offline can be sent them later.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from common.errors import CaucusError, CheckpointError, ConfigError
from common.messages import LARGEST_RELEASE
from common.system.commands import add_command
from server.deploy.run_state import Status, command, progress, submit, watched
from server.deploy.runs import begun
from server.deploy.settings import CoordinatorSettings
from server.documents.hospitals import Delivery
from server.documents.privacy import Privacy
from server.failure import at_work
from server.guarantee.case import unprotected
from server.run_folder import SENDING, TEXTS


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
    _check(run)
    folder = run / SENDING
    folder.mkdir(exist_ok=True)
    if at_work(folder):
        raise CaucusError("texts of a run", expected="sent once at a time", got="a process that sends", where=folder)
    before = Delivery.load_if_there(folder)
    submit(settings, folder)
    under_way = (Status.STARTING, Status.RUNNING)
    ended = next(state for state in watched(settings, folder) if state.status not in under_way)
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
