"""Totals from the audit log: answered requests, refused requests by reason, and the time of the last request.

The figures cover the current `audit.jsonl`; after that file has been moved away, they start again at zero.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.messages import Reason


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
    refused: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    last_contact: str = ""
    last_refusal: dict[str, Any] | None = None
    answered_since: bool = False


class AuditReader:
    """A reader of a growing audit log that reads each line only once.

    Args:
        path: The log file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin(0)

    def _begin(self, inode: int) -> None:
        self._inode, self._read = inode, 0
        self._answered, self._waiting, self._refused = 0, 0, Counter[str]()
        self._last: dict[str, Any] = {}
        self._last_refusal: dict[str, Any] | None = None
        self._answered_since = False

    def totals(self) -> AuditTotals:
        """Return the totals over all complete lines that the log now has.

        Raises:
            OSError: The log cannot be read.
        """
        try:
            with self._path.open("rb") as log:
                status = os.fstat(log.fileno())
                if status.st_ino != self._inode or status.st_size < self._read:  # moved away, and started again
                    self._begin(status.st_ino)
                log.seek(self._read)
                for line in log:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read += len(line)
                    self._count(line)
        except FileNotFoundError:
            self._begin(0)
        return AuditTotals(
            answered=self._answered,
            refused=dict(self._refused),
            waiting=self._waiting,
            last_contact=self._last.get("when", ""),
            last_refusal=self._last_refusal,
            answered_since=self._answered_since,
        )

    def _count(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            if "request" not in entry:
                return  # about a decision
            refused, about = entry["decision"] == "refused", (entry["run"], entry["plan"])
        except (ValueError, KeyError, TypeError):
            return  # damaged: the other lines count all the same
        self._last = entry
        if not refused:
            self._answered += 1
            last = self._last_refusal
            self._answered_since |= last is not None and about == (last["run"], last["plan"])
        elif entry["reason"] == Reason.AWAITING.name:
            self._waiting += 1
        else:
            self._refused[entry["reason"]] += 1
            self._last_refusal, self._answered_since = entry, False
