"""`caucus-party status`: what runs, what was asked, and what budget was spent and is left.

Only the hospital may see it.

The limits are those of `client.yaml`. The remaining epsilon is that of a record that took part in every answer so far.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from client.approval.entries import awaiting_entries
from client.audit_log import LARGEST_AUDIT
from client.deploy import known_records
from client.deploy.audit_reading import (
    AuditTotals,
    Questions,
    answered_questions,
    audit_totals,
    uncharged_questions,
)
from client.deploy.settings import SIDES, HospitalSettings
from client.flower.noted_connection import NodeState, node_state
from client.guard import Limits
from client.noted_head import NotedHead
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.phrases import percent
from common.system import processes
from common.system.certificates import SOON, days_left, validity_in_words
from common.system.commands import Commands, add_command, add_folder, as_json
from common.system.log_lines import escaped_line, printable_line, wrap_lines

_INDENT = 2
"""Number of spaces at the start of a continued line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSpending:
    """What the hospital has spent according to its ledger.

    Attributes:
        charged: Number of answers that were charged.
        epsilon: Epsilon of all of them together, as the limit on all runs counts it; may be infinite.
        left: Remainder of `lifetime_epsilon`; None if there is no such limit, or if the service does not start with
            this ledger, so that nobody knows what was spent.
        problem: Why the party service does not start with this ledger; empty if it does.
        uncharged: Runs with answers in the audit log whose charges the ledger lacks.
    """

    events: int = 0
    charged: int = 0
    epsilon: float = 0.0
    left: float | None = None
    problem: str = ""
    uncharged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalStatus:
    """Status of the hospital.

    Attributes:
        processes: ID and number of restarts of each process, keyed by its name; the ID is None while it waits to start
            again.
        awaiting: Number of plans that await approval.
        unreadable: Number of these that cannot be read here; they can be refused.
        audit_used: Fraction of the audit log's maximum size that is used.
        noted_head: The ledger's head as noted outside the ledger; None if there is no note.
        certificate_days: Days until the certificate of the coordinator's authority expires; None if this account may
            not read it.
    """

    processes: dict[str, dict[str, Any]]
    node: NodeState
    awaiting: int
    unreadable: int
    audit_used: float
    requests: AuditTotals
    spending: LedgerSpending
    noted_head: str | None
    certificate_days: int | None


def register(commands: Commands) -> None:
    """Add the `status` command."""
    status = add_command(
        commands,
        "status",
        _status,
        summary="what runs, what awaits approval, what was spent and refused",
        description="Print what runs, whether the node is connected, the last message of a run, refusals, plans that "
        "await approval, limits, epsilon spent and left, the ledger's noted head, and when the certificate ends.",
        example="caucus-party status hospital --json",
    )
    status.add_argument("--json", action="store_true", help="print JSON")
    add_folder(status, "caucus-party")


def hospital_status(settings: HospitalSettings) -> HospitalStatus:
    """Return the current status of the hospital.

    Raises:
        LedgerError: The ledger was edited, is damaged or cannot be read.
        ConfigError: A setting is wrong.
        OSError: A file cannot be read.
    """
    children = processes.child_states(settings.folder, SIDES["both"])
    waiting, log = awaiting_entries(settings.private), settings.audit_log
    return HospitalStatus(
        processes=children,
        node=node_state(settings.folder, children),
        awaiting=len(waiting),
        unreadable=sum(entry.read_plan() is None for entry in waiting),
        audit_used=(log.stat().st_size if log.exists() else 0) / LARGEST_AUDIT,
        requests=audit_totals(log),
        spending=read_spending(settings),
        noted_head=settings.noted_head.read() if settings.private.is_dir() else None,
        certificate_days=_certificate_days(settings.node / "ca.crt"),
    )


def _status(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    status = hospital_status(settings)
    if chosen.json:
        yield as_json(_for_json(status, settings))
        return
    for name, child in status.processes.items():
        state = f"process {child['process']}" if child["process"] else "waits to start again"
        yield f"{name}: {state}, {child['restarts']} restarts"
    if not status.processes:
        yield "nothing runs: caucus-party start"
    yield f"node: {status.node}"
    yield from _requests(status.requests)
    yield f"plans that await approval: {status.awaiting}"
    if status.unreadable:
        yield f"plans that cannot be read here: {status.unreadable} of these; you can refuse them: caucus-party approve"
    yield f"audit log: {percent(status.audit_used, 0)} of its largest size is used"
    if status.certificate_days is not None:
        advice = "; WARNING: ask the coordinator for a new invitation" if status.certificate_days < SOON else ""
        yield f"certificate of the coordinator's authority: {validity_in_words(status.certificate_days)}{advice}"
    yield from _budget(status, settings)


def _requests(requests: AuditTotals) -> Iterator[str]:
    refused = ", ".join(f"{number} {reason}" for reason, number in sorted(requests.refused.items()))
    yield f"last message of a run: {requests.last_contact or 'none yet'}"
    answered = f"{requests.answered} answered; {requests.waiting} found a plan that waited"
    yield f"requests: {answered}; refused: {refused or 'none'}"
    if last := requests.last_refusal:
        since = "; since answered" if requests.answered_since else ""
        line = f"last refusal: {last['when']}, run {last['run']}, {last['request']}, {last['reason']}: {last['detail']}"
        yield printable_line(f"{line}{since}")


def _budget(status: HospitalStatus, settings: HospitalSettings) -> Iterator[str]:
    spending, limits = status.spending, settings.party.limits
    spent = "infinite" if math.isinf(spending.epsilon) else _rounded(spending.epsilon)
    yield f"answers charged: {spending.charged}; epsilon of all of them at delta {limits.lifetime_delta:g}: {spent}"
    if spending.uncharged:
        runs = ", ".join(map(escaped_line, spending.uncharged))
        yield f"answered, by the audit log, but not charged in this ledger: {runs}"
    if limits.lifetime_epsilon is None:
        yield "epsilon left: no limit over all runs"
    elif spending.left is None:
        yield f"epsilon left: unknown, as the party service does not start with this ledger: {spending.problem}"
    else:
        yield f"epsilon left: {_rounded(spending.left, down=True)} of {limits.lifetime_epsilon:g}"
    values = ", ".join(f"{name} {value}" for name, value in asdict(limits).items() if name != "queries")
    yield from wrap_lines(f"limits: {values}", _INDENT)
    yield from wrap_lines(f"queries that are answered: {', '.join(limits.queries)}", _INDENT)
    yield f"ledger: {spending.events} events; noted head {status.noted_head or 'none'} in {settings.noted_head.path}"
    if spending.problem:
        yield f"the party service does not start: {spending.problem}"


def _for_json(status: HospitalStatus, settings: HospitalSettings) -> dict[str, Any]:
    """Return the status for `--json`."""
    spending = status.spending
    return {
        "name": settings.name,
        "processes": status.processes,
        "node": str(status.node),
        "connected": status.node.connected,
        "audit": status.audit_used,
        "awaiting": status.awaiting,
        "unreadable": status.unreadable,
        "requests": asdict(status.requests),
        "limits": asdict(settings.party.limits),
        "charged": spending.charged,
        "answered_but_not_charged": spending.uncharged,
        "delta": settings.party.limits.lifetime_delta,
        "epsilon": _rounded(spending.epsilon),
        "epsilon_left": None if spending.left is None else _rounded(spending.left, down=True),
        "ledger": {"events": spending.events, "noted_head": status.noted_head, "problem": spending.problem},
        "certificate_days": status.certificate_days,
    }


def _rounded(value: float, *, down: bool = False) -> float:
    """Round up, or down, to four decimals; an infinite value stays as it is."""
    if math.isinf(value):
        return value
    return (math.floor if down else math.ceil)(value * 1e4) / 1e4


def read_spending(settings: HospitalSettings) -> LedgerSpending:
    """Return what the hospital has spent; `hospital_status` documents the errors."""
    path, noted_head = settings.ledger, settings.noted_head
    limits = settings.party.limits
    if not settings.private.is_dir():
        return LedgerSpending(left=limits.left(0.0))  # a relay's container holds the other half of the folder
    versions = tuple(_version(file) for file in (path, settings.audit_log))
    spending = _cached_spending(path, settings.audit_log, versions, noted_head.path, noted_head.read(), limits)
    if not spending.problem and (advice := known_records.advice_on_former(settings.folder)):
        return replace(spending, problem="; ".join(advice), left=None)
    return spending


def spending_of(ledger: Ledger | None, problem: str, answered: Questions, limits: Limits) -> LedgerSpending:
    """Return what was spent according to a ledger, as the limits count it; nothing if there is none.

    `problem` says why the party service does not start with it, and `answered` which questions were answered.
    """
    entries = ledger.entries() if ledger else ()
    epsilon = limits.spent(entry.cost for entry in entries) if ledger else 0.0
    return LedgerSpending(
        events=ledger.head().events if ledger else 0,
        charged=len(entries),
        epsilon=epsilon,
        left=None if problem else limits.left(epsilon),
        problem=problem,
        uncharged=tuple(sorted({run for run, _ in uncharged_questions(answered, ledger)})),
    )


def _version(path: Path) -> tuple[int, int] | None:
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None


@lru_cache(maxsize=1)
def _cached_spending(
    path: Path,
    audit_log: Path,
    _versions: tuple[tuple[int, int] | None, ...],
    note: Path,
    _noted: str | None,
    limits: Limits,
) -> LedgerSpending:
    """Return the spending, cached until its arguments change, since the metrics need it often."""
    return spending_of(*NotedHead(note).inspected(path), answered_questions(audit_log), limits)


def _certificate_days(path: Path) -> int | None:
    try:
        return days_left(path)
    except ConfigError:
        return None
