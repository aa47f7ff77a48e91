"""`caucus-party check` and `roster`: whether this hospital is ready, and what will leave it."""

import argparse
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPSConnection
from importlib.metadata import version
from pathlib import Path

from client import records
from client.deploy.settings import HospitalSettings
from common.errors import CaucusError, ConfigError, DataError
from common.messages import VERSION
from common.secagg.identity import Roster
from common.system.commands import add_command
from common.system.enrolment import RosterFile
from common.system.files import check_records, check_secret, write_atomic

LEAVES = (
    "leaves: public keys; for each planned query one vector of counts, noised here, masked so that only a sum is read;",
    "        of a length range and of seed choices this hospital's own answer, noised here, without a mask;",
    "        of fine-tuned samples, where client.yaml sets fine_tuning, texts of a model that learned with noise;",
    "        of abstracted seeds and rewritten records, where client.yaml sets seeds or rewriting and unsafe_unproven,",
    "        texts made from records, without proof;",
    "        coarse reasons of refusals; when this hospital answers and how long it takes",
    "never leaves: texts, labels and embeddings of records, counts without noise, how many records there are,",
    "        secret keys, the ledger",
)
TIMEOUT = 10.0
AHEAD, BEHIND = 5, 300
"""Seconds that this machine's clock may differ from the coordinator's: a node signs the time of each call, and Flower
takes it for forged beyond them."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check` and `roster`."""
    check = add_command(
        commands,
        "check",
        _check,
        summary="check data, encoder, keys, versions and connection",
        description="Check everything that a run needs, and say what will leave this hospital and what never does.",
        example="caucus-party check hospital",
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    check.add_argument("--offline", action="store_true", help="without the connection")
    roster = add_command(
        commands,
        "roster",
        _roster,
        summary="take the roster that the coordinator sent",
        description="Check that this hospital is on the roster, show the others' fingerprints, and keep it.",
        example="caucus-party roster hospital roster.json",
    )
    for parser in (check, roster):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")
    roster.add_argument("file", metavar="FILE", type=Path, help="roster.json from the coordinator")


def _check(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    facts: dict[str, object] = {"name": settings.name, "versions": _versions(), "approval": settings.approval}
    for secret in (settings.node / "node.key", settings.node / "superexec.secret"):
        check_secret(secret)
    check_records(settings.records)
    private = records.read(settings.records, may_be_empty=True)
    facts["records"] = len(private)
    facts["encoder"] = settings.loaded_encoder().digest
    facts["writes"] = sorted(settings.party.writers())
    roster = settings.roster()
    facts["number"], facts["parties"] = settings.number(roster), len(roster.keys)
    facts["coordinator"] = settings.coordinator if chosen.offline else _connection(settings)
    if chosen.json:
        yield json.dumps(facts, indent=2)
        return
    yield f"{settings.name}: party {facts['number']} of {facts['parties']}"
    yield f"records: {facts['records']} (known here alone)" + ("; it contributes noise" if not private else "")
    yield f"encoder: {str(facts['encoder'])[:16]}, versions: {facts['versions']}"
    yield f"coordinator: {facts['coordinator']}"
    yield f"approval: {settings.approval}; bundle: {settings.bundle[:16]}, never run here"
    yield from LEAVES
    if settings.party.limits.max_delta * len(private) >= 1:
        raise DataError(
            "max_delta", expected="below one over the number of records", where=settings.folder / "client.yaml"
        )


def _connection(settings: HospitalSettings) -> str:
    """TLS to the front door with the coordinator's own authority, and what its clock says.

    Raises:
        ConfigError: The certificate is expired, not yet valid, of another authority or of another host; or the clocks
            differ too much for a node to be let in.
        CaucusError: Nobody answers.
    """
    name, _, port = settings.coordinator.rpartition(":")
    context = ssl.create_default_context(cafile=str(settings.node / "ca.crt"))
    door = HTTPSConnection(name, int(port), timeout=TIMEOUT, context=context)
    try:
        door.connect()
        secure, here = door.sock.version(), datetime.now(UTC)  # before it asks, as a node signs before it calls
        door.request("GET", "/health")
        there = door.getresponse().getheader("Date", "")
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            "coordinator's certificate",
            expected="a valid one of its authority",
            got=error.verify_message,
            where=settings.coordinator,
            do="Compare the clocks of both machines and the invitation's fingerprint",
        ) from error
    except (OSError, HTTPException) as error:
        raise CaucusError(
            "coordinator",
            expected="an answer",
            got=getattr(error, "strerror", None) or type(error).__name__,
            where=settings.coordinator,
            do="Is it served, and does the firewall let outbound TCP to this port through?",
        ) from error
    finally:
        door.close()
    return f"{settings.coordinator}, {secure}, {_clocks(there, here)}"


def _clocks(there: str, here: datetime) -> str:
    """Difference between this machine's clock and the coordinator's, which has a resolution of one second.

    Raises:
        ConfigError: This clock is too far ahead or behind.
    """
    try:
        ahead = round((here - parsedate_to_datetime(there)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return "its clock is not known"
    if not -BEHIND < ahead < AHEAD:
        raise ConfigError(
            "clock of this machine",
            expected=f"less than {AHEAD} s ahead of the coordinator's and {BEHIND} s behind it",
            got=f"{abs(ahead)} s {'ahead' if ahead > 0 else 'behind'}",
            do="Set the one that is wrong, best by NTP on both: until then this hospital's node is not let in",
        )
    return f"clocks within {abs(ahead) + 1} s"


def _versions() -> str:
    return f"caucus {version('caucus')}, protocol {VERSION}, flwr {version('flwr')}"


def _roster(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    roster_file = RosterFile.load(chosen.file)
    roster = Roster(roster_file.identities)
    number = settings.number(roster)
    write_atomic(settings.folder / "roster.json", roster_file.to_json().encode())
    for party, hospital in enumerate(roster_file.parties):
        mark = "  (this hospital)" if party == number else ""
        yield f"party {party}, {hospital.name}: {hospital.fingerprint}{mark}"
    yield f"digest of the roster, to be compared with the other hospitals': {roster.digest.hex()[:32]}"
