"""The hospital's log of all requests, FOLDER/audit.jsonl: when, run, plan digest, decision, reason; no text, no count.

A coordinator asks as often and as much as it likes, so the log is bounded, and no line is ever removed: once it is full
the hospital refuses every request, and its service log says so, until a person has moved the file away. To move
`audit.jsonl`, rename it; the service begins a new one by itself. The ledger, which is the authoritative record, is not
affected.
"""

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from client.session import RefusalError
from common.messages import Reason
from common.system.files import SECRET

LARGEST_AUDIT = 64 * 2**20
"""Bytes of the audit log: some 250 000 honest requests, of which a whole run of one query takes five. A coordinator
that fills it with long names stops its own runs."""
LONGEST_DETAIL = 1000
"""Characters of a line's detail: it may quote what the coordinator sent."""


class AuditLog:
    """The audit log of one hospital.

    Args:
        folder: Private; it must exist when the first line is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "audit.jsonl"

    def ready(self) -> None:
        """Refuse a request that the log has no room for, before any work on it.

        Raises:
            RefusalError: The log is full; the reason is FULL.
        """
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        if size >= LARGEST_AUDIT:
            limit = f"below {LARGEST_AUDIT} bytes: move {self.path} away and keep it"
            raise RefusalError(Reason.FULL, "audit log", expected=limit, got=size)

    def note(
        self, *, run: str, plan_digest: bytes, request: str, index: int, reason: str = "", detail: str = ""
    ) -> None:
        """Append one line; it is on disk when this returns.

        Raises:
            RefusalError: The log is full.
            OSError: The log cannot be written; no part of the line was.
        """
        self.ready()
        line = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "run": run,
            "plan": plan_digest.hex(),
            "request": request,
            "query": index,
            "decision": "refused" if reason else "answered",
            "reason": reason,
            "detail": detail[:LONGEST_DETAIL],
        }
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, SECRET)
        try:
            data, size_before = json.dumps(line).encode() + b"\n", os.fstat(descriptor).st_size
            written = os.write(descriptor, data)
            if written < len(data):  # a torn line would spoil the next one too
                os.ftruncate(descriptor, size_before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
