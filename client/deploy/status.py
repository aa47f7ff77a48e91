"""`caucus-party status`: what runs, what awaits approval, what was spent."""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from client.approvals import awaiting
from client.audit_log import LARGEST_AUDIT
from client.deploy.settings import HospitalSettings
from client.deploy.start import SIDES
from common.ledger.ledger import Ledger
from common.privacy.accountant import epsilon
from common.system import processes
from common.system.commands import add_command

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `status`."""
    status = add_command(
        commands,
        "status",
        _status,
        summary="what runs, what awaits approval, what was spent",
        description="Print what runs, how often it was restarted, plans that await approval, and epsilon spent.",
        example="caucus-party status hospital --json",
    )
    status.add_argument("--json", action="store_true", help="print JSON")
    status.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")


def _status(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    facts = _facts(settings)
    if chosen.json:
        yield json.dumps(facts, indent=2)
        return
    for name, child in facts["processes"].items():  # type: ignore[attr-defined]
        state = f"process {child['process']}" if child["process"] else "waits to start again"
        yield f"{name}: {state}, {child['restarts']} restarts"
    if not facts["processes"]:
        yield "nothing runs: caucus-party start"
    yield f"node: {facts['node']}"
    yield f"plans that await approval: {facts['awaiting']}"
    yield f"audit log: {facts['audit']:.0%} of its largest size is used"
    yield f"answers charged: {facts['charged']}; epsilon of all of them at delta {facts['delta']:g}: {facts['epsilon']}"


def _facts(settings: HospitalSettings) -> dict[str, object]:
    statuses = [processes.status(settings.folder, role) or {"children": {}} for role in SIDES]
    charged = []
    if (settings.private / "ledger.db").exists():
        charged = list(Ledger(settings.private / "ledger.db", read_only=True).entries())
    delta = settings.party.limits.lifetime_delta
    spent = epsilon((entry.cost for entry in charged), delta)
    return {
        "name": settings.name,
        "processes": {name: child for status in statuses for name, child in status["children"].items()},
        "node": _node_says(settings),
        "audit": _size(settings.private / "audit.jsonl") / LARGEST_AUDIT,
        "awaiting": len(awaiting(settings.private)),
        "charged": len(charged),
        "delta": delta,
        "epsilon": None if spent == float("inf") else round(spent, 4),
    }


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _node_says(settings: HospitalSettings) -> str:
    """The last telling line of SuperNode's log; that it is refused for its clock it does not say."""
    logs = [settings.folder / "logs" / name for name in ("supernode.log.1", "supernode.log")]
    logs_text = [path.read_text(errors="replace") for path in logs if path.exists()]
    if not logs_text:
        return "never started"
    lines = "".join(logs_text).splitlines()
    telling = ("SuperNode ID", "Failed", "ERROR", "[code:", "[SSL:", "Connection ", "refused", "terminated")
    telling_lines = [_COLOUR.sub("", line).strip() for line in lines if any(word in line for word in telling)]
    last = telling_lines[-1] if telling_lines else "starting"
    return last if "SuperNode ID" in last else f"{last.rstrip('.')}; if it stays so, caucus-party check says why"
