"""Start of any deployment on this machine: the folders of a coordinator and of its hospitals, and waiting.

The folders are made by the commands that an operator types. Whoever calls these functions says how a command is run: as
a program (`tests/support/deployed.py`), or as a fork (`federation.py`).
"""

import csv
import json
import re
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from common.domain import Record
from common.errors import CaucusError

T = TypeVar("T")
Command = Callable[..., str]
"""Runs a command with the arguments given, to its end, and returns its output."""

PATIENCE = 600.0


def init_coordinator(coordinator: Command, folder: Path, *, address: str, listen: str) -> None:
    """Make the folder of a coordinator.

    Args:
        coordinator: Runs `caucus-coordinator`.
        folder: A new one.
        address: Host and port that hospitals connect to.
        listen: Host of the front door itself, which has the same port.
    """
    coordinator("init", folder, "--address", address, "--listen", listen, "--superlink-port", free_port())


def init_hospital(
    party: Command, folder: Path, records: Path, invitation: Path, *, relay_user: str | None = None
) -> None:
    """Make the folder of a hospital, which approves every plan within its limits by itself.

    Args:
        party: Runs `caucus-party`.
        folder: A new one, named h and its number.
        records: File of its records.
        invitation: File that the coordinator gave it.
        relay_user: Account of its relay.
    """
    account = ("--relay-user", relay_user) if relay_user else ()
    name = f"Hospital {folder.name.removeprefix('h')}"
    party("init", folder, "--name", name, "--records", records, "--invitation", invitation, *account)
    set_limits(folder, approval="auto")


def set_limits(hospital: Path, **values: str) -> None:
    """Change settings and limits in the YAML of a hospital."""
    path = hospital / "client.yaml"
    content = path.read_text(encoding="utf-8")
    for name, value in values.items():
        content, changed = re.subn(rf"^(\s*{name}:).*$", rf"\1 {value}", content, flags=re.MULTILINE)
        assert changed == 1, name
    path.write_text(content, encoding="utf-8")


def audit_log(hospital: Path) -> list[dict[str, Any]]:
    """Lines of a hospital's audit log, one for each request, in order."""
    return [json.loads(line) for line in text(hospital / "private" / "audit.jsonl").splitlines()]


def write_records(path: Path, notes: Iterable[Record]) -> Path:
    """Write the records of a hospital, for its own account alone; return the path."""
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("text", "label"), *((note.text, note.label) for note in notes)])
    path.chmod(0o600)
    return path


def free_port() -> int:
    """A port of loopback that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def text(path: Path) -> str:
    """Content of a file that may be half written; empty if there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def wait(condition: Callable[[], T], what: str, patience: float = PATIENCE, *, every: float = 0.1) -> T:
    """Wait until a condition holds; return its value.

    Raises:
        CaucusError: It does not in time.
    """
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise CaucusError("nodes", expected=what, got=f"not within {patience:g} s")
        time.sleep(every)
    return value
