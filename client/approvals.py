"""What a hospital's people see and decide: which runs it takes part in, and a log of all that was asked.

A run's plan is approved once, for this run and this plan's digest: by a person (`caucus-party approve`), or at once
where `approval: auto` leaves the decision to the limits. Until then the coordinator hears that it is awaited, no more.

    FOLDER/runs/HEX.json     one file a run and plan: what was planned, who decided, over which file of records
    FOLDER/audit.jsonl       one line a request: when, run, plan digest, decision, reason; no text, no count

A coordinator asks as often and as much as it likes, so both are bounded, and neither is ever thinned out: at the bound
the hospital refuses, and its log says so, until a person has moved old files away. The ledger, which is the record of
truth, is not touched by that. To move `audit.jsonl`, rename it; the service goes on with a new one by itself.

A run is bound to the bytes of the file of records that it was admitted with, by a keyed digest: after a change the
same run is refused, for its answers would be about different records.
"""

import errno
import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from client.session import RefusalError
from common import validate
from common.errors import ConfigError
from common.messages import Reason
from common.plan.plan import Plan
from common.system.files import SECRET, write_atomic

MODES = ("manual", "auto")
MOST_AWAITING = 20
"""Plans that wait for a person: a coordinator cannot fill the disk with them."""
MOST_CASES = 1000
"""Runs and plans, decided ones included: where the limits decide, each Open with a new name makes one."""
LARGEST_AUDIT = 64 * 2**20
"""Bytes of the audit log: some 250 000 honest requests, of which a whole run of one query takes five. A coordinator
that fills it with long names stops its own runs."""
LONGEST_DETAIL = 1000
"""Characters of a line's detail: it may quote what the coordinator sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run and plan before the hospital.

    Attributes:
        run: Identity of the run.
        plan_digest: Hexadecimal.
        plan: Canonical JSON.
        decision: "awaiting", "approved" or "refused".
        by: Who decided: "limits" or a user of this machine.
        data: Keyed digest of the file of records that the run was admitted with; empty before.
        first_seen: UTC.
    """

    run: str
    plan_digest: str
    plan: str
    decision: str = "awaiting"
    by: str = ""
    data: str = ""
    first_seen: str = ""


class Desk:
    """The decisions of one hospital.

    Args:
        folder: Private; made if needed.
        approval: "manual" or "auto".
        records: The hospital's file of records.
        key: Secret bytes that digest it.

    Raises:
        ConfigError: Unknown approval.
    """

    def __init__(self, folder: Path, *, approval: str, records: Path, key: bytes) -> None:
        validate.one_of(MODES, approval=approval)
        (folder / "runs").mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._auto = approval == "auto"
        self._records = records
        self._key = key
        self._data = self.digest()

    def digest(self) -> str:
        """Keyed digest of the file of records as it is now."""
        return hmac.digest(self._key, b"caucus file of records" + self._records.read_bytes(), "sha256").hex()

    def admit(self, run: str, plan: Plan) -> None:
        """Let a plan within the limits in, if it is approved.

        Raises:
            RefusalError: AWAITING until it is; OVER_LIMIT if it was refused; INTERNAL if the records have changed.
        """
        self.unchanged()
        digest = plan.digest().hex()
        case = _find(self._folder, run, digest)
        if case is None:
            if sum(1 for _ in (self._folder / "runs").glob("*.json")) >= MOST_CASES:
                do = f"below {MOST_CASES}: move old files out of {self._folder / 'runs'}"
                raise RefusalError(Reason.INTERNAL, "runs that are kept", expected=do, got=MOST_CASES)
            if not self._auto and sum(each.decision == "awaiting" for each in cases(self._folder)) >= MOST_AWAITING:
                raise RefusalError(Reason.AWAITING, "plans that await approval", expected=f"below {MOST_AWAITING}")
            case = Case(run=run, plan_digest=digest, plan=plan.to_json().decode(), first_seen=_now())
            case = replace(case, decision="approved", by="limits") if self._auto else case
            _keep(self._folder, case)
        if case.decision == "refused":
            raise RefusalError(Reason.OVER_LIMIT, "plan", expected="an approved one", got=f"refused by {case.by}")
        if case.decision == "awaiting":
            raise RefusalError(Reason.AWAITING, "plan", expected="approved: caucus-party approve", got="awaiting")
        if case.data not in {"", self._data}:
            raise RefusalError(Reason.INTERNAL, "file of records", expected="the one that this run began with")
        if not case.data:
            _keep(self._folder, replace(case, data=self._data))

    def unchanged(self) -> None:
        """Refuse to go on over a file that has changed since this service read it.

        Raises:
            RefusalError: INTERNAL; the reason stays here.
        """
        try:
            now = self.digest()
        except OSError:
            now = ""
        if now != self._data:
            raise RefusalError(
                Reason.INTERNAL,
                "file of records",
                expected="as it was when this service started; restart it for a new run",
            )

    def ready(self) -> None:
        """Refuse to begin with a request that the audit log would have no room for.

        Raises:
            RefusalError: INTERNAL; the reason stays here.
        """
        try:
            size = self.audit.stat().st_size
        except FileNotFoundError:
            return
        if size >= LARGEST_AUDIT:
            do = f"below {LARGEST_AUDIT} bytes: move {self.audit} away and keep it"
            raise RefusalError(Reason.INTERNAL, "audit log", expected=do, got=size)

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self._folder / "audit.jsonl"

    def note(
        self, *, run: str, plan_digest: bytes, request: str, index: int, reason: str = "", detail: str = ""
    ) -> None:
        """Write one line of the audit log; on disk when this returns.

        Raises:
            RefusalError: The log is full.
            OSError: It cannot be written, and no part of it was.
        """
        self.ready()
        line = {
            "when": _now(),
            "run": run,
            "plan": plan_digest.hex(),
            "request": request,
            "query": index,
            "decision": "refused" if reason else "answered",
            "reason": reason,
            "detail": detail[:LONGEST_DETAIL],
        }
        descriptor = os.open(self.audit, os.O_WRONLY | os.O_CREAT | os.O_APPEND, SECRET)
        try:
            data, before = json.dumps(line).encode() + b"\n", os.fstat(descriptor).st_size
            written = os.write(descriptor, data)
            if written < len(data):  # a torn line would spoil the next one too
                os.ftruncate(descriptor, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cases(folder: Path) -> Iterator[Case]:
    """All runs that came before this hospital, the oldest first."""
    held = [Case(**json.loads(path.read_bytes())) for path in (folder / "runs").glob("*.json")]
    yield from sorted(held, key=lambda case: (case.first_seen, case.run))


def decide(folder: Path, case: Case, *, approve: bool, by: str) -> Case:
    """Record a person's decision.

    Raises:
        ConfigError: It was decided already.
    """
    if case.decision != "awaiting":
        raise ConfigError("plan", expected="one that awaits a decision", got=f"{case.decision} by {case.by}")
    decided = replace(case, decision="approved" if approve else "refused", by=by)
    _keep(folder, decided)
    return decided


def _find(folder: Path, run: str, plan_digest: str) -> Case | None:
    try:
        return Case(**json.loads(_path(folder, run, plan_digest).read_bytes()))
    except FileNotFoundError:
        return None


def _keep(folder: Path, case: Case) -> None:
    write_atomic(_path(folder, case.run, case.plan_digest), json.dumps(asdict(case), indent=1).encode(), mode=SECRET)


def _path(folder: Path, run: str, plan_digest: str) -> Path:
    # A run's name comes from the coordinator: it never becomes part of a path.
    return folder / "runs" / f"{hashlib.sha256(f'{plan_digest}{run}'.encode()).hexdigest()[:32]}.json"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
