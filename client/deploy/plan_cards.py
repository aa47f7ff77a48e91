"""Plans as a person sees them, in the terminal and on the page, and whether one may be approved.

A plan that cannot be read or shown, as one of another version, takes no other plan down: it is named, and can be
refused, for which only its run and its digest are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from client.approvals import PlanApproval
from client.deploy.plan_facts import PlanFacts, down
from client.deploy.plan_sheet import Part, decision, plain, sheet
from client.deploy.settings import HospitalSettings
from client.session import RefusalError
from common.errors import CaucusError, ConfigError, PlanError
from common.messages import Reason
from common.page.words import ENGLISH


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One plan that can be shown.

    Attributes:
        facts: The facts about the plan that the hospital needs for a decision.
        parts: The sheet.
    """

    facts: PlanFacts
    parts: tuple[Part, ...]

    @property
    def approval(self) -> PlanApproval:
        """The plan's entry among the hospital's decisions."""
        return self.facts.approval

    @property
    def line(self) -> str:
        """The decision about the plan: by whom, when and why."""
        return decision(self.approval)

    def check_allowed(self) -> None:
        """Raise a RefusalError if the plan must not be approved, since this hospital would not answer it.

        Raises:
            RefusalError: The plan is beyond the limits; the message says which, and what would fit.
        """
        if not self.facts.beyond or self.approval.state == "ended":  # `decide` refuses a run that has ended
            return
        fits = f", or tell the coordinator that epsilon {down(self.facts.fits)} would fit" if self.facts.fits else ""
        raise RefusalError(
            Reason.OVER_LIMIT,
            f"not approved: run {plain(self.approval.run)} is beyond this hospital's limits: {self.facts.beyond}",
            do=f"Change the limit first{fits}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """One plan that cannot be shown, and can be refused.

    Attributes:
        approval: The plan's entry among the hospital's decisions.
        problem: Why it cannot be shown.
    """

    approval: PlanApproval
    problem: str

    @property
    def line(self) -> str:
        """The decision about the plan: by whom, when and why."""
        return decision(self.approval)

    @property
    def sentence(self) -> str:
        """That the plan cannot be read, why, and what can be done."""
        return f"{self.line}; this plan cannot be read here ({self.problem}); you can refuse it"


def plan_cards(
    settings: HospitalSettings,
    shown: Sequence[PlanApproval],
    known: Sequence[PlanApproval],
    language: str = ENGLISH,
) -> list[Card | Unreadable]:
    """Return the cards of these plans, in their order.

    Args:
        settings: The hospital's settings.
        shown: The plans.
        known: All plans that the hospital was asked about.
        language: Code of the reader's language, for the sheets.

    Raises:
        CaucusError: The roster, the records or the ledger cannot be read.
    """
    problems = [_problem(entry) for entry in shown]
    alone = problems.count("") == 1
    private = settings.read_records(may_be_empty=True) if "" in problems else []
    cards: list[Card | Unreadable] = []
    for entry, problem in zip(shown, problems, strict=True):
        if problem:
            cards.append(Unreadable(approval=entry, problem=problem))
            continue
        try:
            facts = PlanFacts.gather(entry, settings, private, known=known, alone=alone)
            cards.append(Card(facts=facts, parts=sheet(facts, language)))
        except (CaucusError, OSError):
            raise  # of the hospital's own files, without which no plan can be shown
        except Exception as error:  # noqa: BLE001 whatever is wrong with one plan, a person must be able to refuse it
            cards.append(Unreadable(approval=entry, problem=type(error).__name__))
    return cards


def _problem(entry: PlanApproval) -> str:
    """Return why a plan cannot be read; empty if it can."""
    try:
        entry.check_plan()
    except (PlanError, ConfigError) as error:
        return plain(str(error))
    return ""
