"""What runs at this hospital now, what the coordinator asked last, and what the logs contain; no text of a record.

The state is the same as `caucus-party status` prints, and the connection to the coordinator is checked as in
`caucus-party check`. The coordinator is contacted only at a person's request; the page itself sends nothing.
"""

from dataclasses import dataclass

from client.deploy.audit_reading import LogLine, last_of_audit
from client.deploy.preflight import OF_COORDINATOR, Finding, findings
from client.deploy.settings import HospitalSettings
from client.deploy.status import Status, status_of
from common.system.log_lines import last_lines

MOST_LINES = 30
"""Number of most recent lines shown from the audit log and from each other log."""
LOGS = ("service", "supernode", "relay", "metrics")
PARTS = ("service", "supernode", "relay")
"""Processes that `caucus-party start` runs at every hospital."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The hospital's current state.

    Attributes:
        status: The status, as printed by `caucus-party status`.
        lines: Last lines of the audit log, newest first.
        logs: Last lines of each log that exists.
    """

    status: Status
    lines: tuple[LogLine, ...]
    logs: dict[str, tuple[str, ...]]


def now(settings: HospitalSettings) -> Now:
    """Return the current state; `client.deploy.status.status_of` documents the errors."""
    status = status_of(settings)
    return Now(
        status=status,
        lines=last_of_audit(settings.private)[:MOST_LINES],
        logs={
            name: lines for name in LOGS if (lines := last_lines(settings.folder / "logs" / f"{name}.log", MOST_LINES))
        },
    )


def way_to_coordinator(settings: HospitalSettings) -> tuple[Finding, ...]:
    """Contact the coordinator's front door; return the findings on the connection, clocks, key and certificates."""
    return tuple(findings(settings, only=OF_COORDINATOR))
