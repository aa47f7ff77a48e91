"""The hospital's decisions: which runs it takes part in.

A run's plan is approved once, for this run and this plan's digest: by a person (`caucus-party approve`), or at once
where `approval: auto` leaves the decision to the limits. Until then the coordinator learns only that the decision is
awaited.

    FOLDER/runs/HEX.json     one file for each run and plan: the plan, who decided, over which file of records

A coordinator asks as often as it likes, so the number of files is bounded, and none is ever removed here: at the bound
the hospital refuses, and its log says so, until a person has moved old files away.

A run is bound to the bytes of the file of records that it was admitted with, by a keyed digest: after a change the
same run is refused, for its answers would be about different records.
"""

import hashlib
import hmac
import json
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
MOST_APPROVALS = 1000
"""Runs and plans, decided ones included: where the limits decide, each Open with a new name makes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanApproval:
    """One run and plan, and the hospital's decision about it.

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


class Approvals:
    """The decisions of one hospital.

    Args:
        folder: Private; created if needed.
        approval: "manual" or "auto".
        records: The hospital's file of records.
        key: Secret key of the digest of that file.

    Raises:
        ConfigError: Unknown approval.
    """

    def __init__(self, folder: Path, *, approval: str, records: Path, key: bytes) -> None:
        validate.one_of("approval", approval, among=MODES)
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
        """Admit a plan within the limits, if it is approved.

        Raises:
            RefusalError: AWAITING until it is; OVER_LIMIT if it was refused; INTERNAL if the records have changed.
        """
        self.unchanged()
        approval = _find(self._folder, run, plan.digest().hex()) or self._first_seen(run, plan)
        if approval.decision == "refused":
            raise RefusalError(Reason.OVER_LIMIT, "plan", expected="an approved one", got=f"refused by {approval.by}")
        if approval.decision == "awaiting":
            raise RefusalError(Reason.AWAITING, "plan", expected="approved: caucus-party approve", got="awaiting")
        if approval.data not in {"", self._data}:
            raise RefusalError(Reason.INTERNAL, "file of records", expected="the one that this run began with")
        if not approval.data:
            _store(self._folder, replace(approval, data=self._data))

    def unchanged(self) -> None:
        """Refuse to go on over a file that has changed since this service read it.

        Raises:
            RefusalError: INTERNAL; the reason stays here.
        """
        try:
            current = self.digest()
        except OSError:
            current = ""
        if current != self._data:
            raise RefusalError(
                Reason.INTERNAL,
                "file of records",
                expected="as it was when this service started; restart it for a new run",
            )

    def _first_seen(self, run: str, plan: Plan) -> PlanApproval:
        """The stored entry of a run and plan that are new here.

        Raises:
            RefusalError: There is no room for another.
        """
        if sum(1 for _ in (self._folder / "runs").glob("*.json")) >= MOST_APPROVALS:
            limit = f"below {MOST_APPROVALS}: move old files out of {self._folder / 'runs'}"
            raise RefusalError(Reason.INTERNAL, "runs that are kept", expected=limit, got=MOST_APPROVALS)
        if not self._auto and len(awaiting(self._folder)) >= MOST_AWAITING:
            raise RefusalError(Reason.AWAITING, "plans that await approval", expected=f"below {MOST_AWAITING}")
        approval = PlanApproval(
            run=run,
            plan_digest=plan.digest().hex(),
            plan=plan.to_json().decode(),
            first_seen=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if self._auto:
            approval = replace(approval, decision="approved", by="limits")
        _store(self._folder, approval)
        return approval


def approvals(folder: Path) -> list[PlanApproval]:
    """All runs and plans that this hospital was asked about, the oldest first."""
    entries = [PlanApproval(**json.loads(path.read_bytes())) for path in (folder / "runs").glob("*.json")]
    return sorted(entries, key=lambda approval: (approval.first_seen, approval.run))


def awaiting(folder: Path) -> list[PlanApproval]:
    """Approvals that wait for a person's decision."""
    return [approval for approval in approvals(folder) if approval.decision == "awaiting"]


def decide(folder: Path, approval: PlanApproval, *, approve: bool, by: str) -> PlanApproval:
    """Store a person's decision.

    Raises:
        ConfigError: It was decided already.
    """
    if approval.decision != "awaiting":
        raise ConfigError("plan", expected="one that awaits a decision", got=f"{approval.decision} by {approval.by}")
    decision = replace(approval, decision="approved" if approve else "refused", by=by)
    _store(folder, decision)
    return decision


def _find(folder: Path, run: str, plan_digest: str) -> PlanApproval | None:
    try:
        return PlanApproval(**json.loads(_path(folder, run, plan_digest).read_bytes()))
    except FileNotFoundError:
        return None


def _store(folder: Path, approval: PlanApproval) -> None:
    content = json.dumps(asdict(approval), indent=1).encode()
    write_atomic(_path(folder, approval.run, approval.plan_digest), content, mode=SECRET)


def _path(folder: Path, run: str, plan_digest: str) -> Path:
    # A run's name comes from the coordinator: it never becomes part of a path.
    return folder / "runs" / f"{hashlib.sha256(f'{plan_digest}{run}'.encode()).hexdigest()[:32]}.json"
