"""What runs at this hospital now, what the coordinator asked last, and what the logs say; no text of a record.

The state is that of `caucus-party status`, and the checks of the way to the coordinator are those of `caucus-party
check`. The coordinator is asked only when a person wants it: the page itself sends nothing.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from client.deploy.audit_totals import AuditReader
from client.deploy.preflight import OF_COORDINATOR, Finding, findings
from client.deploy.settings import HospitalSettings
from client.deploy.status import Status, status_of
from common.system.log_lines import last_lines, printable_line

MOST_LINES = 30
"""Number of the last lines that are shown of the audit log and of each other log."""
LOGS = ("service", "supernode", "relay", "metrics")
PARTS = ("service", "supernode", "relay")
"""Processes that `caucus-party start` runs at every hospital."""
_TAIL = 2**16
"""Number of bytes at the end of the audit log that are read for its last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the audit log.

    Attributes:
        when: Time, ISO 8601 in UTC.
        run: Name of the run.
        request: Kind of the coordinator's message; empty for a decision of this hospital.
        reason: Name of the reason of a refusal; for a decision, the person's reason.
        detail: Detail of a refusal; for a decision, by whom and from what to what.
        refused: Whether a request was refused.
    """

    when: str
    run: str
    request: str
    reason: str
    detail: str
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The hospital at this moment.

    Attributes:
        status: As `caucus-party status` has it.
        lines: Last lines of the audit log, newest first.
        logs: Last lines of each log that exists.
    """

    status: Status
    lines: tuple[LogLine, ...]
    logs: dict[str, tuple[str, ...]]


def now(settings: HospitalSettings) -> Now:
    """Return the present state; errors are those of `client.deploy.status.status_of`."""
    audit = settings.private / "audit.jsonl"
    return Now(
        status=status_of(settings, AuditReader(audit)),
        lines=tuple(_last(audit))[: -MOST_LINES - 1 : -1],
        logs={
            name: lines for name in LOGS if (lines := last_lines(settings.folder / "logs" / f"{name}.log", MOST_LINES))
        },
    )


def way_to_coordinator(settings: HospitalSettings) -> tuple[Finding, ...]:
    """Ask the coordinator's front door, and return what was found about connection, clocks, key and certificates."""
    return tuple(findings(settings, only=OF_COORDINATOR))


def _last(path: Path) -> Iterator[LogLine]:
    """Yield the lines at the end of the audit log, without damaged ones and one that is being written."""
    if not path.exists():
        return
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(start)
        if start:
            file.readline()
        tail = file.read()
    for line in tail.splitlines():
        try:
            entry = json.loads(line)
            yield _line(entry)
        except (ValueError, KeyError, TypeError):
            continue  # being written, or damaged: the others are shown all the same


def _line(entry: dict[str, str]) -> LogLine:
    about = {"when": entry["when"], "run": printable_line(entry["run"])}
    if "request" in entry:
        refused = entry["decision"] == "refused"
        detail = printable_line(entry["detail"])
        return LogLine(**about, request=entry["request"], reason=entry["reason"], detail=detail, refused=refused)
    detail = f"{entry['by']}: {entry['from']} → {entry['to']}"
    return LogLine(**about, request="", reason=printable_line(entry["reason"]), detail=detail, refused=False)
