"""Plans as the page shows them: waiting plans in full, other plans in one line each, with the possible decisions.

As in `caucus-party approve`, a decision is stored by `client.approvals.decide`. The decision is refused if the plan's
entry has changed since the page was made, as somebody else may have decided meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from client.approvals import LIMITS, PlanApproval, approvals, decide, find
from client.deploy.account import account
from client.deploy.audit_reading import LogLine, last_of_audit
from client.deploy.plan_amounts import Given, counting, given
from client.deploy.plan_cards import Card, Unreadable, plan_cards
from client.deploy.plan_fit import refusal, without_writer
from client.deploy.plan_sheet import decision
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
        beyond: Cards of the waiting plans beyond the limits, oldest first; they can be refused, and not approved.
        unreadable: Waiting plans that cannot be read, oldest first; they can be refused.
        refused: Plans that a person refused, newest first.
        by_limits: Plans that the limits refused where they decide, newest first.
        approved: Plans that were approved, newest first.
        ended: Plans whose runs this hospital has ended for good, whatever was decided before, newest first.
        unasked: The last refusal of each run that the hospital's own settings refused, newest first.
    """

    waiting: tuple[Card, ...]
    quiet: tuple[Card, ...]
    beyond: tuple[Card, ...]
    unreadable: tuple[Unreadable, ...]
    refused: tuple[Decided, ...]
    by_limits: tuple[Decided, ...]
    approved: tuple[Decided, ...]
    ended: tuple[Decided, ...]
    unasked: tuple[LogLine, ...]


def plans(settings: HospitalSettings, language: str = ENGLISH) -> Plans:
    """Return all plans, with sheets in the reader's language; `card` documents the errors."""
    known = approvals(settings.private)
    shown = plan_cards(settings, [entry for entry in known if entry.state == "awaiting"], known, language)
    cards = [card for card in shown if isinstance(card, Card)]
    within = [card for card in cards if not card.facts.beyond]
    refused = [entry for entry in reversed(known) if entry.state == "refused"]
    return Plans(
        waiting=tuple(card for card in within if not card.facts.quiet),
        quiet=tuple(card for card in within if card.facts.quiet),
        beyond=tuple(card for card in cards if card.facts.beyond),
        unreadable=tuple(card for card in shown if isinstance(card, Unreadable)),
        refused=_decided(settings, [entry for entry in refused if entry.by != LIMITS]),
        by_limits=_decided(settings, [entry for entry in refused if entry.by == LIMITS]),
        approved=_decided(settings, [entry for entry in reversed(known) if entry.state == "approved"]),
        ended=_decided(settings, [entry for entry in reversed(known) if entry.state == "ended"]),
        unasked=_unasked(settings, known),
    )


def card(settings: HospitalSettings, run: str, digest: str, language: str) -> Card | Unreadable:
    """Return the card for one plan, with its sheet in the reader's language.

    Raises:
        ConfigError: There is no such plan.
        CaucusError: The roster, the records or the ledger cannot be read.
    """
    known = approvals(settings.private)
    return plan_cards(settings, [_found(known, run, digest)], known, language)[0]


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
        RefusalError: The plan is beyond the limits, so that it must not be approved, or the audit log is full.
    """
    known = approvals(settings.private)
    approval = _found(known, form.get("run", ""), form.get("digest", ""))
    if form.get("seen") != state(approval):
        raise ConfigError("plan", expected="its decision as this page showed it", got=decision(approval))
    answer = form.get("decision", "")
    if answer not in {"approve", "refuse"}:
        raise ConfigError("decision", expected="approve or refuse", got="neither")
    if answer == "approve":  # to refuse, the plan need not be read
        shown = plan_cards(settings, [approval], known)[0]
        if isinstance(shown, Unreadable):
            raise ConfigError("decision", expected="refuse, for a plan that cannot be read here", got="approve")
        shown.check_allowed()
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
    if plan is None or entry.over or entry.decision != "approved":
        return ""
    charged = counting(plan, limits, ledger.charged("", but=entry.run) if ledger else ())
    roster, declared = settings.roster(), settings.declared()
    number = settings.number(roster)
    refused = refusal(plan, limits, charged, number=number, roster=roster, declared=declared)
    return str(refused or without_writer(plan, settings.party.kinds_of_writers) or "")


def _unasked(settings: HospitalSettings, known: Sequence[PlanApproval]) -> tuple[LogLine, ...]:
    """Return the refusals of plans without an entry, except plans that waited or that a person refused."""
    asked = {printable_line(approval.run) for approval in known}
    of_run: dict[str, LogLine] = {}
    for line in last_of_audit(settings.private):
        opened = line.request == "Open" and line.refused and line.reason not in {"AWAITING", "DECLINED"}
        if opened and line.run not in asked:
            of_run.setdefault(line.run, line)
    return tuple(of_run.values())[:MOST_UNASKED]
