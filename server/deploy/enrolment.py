"""`caucus-coordinator enrol` and `remove`: who takes part, here and at SuperLink, and the roster that tells everybody.

Parties are numbered without gaps, in the order of their enrolment; who was enrolled after a removed one moves up. So
after either, send `roster.json` to all: a party's number is where its own key stands.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import ConfigError
from common.secagg.identity import Roster
from common.system.commands import add_command
from common.system.enrolment import PartyFile
from common.system.files import write_atomic
from server.deploy.flower import flwr
from server.deploy.settings import CoordinatorSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A party and the node that SuperLink knows it by."""

    party: PartyFile
    node: str


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `enrol` and `remove`."""
    enrol = add_command(
        commands,
        "enrol",
        _enrol,
        summary="take a hospital in, from its party.json",
        description="Register the hospital's node at SuperLink, which must be served, and put it on the roster.",
        example="caucus-coordinator enrol coordinator party.json",
    )
    remove = add_command(
        commands,
        "remove",
        _remove,
        summary="revoke a hospital's key and take it off the roster",
        description="Unregister the hospital's node: its key opens nothing any more. The others' numbers close up.",
        example='caucus-coordinator remove coordinator "St. Mary"',
    )
    for parser in (enrol, remove):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-coordinator init")
    enrol.add_argument("file", metavar="FILE", type=Path, help="the hospital's party.json")
    remove.add_argument("name", metavar="NAME", help="the hospital's name")


def enrolled(settings: CoordinatorSettings) -> list[Enrolled]:
    """All parties, by number."""
    path = settings.folder / "parties.json"
    held = json.loads(path.read_bytes()) if path.exists() else []
    return [Enrolled(party=PartyFile(**each["party"]), node=each["node"]) for each in held]


def _enrol(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    party = PartyFile.load(chosen.file)
    parties = enrolled(settings)
    for number, other in enumerate(parties):
        for what in ("name", "identity", "node_key"):
            if getattr(other.party, what) == getattr(party, what):
                raise ConfigError(
                    f"hospital's {what.replace('_', ' ')}",
                    expected="one that no other hospital has",
                    got=f"that of party {number}, {other.party.name}",
                    do="caucus-coordinator remove it first, if it is the same hospital with new keys",
                )
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as key:
        key.write(party.node_key)
        key.flush()
        node = str(flwr(settings, "supernode", "register", key.name)["node-id"])
    _keep(settings, [*parties, Enrolled(party=party, node=node)])
    yield f"party {len(parties)}: {party.name}; fingerprint, to be compared by telephone: {party.fingerprint}"
    yield f"now send {settings.folder / 'roster.json'} to all {len(parties) + 1}"


def _remove(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    parties = enrolled(settings)
    gone = [each for each in parties if each.party.name == chosen.name]
    if not gone:
        names = ", ".join(each.party.name for each in parties) or "nobody"
        raise ConfigError("hospital", expected=f"one of {names}", got=chosen.name)
    flwr(settings, "supernode", "unregister", gone[0].node)
    _keep(settings, [each for each in parties if each is not gone[0]])
    yield f"{chosen.name} is removed; now send {settings.folder / 'roster.json'} to the {len(parties) - 1} others"


def _keep(settings: CoordinatorSettings, parties: list[Enrolled]) -> None:
    write_atomic(settings.folder / "parties.json", json.dumps([asdict(each) for each in parties], indent=1).encode())
    roster = Roster({number: bytes.fromhex(each.party.identity) for number, each in enumerate(parties)})
    write_atomic(settings.folder / "roster.json", roster.to_json().encode())
