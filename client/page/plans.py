"""Plans as the page shows them: waiting plans in full, other plans in one line each, with the possible decisions.

`client.approval.sheet` has all facts and sentences about a plan, and says which of them the page shows first. As in
`caucus-party approve`, `client.approval.entries.decide` stores a decision. A decision is refused if the plan's entry
has changed since the page was made, as somebody else may have decided meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from client.approval.amounts import answered_so_far
from client.approval.entries import PlanApproval, approvals, decide, find_entry
from client.approval.fit import fit_plan
from client.approval.sheet import PlanSheet, plan_sheets
from client.approval.standing import end_of_run, given_answers, limits_refuse
from client.audit_log import LIMITS, account
from client.deploy.audit_reading import LogLine, last_of_audit
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.page.words import ENGLISH
from common.system.log_lines import printable_line

MOST_UNASKED = 10
"""Number of runs shown among those that the settings refused without asking anybody."""
MOST_COMPARED = 20
"""Number of most recently approved plans that are compared with the current limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedPlan:
    """One plan that has been decided on.

    Attributes:
        beyond: Why it is refused although it is approved; empty if it is not refused, or if its run has ended.
        standing: What has become of it, in sentences.
    """

    approval: PlanApproval
    beyond: str
    standing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLists:
    """All plans that the hospital was asked about.

    Attributes:
        waiting: Sheets of the plans that wait, oldest first.
        quiet: Sheets of the waiting plans whose runs may be over, oldest first.
        beyond: Sheets of the waiting plans beyond the limits, oldest first; they can be refused, and not approved.
        unreadable: Sheets of the waiting plans that cannot be read, oldest first; they can be refused.
        refused: Plans that a person refused, newest first.
        by_limits: Plans that the limits refused where they decide, newest first.
        approved: Plans that were approved, newest first.
        ended: Plans whose runs this hospital has ended for good, whatever was decided before, newest first.
        unasked: The last refusal of each run that the hospital's own settings refused, newest first.
    """

    waiting: tuple[PlanSheet, ...]
    quiet: tuple[PlanSheet, ...]
    beyond: tuple[PlanSheet, ...]
    unreadable: tuple[PlanSheet, ...]
    refused: tuple[DecidedPlan, ...]
    by_limits: tuple[DecidedPlan, ...]
    approved: tuple[DecidedPlan, ...]
    ended: tuple[DecidedPlan, ...]
    unasked: tuple[LogLine, ...]


def list_plans(settings: HospitalSettings, language: str = ENGLISH) -> PlanLists:
    """Return all plans, with sheets in the reader's language; `plan_sheet` documents the errors."""
    known = approvals(settings.private)
    shown = plan_sheets(settings, [entry for entry in known if entry.state == "awaiting"], known, language)
    beyond = [sheet for sheet in shown if sheet.facts and sheet.facts.fit.beyond]
    within = [sheet for sheet in shown if sheet.facts and not sheet.facts.fit.beyond]
    newest = known[::-1]
    refused = [entry for entry in newest if entry.state == "refused"]
    return PlanLists(
        waiting=tuple(sheet for sheet in within if not sheet.approval.may_be_over),
        quiet=tuple(sheet for sheet in within if sheet.approval.may_be_over),
        beyond=tuple(beyond),
        unreadable=tuple(sheet for sheet in shown if sheet.facts is None),
        refused=_decided_plans(settings, [entry for entry in refused if entry.by != LIMITS], language),
        by_limits=_decided_plans(settings, [entry for entry in refused if entry.by == LIMITS], language),
        approved=_decided_plans(settings, [entry for entry in newest if entry.state == "approved"], language),
        ended=_decided_plans(settings, [entry for entry in newest if entry.state == "ended"], language),
        unasked=_unasked(settings, known),
    )


def plan_sheet(settings: HospitalSettings, run: str, digest: str, language: str) -> PlanSheet:
    """Return the sheet of one plan, in the reader's language.

    Raises:
        ConfigError: There is no such plan.
        CaucusError: The roster, the records or the ledger cannot be read.
    """
    known = approvals(settings.private)
    return plan_sheets(settings, [_known_entry(known, run, digest)], known, language)[0]


def recent_decision(settings: HospitalSettings, run: str, digest: str, language: str) -> DecidedPlan | None:
    """Return the plan that a person has just decided on, and what happens next; None if there is no such plan."""
    entry = find_entry(settings.private, run, digest)
    return _decided_plans(settings, [entry], language)[0] if entry and entry.decision != "awaiting" else None


def store_decision(settings: HospitalSettings, form: Mapping[str, str]) -> PlanApproval:
    """Store the decision made in a form, and return the plan's updated entry.

    The form's fields are "run", "digest", "seen" (the entry's state on the page), "decision" and "reason".

    Raises:
        ConfigError: There is no such plan, somebody has decided since the page was made, or a field is invalid.
        RefusalError: The plan is beyond the limits, so that it must not be approved, or the audit log is full.
    """
    known = approvals(settings.private)
    approval = _known_entry(known, form.get("run", ""), form.get("digest", ""))
    if form.get("seen") != state(approval):
        raise ConfigError("the plan's decision has changed", got=approval.line, do="Load the page again")
    answer = form.get("decision", "")
    if answer not in {"approve", "refuse"}:
        raise ConfigError("decision", expected="approve or refuse", got="neither")
    if answer == "approve":  # to refuse, the plan need not be read
        facts = plan_sheets(settings, [approval], known)[0].facts
        if facts is None:
            raise ConfigError("a plan that cannot be read here cannot be approved", do="Refuse it")
        facts.check_allowed()
    reason = " ".join(form.get("reason", "").split())
    return decide(settings.private, approval, approve=answer == "approve", by=account(), reason=reason)


def state(approval: PlanApproval) -> str:
    """Return an entry's decision and its time, from which a form detects whether the entry has changed."""
    return f"{approval.decision} {approval.decided}".strip()


def _known_entry(known: Sequence[PlanApproval], run: str, digest: str) -> PlanApproval:
    for approval in known:
        if (approval.run, approval.plan_digest) == (run, digest):
            return approval
    raise ConfigError("the coordinator has not opened this plan here", do="Load the page again")


def _decided_plans(
    settings: HospitalSettings, entries: Sequence[PlanApproval], language: str
) -> tuple[DecidedPlan, ...]:
    ledger = settings.noted_head.inspected(settings.ledger)[0] if entries else None
    decided: list[DecidedPlan] = []
    for number, entry in enumerate(entries):
        beyond = _beyond(entry, settings, ledger) if number < MOST_COMPARED else ""
        standing = [*end_of_run(entry, language)] if entry.over else []
        if beyond:
            standing.append(limits_refuse(entry, beyond, language))
        if answered := answered_so_far(entry, settings, ledger):
            standing += given_answers(entry, answered, language)
        decided.append(DecidedPlan(approval=entry, beyond=beyond, standing=tuple(standing)))
    return tuple(decided)


def _beyond(entry: PlanApproval, settings: HospitalSettings, ledger: Ledger | None) -> str:
    plan = entry.read_plan()
    if plan is None or entry.over or entry.decision != "approved":
        return ""
    return fit_plan(plan, settings, ledger.charged("", but=entry.run) if ledger else ()).beyond


def _unasked(settings: HospitalSettings, known: Sequence[PlanApproval]) -> tuple[LogLine, ...]:
    """Return the refusals of plans without an entry, except plans that waited or that a person refused."""
    asked = {printable_line(approval.run) for approval in known}
    of_run: dict[str, LogLine] = {}
    for line in last_of_audit(settings.private):
        opened = line.request == "Open" and line.refused and line.reason not in {"AWAITING", "DECLINED"}
        if opened and line.run not in asked:
            of_run.setdefault(line.run, line)
    return tuple(of_run.values())[:MOST_UNASKED]
