"""The hospital's append-only log of requests and decisions, FOLDER/audit.jsonl, without texts or counts of records.

    request    when, run, plan, request, query, decision ("answered" or "refused"), reason, detail
    decision   when, run, plan, by, from, to, reason: a person, or the limits, changed whether the run is approved
    accepted   when, by, from, to, charged, lost: a person accepted the ledger (`caucus-party ledger accept`)

A coordinator can send any number of requests, so the log is bounded. No line is ever removed: once the log is full, the
hospital refuses every request, and its service log says so, until a person has moved the file away. To do so, rename
`audit.jsonl`; the service then begins a new file by itself. The ledger, which is the authoritative record, is not
affected.
"""

import errno
import fcntl
import json
import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from client.session import RefusalError
from common.messages import Reason
from common.system.files import SECRET, give_to_owner_of_folder
from common.system.log_lines import now, printable_line

LIMITS = "limits"
"""Who decided, in a line of the log and in a stored decision, if the limits did and not a person."""
LARGEST_AUDIT = 64 * 2**20
"""Maximum size of the audit log in bytes. It has room for some 250,000 honest requests; a run with one query makes five
requests. A coordinator that fills the log with long names stops its own runs."""
LONGEST_DETAIL = 1000
"""Maximum number of characters of a line's `detail` field, which may quote what the coordinator sent."""


class AuditLog:
    """The audit log of one hospital.

    Args:
        folder: Private folder of the log; it must exist by the time the first line is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "audit.jsonl"

    def ready(self) -> None:
        """Raise a RefusalError with the reason FULL if the log is full; called before any work on a request."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        if size >= LARGEST_AUDIT:
            limit, do = f"below {LARGEST_AUDIT} bytes", f"Move {self.path} away and keep it"
            raise RefusalError(Reason.FULL, "audit log", expected=limit, got=size, do=do)

    def note(
        self, *, run: str, plan_digest: bytes, request: str, index: int, reason: str = "", detail: str = ""
    ) -> None:
        """Append the line of a request to the log and flush it to disk.

        Raises:
            RefusalError: The log is full.
            OSError: The log cannot be written; no part of the line was written.
        """
        self.ready()
        decision = "refused" if reason else "answered"
        line = {"request": request, "query": index, "decision": decision, "reason": reason}
        about = {"when": now(), "run": run, "plan": plan_digest.hex()}
        self._append({**about, **line, "detail": detail[:LONGEST_DETAIL]})

    def note_decision(
        self, *, run: str, plan_digest: str, by: str, before: str, after: str, reason: str = "", when: str = ""
    ) -> None:
        """Append the line of a decision to the log and flush it to disk; errors are those of `note`.

        Args:
            run: ID of the run.
            plan_digest: Hex digest of the plan.
            by: The account that decided, or "limits".
            before: The decision so far: "awaiting", "approved" or "refused".
            after: The decision now.
            reason: The person's reason; it never leaves the hospital.
            when: Time of the decision, ISO 8601 in UTC.
        """
        self.ready()
        about = {"when": when or now(), "run": run, "plan": plan_digest}
        self._append({**about, "by": by, "from": before, "to": after, "reason": reason})

    def note_accepted(self, before: str, after: str, *, by: str, charged: Mapping[str, int], lost: float) -> None:
        """Append the line of an accepted ledger and flush it to disk, even to a full log, which must stay in its place.

        Args:
            before: Head of the ledger before, hex.
            after: Its head with the charges and the ends of runs, hex.
            by: The account that accepted it.
            charged: Number of answers that were charged by their plan, keyed by run.
            lost: Epsilon that was charged by a person's number; may be infinite.

        Raises:
            OSError: The log cannot be written; no part of the line was written.
        """
        line = {"when": now(), "by": by, "from": before, "to": after, "charged": dict(charged), "lost": f"{lost:g}"}
        self._append(line)

    def _append(self, line: Mapping[str, object]) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, SECRET)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # the service and a person's command both write; closing releases it
            give_to_owner_of_folder(descriptor, self.path.parent)
            size_before = os.fstat(descriptor).st_size
            torn = size_before > 0 and os.pread(descriptor, 1, size_before - 1) != b"\n"  # as by a power cut
            data = b"\n" * torn + json.dumps(line).encode() + b"\n"
            written = os.write(descriptor, data)
            if written < len(data):  # a torn line would spoil the next one too
                os.ftruncate(descriptor, size_before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def account() -> str:
    """Return the account that runs this process, with its full name if the system has one.

    Environment variables are ignored. If several people share an account, such as root, the account does not identify
    any of them, but the reason stored with a decision may.
    """
    number = os.geteuid()
    try:
        entry = pwd.getpwuid(number)
    except KeyError:  # as in a container that runs under a number of its own
        return f"user {number}"
    full_name = printable_line(entry.pw_gecos.partition(",")[0].strip())
    known = entry.pw_name if full_name in {"", entry.pw_name} else f"{entry.pw_name} ({full_name})"
    return f"user {known}" if known == LIMITS else known  # a person's decision is never taken for one of the limits
