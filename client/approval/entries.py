"""The hospital's decisions on which runs it takes part in.

A decision applies to one run and the digest of its plan. A person makes it (`caucus-party approve`) and can change it:
a refused plan can be approved later, and an approved one refused. If no person has decided, `approval: auto` leaves the
decision to the limits, and `approval: manual` waits for a person. The decision is looked up at each opening and each
question, so that a change takes effect at the next one. The coordinator learns the decision, or that it is pending, but
never who made it or why. Before a decision it learns nothing else: neither whether the limits would refuse the plan nor
whether a file of this hospital has changed. Otherwise plans that are never approved would tell each limit, what is left
of the budget, and when a record came.

    FOLDER/runs/HEX.json     one file for each run and plan: the plan, who decided, over which file of records

A coordinator can ask any number of times, so the number of files is bounded. At the bound the hospital refuses further
plans, and logs this, until a person has moved old files away. This module removes an entry only to make room for a new
one, and only if nobody has decided about its plan and the coordinator has ended its run; the entry whose run ended
first is removed. The service and a person's command each lock the folder while they read and write an entry, so that
neither overwrites what the other wrote.

A plan beyond the limits waits like any other, and people see why it cannot be approved; where the limits decide, it is
stored as refused by them. A coordinator can announce that a run has ended, but need not, and it may resume a run that
failed or was cancelled. So if the coordinator stops asking for a plan, the hospital cannot know whether the run is over
(`may_be_over`). A run that this hospital has ended for good (`caucus-party ledger accept`) stays over: the
ledger refuses it, and nobody decides about it any more.

A file contains the last decision. Every decision, by a person or by the limits, is first written to the audit log. A
damaged file stops the reading of all: it may hold a refusal.

A keyed digest binds a run to the bytes of the file of records when it began. If the file changes, the run is
refused, because its answers would be about different records.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TypeVar

from client.audit_log import LIMITS, AuditLog
from client.session import RefusalError
from common.errors import CaucusError, ConfigError, DataError, PlanError
from common.messages import Reason
from common.plan.plan import Plan
from common.system.files import SECRET, write_atomic
from common.system.locks import alone
from common.system.log_lines import escaped_line, now, utc
from common.validate import check_type, known_keys, one_of, printable

MODES = ("manual", "auto")
DECISIONS = ("awaiting", "approved", "refused")
MOST_AWAITING = 20
"""Maximum number of plans that wait for a person, including those of ended runs, so that a coordinator cannot fill the
disk."""
MOST_BEYOND = 20
"""Maximum number of stored plans that the limits refused; further plans appear only in the audit log."""
MOST_APPROVALS = 1000
"""Maximum number of stored decisions; if the limits decide, each new run name adds a decision."""
_RESTORE = "Restore it from a backup, or move it away: its plan or its release then counts as one that never came"
QUIET = timedelta(days=1)
"""Time after which a waiting plan that the coordinator has not requested again is shown separately."""

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanApproval:
    """The hospital's decision about one run and its plan.

    Attributes:
        run: ID of the run.
        plan_digest: Hex digest of the plan.
        plan: The plan in canonical JSON.
        decision: One of `DECISIONS`.
        by: Who decided: `LIMITS` or a user of this machine; empty before a decision.
        data: Keyed digest of the file of records at the run's admission; empty before that.
        first_seen: Time of the first request, UTC.
        decided: Time of the decision, UTC; empty before the decision, and for a decision that an earlier version
            stored.
        reason: The person's reason, seen only by this hospital; may be empty.
        asked: Time of the last request for a plan that was not approved, UTC; empty in an earlier version's entry.
        ended: Time at which the coordinator announced the end of the run, UTC; empty if it did not.
        closed: Time at which this hospital ended the run for good, UTC (`caucus-party ledger accept`); empty if it did
            not.
    """

    run: str
    plan_digest: str
    plan: str
    decision: str = "awaiting"
    by: str = ""
    data: str = ""
    first_seen: str = ""
    decided: str = ""
    reason: str = ""
    asked: str = ""
    ended: str = ""
    closed: str = ""

    def __post_init__(self) -> None:
        one_of("decision", self.decision, among=DECISIONS)

    @property
    def over(self) -> str:
        """Time at which the run ended, for good or by the coordinator's announcement; empty if it did not."""
        return self.closed or self.ended

    @property
    def finished(self) -> bool:
        """Whether the run needs no decision any more: it ended for good, or ended after it was approved."""
        return bool(self.closed or (self.decision == "approved" and self.ended))

    @property
    def state(self) -> str:
        """The decision, one of `DECISIONS`; or "ended", once this hospital has ended the run for good."""
        return "ended" if self.closed else self.decision

    @property
    def line(self) -> str:
        """The decision in one line: by whom, when and why; or that there is none."""
        by = f" by {self.by}" if self.by else ""
        when = f", {utc(self.decided)} UTC" if self.decided else ""
        why = f": {escaped_line(self.reason)}" if self.reason else ""
        ended = f"ended by this hospital for good, {utc(self.closed)} UTC; before: " if self.closed else ""
        return f"run {escaped_line(self.run)}: {ended}{self.decision}{by}{when}{why}"

    @property
    def quiet_since(self) -> str:
        """Time of the last request, if that was at least `QUIET` ago; empty if it is recent, or the plan is approved.

        Only requests of the run itself count, since a coordinator may have several runs at once, each waiting for
        approval.
        """
        asked = self.asked or self.first_seen
        recent = self.decision == "approved" or datetime.now(UTC) - datetime.fromisoformat(asked) < QUIET
        return "" if recent else asked

    @property
    def may_be_over(self) -> bool:
        """Whether the run ended, or was not asked for lately: a coordinator can announce an end, but need not."""
        return bool(self.over or self.quiet_since)

    def check_plan(self) -> Plan:
        """Return the plan.

        Raises:
            PlanError: The plan is of another version, as after an upgrade, or does not match its digest.
            ConfigError: One of its values is out of range.
        """
        plan = Plan.from_json(self.plan)
        if plan.digest().hex() != self.plan_digest:
            raise PlanError("the plan does not fit its digest", do="Refuse it, or restore this folder")
        return plan

    def read_plan(self) -> Plan | None:
        """Return the plan; None if it cannot be read (`check_plan`)."""
        try:
            return self.check_plan()
        except (PlanError, ConfigError):
            return None


class Approvals:
    """The decisions of one hospital about runs.

    Args:
        folder: Private folder of the decisions; created if needed.
        records: The hospital's file of records.
        key: Secret key, used only for the digest of that file.
        labelled: Whether the file's labels are used. The digest includes this setting, so that a run that began with
            the other value is refused.
        headings: Headings of the records' sections, which the digest includes for the same reason.

    Attributes:
        data: Keyed digest of the file of records when this object was made.
    """

    def __init__(
        self, folder: Path, *, records: Path, key: bytes, labelled: bool = True, headings: Sequence[str] = ()
    ) -> None:
        (folder / "runs").mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._records = records
        self._key = key
        self._choices = b"" if labelled else b"\0without labels"
        self._choices += b"".join(b"\0heading " + heading.encode() for heading in headings)
        self.data = self.digest()

    def digest(self) -> str:
        """Return the keyed digest of the file of records in its current state."""
        return hmac.digest(self._key, self._records.read_bytes() + self._choices, "sha256").hex()

    def admit(self, run: str, plan: Plan, *, automatic: bool, check: Callable[[], None] = lambda: None) -> None:
        """Admit a plan that is approved, if nothing stands in its way. The decision comes first (see the module).

        Args:
            run: ID of the run.
            plan: The run's plan.
            automatic: Whether the limits decide if no person has decided.
            check: Function that raises an error if this hospital would not answer the plan even if it is approved. It
                is called only if the plan is approved, or if the limits decide, so that its time tells nothing either.

        Raises:
            RefusalError: DECLINED if a person refused the plan; AWAITING until it is approved; RECORDS if the records
                have changed; FULL if there is no room for another plan.
            CaucusError: The error of `check`.
        """
        with alone(self._folder / "runs"):
            obstacle: CaucusError | None = None
            try:
                if automatic:
                    check()
            except CaucusError as error:
                obstacle = error
            approval = self._store_request(run, plan, automatic=automatic, obstacle=obstacle)
            if approval.decision == "refused" and approval.by != LIMITS:
                do = "To reconsider, run caucus-party approve --refused"
                raise RefusalError(Reason.DECLINED, f"the plan was refused by {approval.by}", do=do)
            if approval.decision == "awaiting":
                raise RefusalError(Reason.AWAITING, "the plan awaits approval", do="Run caucus-party approve")
            if obstacle:
                raise obstacle
            if not automatic:
                check()
            self._check_unchanged()
            if not approval.data:
                _store(self._folder, replace(approval, data=self.data))
            elif approval.data != self.data:
                do = "Restore the one that this run began with, or take part in a new run"
                raise RefusalError(Reason.RECORDS, "the file of records is another one", do=do)

    def note_end(self, run: str) -> None:
        """Record that the coordinator has ended a run, which it may still open again."""
        with alone(self._folder / "runs"):
            for entry in approvals(self._folder):
                if entry.run == run:
                    _store(self._folder, replace(entry, ended=now()))

    def _store_request(self, run: str, plan: Plan, *, automatic: bool, obstacle: CaucusError | None) -> PlanApproval:
        """Store that the coordinator has asked for a run and plan, and what the limits decide; return the entry."""
        known = find_entry(self._folder, run, plan.digest().hex())
        approval = known or self._make_room(run, plan, automatic=automatic, obstacle=obstacle)
        before = known.decision if known else "awaiting"
        if approval.by in {"", LIMITS}:  # no person's decision: that of the files as they are now
            if not automatic:
                approval = replace(approval, decision="awaiting", by="")
            elif not obstacle:
                approval = replace(approval, decision="approved", by=LIMITS)
            elif approval.decision == "awaiting":  # a run that the limits let in before stays approved
                approval = replace(approval, decision="refused", by=LIMITS)
        # Each question of an approved plan is a request, whose time is not stored.
        approval = replace(approval, asked=approval.asked if approval.decision == "approved" else now(), ended="")
        if approval.decision != before:  # the limits decided, or no longer do
            return _store_decision(self._folder, approval, before=before, by=LIMITS)
        if approval != known:
            _store(self._folder, approval)
        return approval

    def _check_unchanged(self) -> None:
        """Raise a RefusalError if the file of records has changed since this service read it; the reason is RECORDS."""
        try:
            current = self.digest()
        except OSError:
            current = ""
        if current != self.data:
            do = "Restore it, or restart the service for a new run"
            raise RefusalError(Reason.RECORDS, "the file of records has changed since this service started", do=do)

    def _make_room(self, run: str, plan: Plan, *, automatic: bool, obstacle: CaucusError | None) -> PlanApproval:
        """Return a new entry for a run and plan that the hospital has not been asked about before.

        Raises:
            RefusalError: There is no room for another plan; the reason is FULL.
            CaucusError: The obstacle, if there is no room for another plan that the limits refuse.
        """
        if sum(1 for _ in (self._folder / "runs").glob("*.json")) >= MOST_APPROVALS:
            do = f"Move old files out of {self._folder / 'runs'}"
            raise RefusalError(Reason.FULL, f"{MOST_APPROVALS} runs are kept, and no more can be", do=do)
        entries = approvals(self._folder)
        beyond = [entry for entry in entries if (entry.decision, entry.by) == ("refused", LIMITS)]
        if obstacle and len(beyond) >= MOST_BEYOND:
            raise obstacle
        undecided = [entry for entry in entries if entry.decision == "awaiting"]
        if not automatic and len(undecided) >= MOST_AWAITING:
            over = min((entry for entry in undecided if entry.over), key=lambda entry: entry.over, default=None)
            if over is None:
                do = "Decide about some with caucus-party approve"
                raise RefusalError(Reason.FULL, f"{MOST_AWAITING} plans await approval, and no more can", do=do)
            path_of(self._folder, over.run, over.plan_digest).unlink()
        digest, seen = plan.digest().hex(), now()
        return PlanApproval(run=run, plan_digest=digest, plan=plan.to_json().decode(), first_seen=seen, asked=seen)


def approvals(folder: Path) -> list[PlanApproval]:
    """Return the entries of all runs and plans, oldest first; raise a DataError if a file is damaged."""
    entries = [read_entry(path, PlanApproval) for path in (folder / "runs").glob("*.json")]
    return sorted(entries, key=lambda approval: (approval.first_seen, approval.run))


def awaiting_entries(folder: Path) -> list[PlanApproval]:
    """Return the entries that wait for a person's decision, except those of runs that have ended."""
    return [entry for entry in approvals(folder) if entry.state == "awaiting" and not entry.over]


def end_all(folder: Path) -> None:
    """Record that this hospital has ended all runs for good; its ledger has ended them too, and refuses to go on."""
    if (folder / "runs").is_dir():
        with alone(folder / "runs"):
            for entry in approvals(folder):
                _store(folder, replace(entry, closed=entry.closed or now()))


def decide(folder: Path, approval: PlanApproval, *, approve: bool, by: str, reason: str = "") -> PlanApproval:
    """Store and log the decision of a person about a plan, as it was shown, unless somebody else decided meanwhile.

    `by` is the person's account. Only this hospital sees the reason. The updated entry is returned.

    Raises:
        ConfigError: The reason is too long, or has characters that cannot be printed; or another person has decided
            since the plan was shown; or the run has ended for good.
        RefusalError: The audit log is full; nothing is decided.
    """
    if reason:
        printable(reason=reason)
    with alone(folder / "runs"):
        # Read again: the service may have bound the run to its records since.
        current = find_entry(folder, approval.run, approval.plan_digest) or approval
        shown = (current.decision, current.decided) == (approval.decision, approval.decided)
        if not shown and current.by not in {"", LIMITS}:  # what the limits decided, a person may change unseen
            got = f"{current.decision} by {current.by}"
            raise ConfigError("plan", expected=f"{approval.decision}, as it was shown", got=got, do="Look at it again.")
        if current.closed:
            got = f"one that ended for good, {current.closed}"
            raise ConfigError("run", expected="one that goes on", got=got, do="Ask the coordinator to begin a new run.")
        decision = replace(current, decision="approved" if approve else "refused", by=by, reason=reason)
        return _store_decision(folder, decision, before=current.decision, by=by)


def _store_decision(folder: Path, approval: PlanApproval, *, before: str, by: str) -> PlanApproval:
    """Append a decision to the audit log and store it, or do neither; return it with its time.

    The line is written once the new entry is on disk, and only then does the entry take its place.
    """
    decided = replace(approval, decided=now())
    note = partial(
        AuditLog(folder).note_decision,
        run=approval.run,
        plan_digest=approval.plan_digest,
        by=by,
        before=before,
        after=approval.decision,
        reason=approval.reason,
        when=decided.decided,
    )
    _store(folder, decided, first=note)
    return decided


def find_entry(folder: Path, run: str, plan_digest: str) -> PlanApproval | None:
    """Return the entry of a run and plan; None if this hospital was not asked about them.

    Raises:
        DataError: The file is damaged, or is about another run or plan.
    """
    path = path_of(folder, run, plan_digest)
    try:
        entry = read_entry(path, PlanApproval)
    except FileNotFoundError:
        return None
    if (entry.run, entry.plan_digest) != (run, plan_digest):
        raise DataError("run's entry", expected="that of this run and plan", got="another", where=path, do=_RESTORE)
    return entry


def read_entry(path: Path, kind: Callable[..., Entry], /, **known: object) -> Entry:
    """Return the entry, a dataclass of this kind, that a file describes, with the `known` fields that are not in it.

    Raises:
        DataError: The file is damaged.
        OSError: The file cannot be read.
    """
    stored = {name: parameter for name, parameter in signature(kind).parameters.items() if name not in known}
    required = [name for name, parameter in stored.items() if parameter.default is Parameter.empty]
    try:
        values = known_keys(path.name, json.loads(path.read_bytes()), among=stored, required=required)
        for name, value in values.items():
            check_type(name, value, stored[name].annotation)
        return kind(**values, **known)
    except (ValueError, RecursionError, ConfigError) as error:
        raise DataError("a file of this hospital's runs is damaged", where=path, do=_RESTORE) from error


def _store(folder: Path, approval: PlanApproval, *, first: Callable[[], None] = lambda: None) -> None:
    content = json.dumps(asdict(approval), indent=1).encode()
    write_atomic(path_of(folder, approval.run, approval.plan_digest), content, mode=SECRET, first=first)


def path_of(folder: Path, run: str, plan_digest: str) -> Path:
    """Return the path of the file for a run and plan, of which the run's name, the coordinator's word, is no part."""
    return folder / "runs" / f"{hashlib.sha256(f'{plan_digest}{run}'.encode()).hexdigest()[:32]}.json"
