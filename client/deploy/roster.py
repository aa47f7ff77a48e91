"""`caucus-party roster`: take the roster that the coordinator sent, after showing how it differs from the previous one.

The roster states which key belongs to which hospital. So a person must compare the fingerprint of each hospital with
the fingerprint that the hospital's own `init` printed, and the fingerprint of the whole roster with the one that the
other hospitals received. The person also has to confirm every hospital or key that was not on the previous roster. A
roster that only removes or reorders hospitals is accepted without confirmation.
"""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from client.channel import READY
from client.deploy.settings import SIDES, HospitalSettings
from common.errors import CaucusError, ConfigError
from common.phrases import quote_name
from common.secagg.identity import Roster
from common.system import processes
from common.system.commands import Commands, add_command, add_folder
from common.system.enrolment import RosterFile
from common.system.files import text_of, write_atomic
from common.system.progress import is_agreed

RESTART = "Restart it: caucus-party stop, then caucus-party start"
"""Advice where the running service has an older roster than the folder."""


def register(commands: Commands) -> None:
    """Add the `roster` command."""
    parser = add_command(
        commands,
        "roster",
        _roster,
        summary="take the roster that the coordinator sent",
        description="Check that this hospital is on the roster, show every hospital's fingerprint and what has changed "
        "since the stored roster, ask whether to accept new hospitals or keys, and store the roster.",
        example="caucus-party roster hospital roster.json",
    )
    parser.add_argument("--yes", action="store_true", help="take them without asking")
    add_folder(parser, "caucus-party")
    parser.add_argument("file", metavar="FILE", type=Path, help="roster.json from the coordinator")


def _roster(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    roster = RosterFile.load(chosen.file)
    number = settings.number(Roster.of_hospitals(roster))
    party_file = settings.party_file()
    if roster.parties[number].fingerprint != party_file.fingerprint:
        expected, got = f"this hospital's fingerprint {party_file.fingerprint}", roster.parties[number].fingerprint
        raise ConfigError(
            "roster", expected=expected, got=got, where=chosen.file, do="Send party.json to the coordinator"
        )
    for place, party in enumerate(roster.parties):
        yield from party.shown(place, " (this hospital)" if place == number else "")
    before: RosterFile | None = None
    with suppress(ConfigError):  # there is none, or one from an earlier version
        before = settings.roster_file()
    yield from _changes(before, roster)
    yield f"fingerprint of the roster, to be compared with the other hospitals': {roster.fingerprint}"
    known = {party_file, *(before.parties if before else ())}
    # Fewer hospitals are asked about as well: those that may help the coordinator are then a larger share.
    asks = known != set(roster.parties) and not chosen.yes
    do = "Compare the fingerprints by telephone, then add --yes to take the roster"
    what = "hospitals or keys that are new, or gone"
    if asks and not is_agreed("accept these hospitals and keys?", what=what, do=do):
        raise CaucusError("the roster is not taken", do="The one before stays, if there was one")
    write_atomic(settings.folder / "roster.json", roster.to_json().encode())
    old = running_roster(settings) not in {None, roster.fingerprint}
    yield "the roster is taken" + (f"; the running service still has the one before. {RESTART}" if old else "")


def running_roster(settings: HospitalSettings) -> str | None:
    """Return the fingerprint of the roster with which the running party service started; None if none runs."""
    return next(iter(_ready(settings)), None)


def running_records(settings: HospitalSettings) -> str | None:
    """Return the keyed digest of the records that the running party service has read; None if none runs."""
    return next(iter(_ready(settings)[1:]), None)


def _ready(settings: HospitalSettings) -> list[str]:
    """Return what the running party service wrote when it was ready; empty if none runs."""
    service = processes.child_states(settings.folder, SIDES["service"]).get("service", {})
    return text_of(settings.folder / READY).splitlines() if service.get("process") else []


def _changes(before: RosterFile | None, after: RosterFile) -> Iterator[str]:
    """Yield the differences between the two rosters, hospital by hospital."""
    if before is None:
        return
    old = {party.name: party.fingerprint for party in before.parties}
    new = {party.name: party.fingerprint for party in after.parties}
    for name in sorted(new.keys() - old.keys()):
        yield f"added: {quote_name(name)}"
    for name in sorted(old.keys() - new.keys()):
        yield f"removed: {quote_name(name)}"
    for name in sorted(new.keys() & old.keys()):
        if new[name] != old[name]:
            yield f"CHANGED KEYS: {quote_name(name)}; compare the new fingerprint by telephone"
    if before == after:
        yield "no change"
    elif old == new:
        yield "only the numbers have changed"
