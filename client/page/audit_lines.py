"""The last lines of a hospital's audit log in readable form: what the coordinator asked, and what people decided."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.system.log_lines import printable_line

_TAIL = 2**16
"""Number of bytes at the end of the audit log in which its last lines are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the audit log.

    Attributes:
        when: Time, ISO 8601 in UTC.
        run: Name of the run; empty for a ledger that was accepted.
        request: Kind of the coordinator's message; empty for a decision of this hospital.
        reason: Name of the reason for a refusal; for a decision, the person's reason.
        detail: Detail of a refusal; for a decision, who made it, and the states before and after it; for an accepted
            ledger, who accepted it, its heads before and after, and what was charged.
        refused: Whether a request was refused.
    """

    when: str
    run: str
    request: str
    reason: str
    detail: str
    refused: bool


def last_of_audit(folder: Path) -> tuple[LogLine, ...]:
    """Return the last lines of the audit log in a private folder, newest first; empty if there is no log."""
    return tuple(_last(folder / "audit.jsonl"))[::-1]


def accepted(folder: Path) -> tuple[LogLine, ...]:
    """Return the lines of the audit log about accepted ledgers, oldest first; `caucus-party ledger accept` writes them.

    Raises:
        OSError: The log cannot be read.
    """
    path = folder / "audit.jsonl"
    if not path.exists():
        return ()
    with path.open("rb") as lines:
        return tuple(_read(line for line in lines if b'"charged": {' in line))


def _last(path: Path) -> Iterator[LogLine]:
    """Yield the lines at the end of the audit log; omit damaged lines and a line that is still being written."""
    if not path.exists():
        return
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(start)
        if start:
            file.readline()
        tail = file.read()
    yield from _read(tail.splitlines())


def _read(lines: Iterable[bytes]) -> Iterator[LogLine]:
    for line in lines:
        try:
            entry = json.loads(line)
            yield _line(entry)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # being written, or damaged: the others are shown all the same


def _line(entry: dict[str, Any]) -> LogLine:
    if "charged" in entry:
        return LogLine(when=entry["when"], run="", request="", reason="", detail=_of_accepted(entry), refused=False)
    about = {"when": entry["when"], "run": printable_line(entry["run"])}
    if "request" in entry:
        refused = entry["decision"] == "refused"
        detail = printable_line(entry["detail"])
        return LogLine(**about, request=entry["request"], reason=entry["reason"], detail=detail, refused=refused)
    detail = f"{entry['by']}: {entry['from']} → {entry['to']}"
    return LogLine(**about, request="", reason=printable_line(entry["reason"]), detail=detail, refused=False)


def _of_accepted(entry: dict[str, Any]) -> str:
    by_plan = ", ".join(f"{number} answers of run {printable_line(run)}" for run, number in entry["charged"].items())
    return (
        f"{entry['by']} accepted the ledger: head {entry['from'][:16]} → {entry['to'][:16]}; "
        f"charged by plan: {by_plan or 'nothing'}; by number: epsilon {entry['lost']}"
    )
