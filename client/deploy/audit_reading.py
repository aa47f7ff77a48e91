"""What the hospital's audit log says: totals of its requests, the questions that were answered, and its last lines.

The current `audit.jsonl` alone is read. Once it has been moved away, the totals start again at zero, and the ledger
alone knows earlier answers. A damaged line, or one that is being written, is left out.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from common.ledger.ledger import Ledger
from common.messages import Reason
from common.system.log_lines import printable_line

Questions = Mapping[tuple[str, str], Mapping[int, str]]
"""Time of the first answer, ISO 8601 in UTC, keyed by index; all keyed by run and hex digest of its plan."""
T = TypeVar("T")
_TAIL = 2**16
"""Number of bytes at the end of the audit log in which its last lines are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTotals:
    """Totals over the lines of an audit log.

    Attributes:
        answered: Number of requests that were answered.
        refused: Number of refused requests, keyed by reason.
        waiting: Number of requests for a plan that waited for a decision.
        last_contact: Time of the coordinator's last request, ISO 8601 in UTC; empty if there was no request.
        last_refusal: The last line of the log with a refusal, unchanged; None if there was no refusal.
        answered_since: Whether a request of the same run and plan was answered since `last_refusal`.
    """

    answered: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    last_contact: str = ""
    last_refusal: dict[str, Any] | None = None
    answered_since: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the audit log, as people read it.

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
    run: str = ""
    request: str = ""
    reason: str = ""
    detail: str = ""
    refused: bool = False


def audit_totals(audit_log: Path) -> AuditTotals:
    """Return the totals over all requests in the log.

    Raises:
        OSError: The log cannot be read.
    """
    return _requests(audit_log)[0]


def answered_questions(audit_log: Path) -> Questions:
    """Return the questions that the audit log says were answered; a ledger that was restored may lack them.

    Raises:
        OSError: The log cannot be read.
    """
    return _requests(audit_log)[1]


def uncharged_questions(answered: Questions, ledger: Ledger | None) -> Mapping[tuple[str, str], AbstractSet[int]]:
    """Return the indices of answers that this ledger has not charged: another ledger did, and was lost."""
    charged = defaultdict(set)
    for entry in ledger.entries() if ledger else ():
        charged[entry.run, entry.plan_digest.hex()].add(entry.index)
    lacking = {place: indices.keys() - charged[place] for place, indices in answered.items()}
    return {place: indices for place, indices in lacking.items() if indices}


def last_of_audit(folder: Path) -> tuple[LogLine, ...]:
    """Return the last lines of the audit log in a private folder, newest first; empty if there is no log."""
    path = folder / "audit.jsonl"
    if not path.exists():
        return ()
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(start)
        if start:
            file.readline()
        return tuple(_understood(file, _log_line))[::-1]


def accepted_ledgers(folder: Path) -> tuple[LogLine, ...]:
    """Return the lines of the audit log about accepted ledgers, oldest first; `caucus-party ledger accept` writes them.

    Raises:
        OSError: The log cannot be read.
    """
    path = folder / "audit.jsonl"
    if not path.exists():
        return ()
    with path.open("rb") as lines:
        return tuple(_understood((line for line in lines if b'"charged": {' in line), _log_line))


def _requests(audit_log: Path) -> tuple[AuditTotals, Questions]:
    return _reader(audit_log).read() if audit_log.exists() else (AuditTotals(), {})


class _RequestReader:
    """A reader of a growing audit log, each line once, since pages and metrics ask often, and a log has megabytes."""

    def __init__(self, audit_log: Path) -> None:
        self._audit_log, self._lock = audit_log, Lock()
        self._begin()

    def _begin(self) -> None:
        self._end, self._last_line = 0, b""
        self._totals = AuditTotals()
        self._questions: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)

    def read(self) -> tuple[AuditTotals, Questions]:
        """Return totals and answered questions of all complete lines that the log now has.

        Raises:
            OSError: The log cannot be read.
        """
        with self._lock, self._audit_log.open("rb") as log:
            log.seek(self._end - len(self._last_line))
            if log.read(len(self._last_line)) != self._last_line:  # moved away and started again, or edited
                self._begin()
                log.seek(0)
            for entry in _understood(self._new_lines(log), _request):
                self._count(entry)
            return self._totals, {about: dict(times) for about, times in self._questions.items()}

    def _new_lines(self, log: Iterable[bytes]) -> Iterator[bytes]:
        for line in log:
            if not line.endswith(b"\n"):
                return  # it is being written
            self._end, self._last_line = self._end + len(line), line
            yield line

    def _count(self, entry: dict[str, Any]) -> None:
        about, totals = (entry["run"], entry["plan"]), replace(self._totals, last_contact=entry["when"])
        last = totals.last_refusal
        if entry["decision"] == "answered":
            since = totals.answered_since or (last is not None and about == (last["run"], last["plan"]))
            totals = replace(totals, answered=totals.answered + 1, answered_since=since)
            if entry["request"] == "Ask":
                self._questions[about].setdefault(entry["query"], entry["when"])
        elif entry["reason"] == Reason.AWAITING.name:
            totals = replace(totals, waiting=totals.waiting + 1)
        else:
            refused = {**totals.refused, entry["reason"]: totals.refused.get(entry["reason"], 0) + 1}
            totals = replace(totals, refused=refused, last_refusal=entry, answered_since=False)
        self._totals = totals


_reader = lru_cache(maxsize=1)(_RequestReader)


def _understood(lines: Iterable[bytes], read: Callable[[dict[str, Any]], T | None]) -> Iterator[T]:
    """Yield what a function reads from each line; a damaged line, or one for which it returns None, is left out."""
    for line in lines:
        try:
            value = read(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if value is not None:
            yield value


def _request(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the line of a request with all that totals need; None for a line about a decision or a ledger."""
    if "request" not in entry:
        return None
    texts = {name: str(entry[name]) for name in ("when", "run", "plan", "request", "decision", "reason")}
    return {**entry, **texts, "query": int(entry["query"])}


def _log_line(entry: dict[str, Any]) -> LogLine:
    if "charged" in entry:
        return LogLine(when=entry["when"], detail=_accepted_detail(entry))
    about = {"when": entry["when"], "run": printable_line(entry["run"])}
    if "request" in entry:
        refused = entry["decision"] == "refused"
        detail = printable_line(entry["detail"])
        return LogLine(**about, request=entry["request"], reason=entry["reason"], detail=detail, refused=refused)
    detail = f"{entry['by']}: {entry['from']} → {entry['to']}"
    return LogLine(**about, reason=printable_line(entry["reason"]), detail=detail)


def _accepted_detail(entry: dict[str, Any]) -> str:
    by_plan = ", ".join(f"{number} answers of run {printable_line(run)}" for run, number in entry["charged"].items())
    return (
        f"{entry['by']} accepted the ledger: head {entry['from'][:16]} → {entry['to'][:16]}; "
        f"charged by plan: {by_plan or 'nothing'}; by number: epsilon {entry['lost']}"
    )
