"""Plans as the page shows them: waiting plans in full, other plans in one line each, with the possible decisions.

As in `caucus-party approve`, a decision is stored by `client.approvals.decide`. The decision is refused if the plan's
entry has changed since the page was made, as somebody else may have decided meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from client.approvals import PlanApproval, approvals, decide, find
from client.deploy.account import account
from client.deploy.plan_amounts import Given, counting, given
from client.deploy.plan_facts import PlanFacts
from client.deploy.plan_fit import refusal
from client.deploy.plan_sheet import Part, decision, sheet
from client.deploy.settings import HospitalSettings
from client.page.audit_lines import LogLine, last_of_audit
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.system.log_lines import printable_line

MOST_UNASKED = 10
"""Number of runs shown among those that the settings refused without asking anybody."""
MOST_COMPARED = 20
"""Number of most recently approved plans that are compared with the current limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One plan on the page.

    Attributes:
        approval: The plan's entry among the hospital's decisions.
        line: The decision about the plan: by whom, when and why.
        facts: The facts about the plan that the hospital needs for a decision.
        parts: The sheet, as `caucus-party approve` prints it.
    """

    approval: PlanApproval
    line: str
    facts: PlanFacts
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One plan that has been decided on.

    Attributes:
        approval: The plan's entry among the hospital's decisions.
        line: The decision in one line: by whom, when and why.
        beyond: Why the plan is refused although it is approved; empty if it is not refused, or if its run has ended.
        given: What was answered in its run, and what was charged for it.
    """

    approval: PlanApproval
    line: str
    beyond: str
    given: Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """All plans that the hospital was asked about.

    Attributes:
        waiting: Cards of the plans that wait, oldest first.
        quiet: Cards of the waiting plans whose runs may be over, oldest first.
        refused: Plans that were refused, newest first.
        approved: Plans that were approved, newest first.
        unreadable: Waiting plans that cannot be read, since they are from another version or were changed on this
            machine; they can only be refused.
        unasked: The last refusal of each run that the hospital's own settings refused, newest first. A plan beyond the
            limits does not wait for a person's decision.
    """

    waiting: tuple[Card, ...]
    quiet: tuple[Card, ...]
    refused: tuple[Decided, ...]
    approved: tuple[Decided, ...]
    unreadable: tuple[PlanApproval, ...]
    unasked: tuple[LogLine, ...]


def plans(settings: HospitalSettings) -> Plans:
    """Return all plans; `card` documents the errors."""
    known = approvals(settings.private)
    waiting = [approval for approval in known if approval.decision == "awaiting"]
    readable = [approval for approval in waiting if approval.read_plan()]
    cards = _cards(settings, readable, known)
    return Plans(
        waiting=tuple(card for card in cards if not card.facts.quiet),
        quiet=tuple(card for card in cards if card.facts.quiet),
        refused=_decided(settings, [entry for entry in reversed(known) if entry.decision == "refused"]),
        approved=_decided(settings, [entry for entry in reversed(known) if entry.decision == "approved"]),
        unreadable=tuple(approval for approval in waiting if approval not in readable),
        unasked=_unasked(settings, known),
    )


def card(settings: HospitalSettings, run: str, digest: str) -> Card:
    """Return the card for one plan.

    Raises:
        ConfigError: There is no such plan, or this version cannot read it.
        CaucusError: The roster, the records or the ledger cannot be read.
    """
    known = approvals(settings.private)
    approval = _found(known, run, digest)
    if approval.read_plan() is None:
        raise ConfigError("plan", expected="one of this version of Caucus", got="another, or a changed one")
    return _cards(settings, [approval], known)[0]


def lately(settings: HospitalSettings, run: str, digest: str) -> Decided | None:
    """Return the plan that a person has just decided on, and what happens next; None if there is no such plan."""
    entry = find(settings.private, run, digest)
    return _decided(settings, [entry])[0] if entry and entry.decision != "awaiting" else None


def decided(settings: HospitalSettings, form: Mapping[str, str]) -> PlanApproval:
    """Store the decision made in a form, and return the plan's updated entry.

    Args:
        settings: The hospital's settings.
        form: Fields "run", "digest", "seen" (the entry's state on the page), "decision" and "reason".

    Raises:
        ConfigError: There is no such plan, somebody has decided since the page was made, or a field is invalid.
        RefusalError: The audit log is full.
    """
    approval = _found(approvals(settings.private), form.get("run", ""), form.get("digest", ""))
    if form.get("seen") != state(approval):
        raise ConfigError("plan", expected="its decision as this page showed it", got=decision(approval))
    answer = form.get("decision", "")
    if answer not in {"approve", "refuse"}:
        raise ConfigError("decision", expected="approve or refuse", got="neither")
    if answer == "approve" and approval.read_plan() is None:
        raise ConfigError("decision", expected="refuse, for a plan that cannot be read here", got="approve")
    reason = " ".join(form.get("reason", "").split())
    return decide(settings.private, approval, approve=answer == "approve", by=account(), reason=reason)


def state(approval: PlanApproval) -> str:
    """Return an entry's decision and its time, from which a form detects whether the entry has changed."""
    return f"{approval.decision} {approval.decided}".strip()


def _found(known: Sequence[PlanApproval], run: str, digest: str) -> PlanApproval:
    for approval in known:
        if (approval.run, approval.plan_digest) == (run, digest):
            return approval
    raise ConfigError("plan", expected="one that the coordinator has opened here", got="another")


def _cards(settings: HospitalSettings, shown: Sequence[PlanApproval], known: Sequence[PlanApproval]) -> list[Card]:
    private = settings.read_records(may_be_empty=True) if shown else []
    alone = len(shown) == 1
    facts = [PlanFacts.gather(approval, settings, private, known=known, alone=alone) for approval in shown]
    return [Card(approval=fact.approval, line=decision(fact.approval), facts=fact, parts=sheet(fact)) for fact in facts]


def _decided(settings: HospitalSettings, entries: Sequence[PlanApproval]) -> tuple[Decided, ...]:
    ledger = settings.noted_head.inspected(settings.ledger)[0] if entries else None
    return tuple(
        Decided(
            approval=entry,
            line=decision(entry),
            beyond=_beyond(entry, settings, ledger) if number < MOST_COMPARED else "",
            given=given(entry, settings, ledger),
        )
        for number, entry in enumerate(entries)
    )


def _beyond(entry: PlanApproval, settings: HospitalSettings, ledger: Ledger | None) -> str:
    plan, limits = entry.read_plan(), settings.party.limits
    if plan is None or entry.ended or entry.closed or entry.decision != "approved":
        return ""
    charged = counting(plan, limits, ledger.charged("", but=entry.run) if ledger else ())
    roster, declared = settings.roster(), settings.declared()
    number = settings.number(roster)
    return str(refusal(plan, limits, charged, number=number, roster=roster, declared=declared) or "")


def _unasked(settings: HospitalSettings, known: Sequence[PlanApproval]) -> tuple[LogLine, ...]:
    """Return the refusals of plans without an entry, except plans that waited or that a person refused."""
    asked = {printable_line(approval.run) for approval in known}
    of_run: dict[str, LogLine] = {}
    for line in last_of_audit(settings.private):
        opened = line.request == "Open" and line.refused and line.reason not in {"AWAITING", "DECLINED"}
        if opened and line.run not in asked:
            of_run.setdefault(line.run, line)
    return tuple(of_run.values())[:MOST_UNASKED]
