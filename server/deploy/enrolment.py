"""`caucus-coordinator enrol` and `remove`: change the membership here and at SuperLink, and the roster.

Parties are numbered without gaps in the order of their enrolment; removing a party decreases the number of each later
party by one. Therefore send `roster.json` to all parties after either command. A party finds its number by its own key.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import CaucusError, ConfigError
from common.phrases import quote_name
from common.secagg.identity import Roster
from common.system.commands import Commands, add_command, add_folder
from common.system.enrolment import PartyFile, RosterFile
from common.system.files import write_atomic
from common.system.progress import is_agreed
from server.deploy.settings import CoordinatorSettings
from server.documents.hospitals import HospitalVersion, HospitalVersions
from server.flower.commands import flwr


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A party and its node at SuperLink."""

    party: PartyFile
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attending:
    """Attendance of a hospital: whether its node is connected.

    Attributes:
        party: The hospital.
        online: Whether its node is connected; None if that is not known.
        since: Time at which `online` last changed; empty if Flower does not report it.
    """

    party: PartyFile
    online: bool | None = None
    since: str = ""

    def __str__(self) -> str:
        """Return the hospital's attendance in plain words."""
        if self.online is None:
            return quote_name(self.party.name)
        since = f" since {self.since}" if self.since else ""
        return f"{quote_name(self.party.name)} is {'online' if self.online else 'offline'}{since}"


def register(commands: Commands) -> None:
    """Add the `enrol` and `remove` commands."""
    enrol = add_command(
        commands,
        "enrol",
        _enrol,
        summary="add a hospital, from its party.json",
        description="Show the hospital's fingerprint and ask whether it is the one that the hospital read out; then "
        "register its node at SuperLink, which must be running, and add it to the roster.",
        example="caucus-coordinator enrol coordinator party.json",
    )
    remove = add_command(
        commands,
        "remove",
        _remove,
        summary="revoke a hospital's key and remove it from the roster",
        description="Ask, and unregister the hospital's node: its key is no longer accepted, and a run under way loses "
        "it. The numbers after it move up.",
        example='caucus-coordinator remove coordinator "St. Mary"',
    )
    for parser in (enrol, remove):
        add_folder(parser, "caucus-coordinator")
        parser.add_argument("--yes", action="store_true", help="without asking")
    enrol.add_argument("file", metavar="FILE", type=Path, help="the hospital's party.json")
    remove.add_argument("name", metavar="NAME", help="the hospital's name")


def enrolled_parties(settings: CoordinatorSettings) -> list[Enrolled]:
    """Return all enrolled parties, ordered by number."""
    path = settings.folder / "parties.json"
    rows = json.loads(path.read_bytes()) if path.exists() else []
    return [Enrolled(party=PartyFile(**row["party"]), node=row["node"]) for row in rows]


def store_parties(settings: CoordinatorSettings, parties: list[Enrolled]) -> None:
    """Write the enrolled parties to `parties.json`, `roster.json` and `identities.json` (`deploy/settings.py`)."""
    write_atomic(settings.folder / "parties.json", json.dumps([asdict(entry) for entry in parties], indent=1).encode())
    roster = RosterFile(parties=tuple(entry.party for entry in parties))
    write_atomic(settings.folder / "roster.json", roster.to_json().encode())
    write_atomic(settings.folder / "identities.json", Roster.of_hospitals(roster).to_json().encode())


def attendance(settings: CoordinatorSettings, *, known: bool = True) -> list[Attending]:
    """Return the attendance of all enrolled hospitals, by number: as SuperLink reports it, or not `known`.

    Raises:
        CaucusError: SuperLink is to be asked, but `caucus-coordinator serve` does not run.
    """
    parties = enrolled_parties(settings)
    if not known:
        return [Attending(party=entry.party) for entry in parties]
    settings.check_served()
    nodes = {str(node["node-id"]): node for node in flwr(settings.folder, "supernode", "list")["nodes"]}
    attending = []
    for entry in parties:
        node = nodes.get(entry.node, {})
        online = node.get("status") == "online"
        since = str(node.get("online-at" if online else "offline-at", "N/A"))
        attending.append(Attending(party=entry.party, online=online, since="" if since == "N/A" else since))
    return attending


def reported_versions(settings: CoordinatorSettings) -> dict[str, HospitalVersion]:
    """Return the version that each hospital last reported, keyed by name; a file that cannot be read is ignored."""
    latest: dict[str, HospitalVersion] = {}
    for folder in (settings.folder / "runs").iterdir():
        if of_run := HospitalVersions.read(folder, [], needed=False):
            for name, version in of_run.versions.items():
                latest[name] = max(latest.get(name, version), version, key=lambda reported: reported.at)
    return latest


def _enrol(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    party = PartyFile.load(chosen.file)
    settings.check_served()
    parties = enrolled_parties(settings)
    for number, other in enumerate(parties):
        for what in ("name", "identity", "node_key"):
            if getattr(other.party, what) == getattr(party, what):
                same = f"party {number}, {quote_name(other.party.name)}, has the same {what.replace('_', ' ')}"
                do = "Run caucus-coordinator remove first, if it is the same hospital with new keys"
                raise ConfigError(same, do=do)
    RosterFile(parties=(*(entry.party for entry in parties), party))  # refuses similar names, before anything is stored
    yield "fingerprint, to be compared by telephone:"
    yield from party.shown(len(parties))
    do = "Compare the fingerprint by telephone, then add --yes to enrol the hospital"
    if not (chosen.yes or is_agreed("is this the fingerprint that the hospital has?", what="new hospital", do=do)):
        raise CaucusError(f"{quote_name(party.name)} is not enrolled", do="Ask the hospital for its party.json again")
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as key:
        key.write(party.node_key)
        key.flush()
        node = str(flwr(settings.folder, "supernode", "register", key.name)["node-id"])
    store_parties(settings, [*parties, Enrolled(party=party, node=node)])
    yield f"enrolled; now send {settings.folder / 'roster.json'} to all {len(parties) + 1}"


def _remove(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    parties = enrolled_parties(settings)
    removed = next((entry for entry in parties if entry.party.name == chosen.name), None)
    if removed is None:
        names = ", ".join(quote_name(entry.party.name) for entry in parties) or "nobody"
        raise ConfigError("no such hospital is enrolled", got=quote_name(chosen.name), do=f"Name one of {names}")
    name = quote_name(removed.party.name)
    settings.check_served()
    question = f"remove {name}? its key is no longer accepted, and a run under way loses it"
    do = "Add --yes to remove it without being asked"
    if not (chosen.yes or is_agreed(question, what=f"removal of {name}", do=do)):
        raise CaucusError(f"{name} is not removed", do="Nothing was changed")
    flwr(settings.folder, "supernode", "unregister", removed.node)
    store_parties(settings, [entry for entry in parties if entry is not removed])
    yield f"{name} is removed; now send {settings.folder / 'roster.json'} to the {len(parties) - 1} others"
