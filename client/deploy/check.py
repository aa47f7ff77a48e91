"""`caucus-party check` and `roster`: whether this hospital is ready, and what will leave it."""

import argparse
import hashlib
import json
import socket
import ssl
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from client import records
from client.deploy.settings import Settings
from common.commands import add_command
from common.errors import CaucusError, ConfigError, DataError
from common.files import check_records, check_secret, write_atomic
from common.messages import VERSION
from common.secagg.identity import Roster

LEAVES = (
    "leaves: public keys; for each planned query one vector of counts, noised here, masked so that only a sum is read;",
    "        of a length range and of seed choices this hospital's own answer, noised here, without a mask;",
    "        of fine-tuned samples, where client.yaml sets fine_tuning, texts of a model that learned with noise;",
    "        coarse reasons of refusals; when this hospital answers and how long it takes",
    "never leaves: texts, labels and embeddings of records, counts without noise, how many records there are,",
    "        secret keys, the ledger",
)
TIMEOUT = 10.0


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
    settings = Settings.load(chosen.folder)
    facts: dict[str, object] = {"name": settings.name, "versions": _versions(), "approval": settings.approval}
    for secret in (settings.node / "node.key", settings.node / "superexec.secret"):
        check_secret(secret)
    check_records(settings.records)
    held = records.read(settings.records, may_be_empty=True)
    facts["records"] = len(held)
    facts["encoder"] = settings.loaded_encoder().digest
    facts["writes"] = sorted(settings.writers())
    roster = settings.roster()
    facts["number"], facts["parties"] = settings.number(roster), len(roster.keys)
    facts["coordinator"] = settings.coordinator if chosen.offline else _connection(settings)
    if chosen.json:
        yield json.dumps(facts, indent=2)
        return
    yield f"{settings.name}: party {facts['number']} of {facts['parties']}"
    yield f"records: {facts['records']} (known here alone)" + ("; it contributes noise" if not held else "")
    yield f"encoder: {str(facts['encoder'])[:16]}, versions: {facts['versions']}"
    yield f"coordinator: {facts['coordinator']}"
    yield f"approval: {settings.approval}; bundle: {settings.bundle[:16]}, never run here"
    yield from LEAVES
    if settings.limits.max_delta * len(held) >= 1:
        raise DataError(
            "max_delta", expected="below one over the number of records", where=settings.folder / "client.yaml"
        )


def _connection(settings: Settings) -> str:
    """TLS to the front door with the coordinator's own authority.

    Raises:
        ConfigError: The certificate is expired, not yet valid, of another authority or of another host.
        DataError: Nobody answers.
    """
    name, _, port = settings.coordinator.rpartition(":")
    try:
        context = ssl.create_default_context(cafile=str(settings.node / "ca.crt"))
        with (
            socket.create_connection((name, int(port)), timeout=TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            return f"{settings.coordinator}, {secure.version()}"
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            "coordinator's certificate",
            expected="a valid one of its authority",
            got=error.verify_message,
            where=settings.coordinator,
            do="Compare the clocks of both machines and the invitation's fingerprint",
        ) from error
    except (OSError, ssl.SSLError) as error:
        raise CaucusError(
            "coordinator",
            expected="an answer",
            got=error.strerror or type(error).__name__,
            where=settings.coordinator,
            do="Is it served, and does the firewall let outbound TCP to this port through?",
        ) from error


def _versions() -> str:
    return f"caucus {version('caucus')}, protocol {VERSION}, flwr {version('flwr')}"


def _roster(chosen: argparse.Namespace) -> Iterator[str]:
    settings = Settings.load(chosen.folder)
    content = chosen.file.read_bytes()
    roster = Roster.from_json(content)
    own = settings.number(roster)
    write_atomic(settings.folder / "roster.json", content)
    for party, key in roster.keys.items():
        mark = "  (this hospital)" if party == own else ""
        yield f"party {party}: {hashlib.sha256(key).hexdigest()[:16]}{mark}"
    yield f"digest of the roster, to be compared with the other hospitals': {roster.digest.hex()[:32]}"
