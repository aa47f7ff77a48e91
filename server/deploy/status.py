"""`caucus-coordinator status`: hospitals, nodes and runs, from Flower and the run folders."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.system.certificates import days_left, in_words
from common.system.commands import add_command
from common.system.files import text_of
from server.deploy.authority import ending_soon
from server.deploy.enrolment import enrolled
from server.deploy.flower import flwr
from server.deploy.settings import CoordinatorSettings
from server.failure import FAILURE


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `status`."""
    parser = add_command(
        commands,
        "status",
        _status,
        summary="hospitals, nodes and runs",
        description="Print the enrolled hospitals, the state of their nodes, and the status of each run.",
        example="caucus-coordinator status coordinator --json",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-coordinator init")


def _status(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    nodes = {str(node["node-id"]): node["status"] for node in flwr(settings, "supernode", "list")["nodes"]}
    parties = [
        {"number": number, "name": entry.party.name, "node": nodes.get(entry.node, "unknown")}
        for number, entry in enumerate(enrolled(settings))
    ]
    runs = [_run_status(folder) for folder in sorted((settings.folder / "runs").iterdir())]
    if chosen.json:
        days = {name: days_left(settings.folder / name) for name in ("server.crt", "ca.crt")}
        facts = {"address": settings.address, "certificate_days": days, "parties": parties, "runs": runs}
        yield json.dumps(facts, indent=2)
        return
    yield f"front door: {settings.address}; its certificate {in_words(days_left(settings.folder / 'server.crt'))}"
    yield from ending_soon(settings.folder)
    for party in parties:
        yield f"party {party['number']}: {party['name']}, {party['node']}"
    for run in runs:
        yield f"run {run['name']}: {run['status']}" + (f"; {run['error']}" if run["error"] else "")


def _run_status(folder: Path) -> dict[str, Any]:
    text = text_of(folder / "run.json")
    rounds = text_of(folder / "rounds.jsonl").count("\n")
    status = json.loads(text)["status"] if text else "not begun"
    return {"name": folder.name, "status": status, "rounds": rounds, "error": text_of(folder / FAILURE)}
