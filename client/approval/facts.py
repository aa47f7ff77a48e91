"""The facts by which a person at the hospital decides on a plan, gathered from the hospital's own files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from client.approval.amounts import (
    AnsweredSoFar,
    LifetimeBudget,
    OwnRecords,
    answered_so_far,
    count_own_records,
    lifetime_budget,
)
from client.approval.changes import approved_before, plan_changes
from client.approval.entries import PlanApproval
from client.approval.fit import PlanFit, fit_plan
from client.deploy.settings import HospitalSettings
from client.session import RefusalError
from common.domain import Record
from common.messages import Reason
from common.plan import guarantee
from common.plan.facts import PlanGuarantee
from common.plan.guarantee import plan_guarantee
from common.plan.guesses import Guesses
from common.plan.plan import STATED, Plan
from common.queries.texts import TextSpec
from common.system.log_lines import escaped_line


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFigures:
    """Figures for all records of one user together, in a plan that protects single records.

    Attributes:
        records: Largest number of records of one user that take part.
        epsilon_released, released: Epsilon of the texts for readers, and what these can find out.
        epsilon_against, against: Epsilon against the coordinator and its colluders, and what these can find out.
    """

    records: int
    epsilon_released: float
    released: Guesses
    epsilon_against: float
    against: Guesses

    @classmethod
    def compute(cls, plan: Plan, colluders: int, records: int) -> Self | None:
        """Return the figures; None if each user has one record, or if the plan protects users."""
        if plan.unit != "sample" or records == 1:
            return None
        return cls(
            records=records,
            epsilon_released=guarantee.epsilon_released(plan, records),
            released=guarantee.guesses_released(plan, records),
            epsilon_against=guarantee.epsilon_against(plan, colluders, records),
            against=guarantee.guesses_against(plan, colluders, records),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """The facts about one plan.

    Attributes:
        guarantee: What the plan guarantees, with `party_epsilon` against the coordinator and `colluders` hospitals.
        hospitals: Names of the hospitals that take part, from this hospital's roster.
        unknown: Number of parties that are not on this hospital's roster.
        hospital: This hospital's name.
        colluders: Number of other hospitals that are assumed to help the coordinator: the number in the plan or the
            number in this hospital's limits, whichever is larger.
        planned: What can be found out from all that the run releases.
        epsilon_alone, alone: Epsilon of this hospital's answers if only its own share of the noise protects them, and
            what can then be found out.
        of_user: The figures for all records of one user together; None unless the plan protects single records, and a
            user has several that take part.
        fit: Whether this hospital would answer the plan once it is approved.
        before: The last approved run, other than this one, with the same plan or name; None if there is no such run.
        changes: The changes since the plan of `before`, each as a clause.
    """

    approval: PlanApproval
    plan: Plan
    guarantee: PlanGuarantee
    hospitals: tuple[str, ...]
    unknown: int
    hospital: str
    colluders: int
    planned: Guesses
    epsilon_alone: float
    alone: Guesses
    of_user: UserFigures | None
    budget: LifetimeBudget
    answered: AnsweredSoFar
    records: OwnRecords
    fit: PlanFit
    before: PlanApproval | None
    changes: tuple[str, ...]

    @classmethod
    def gather(
        cls,
        approval: PlanApproval,
        settings: HospitalSettings,
        private: Sequence[Record],
        *,
        known: Sequence[PlanApproval] = (),
        alone: bool = True,
    ) -> Self:
        """Return the facts about this plan, from the hospital's own files alone.

        `known` are all plans that the hospital was asked about, to find the previous plan of the same name. Only where
        a plan is shown `alone` is the epsilon searched that would fit.

        Raises:
            ConfigError: The roster is missing or is not this hospital's.
            LedgerError: The ledger was edited, is damaged or cannot be read.
        """
        plan = Plan.from_json(approval.plan)
        names, number = settings.roster_file().names, settings.number(settings.roster())
        colluders = settings.party.limits.helpers(plan)
        ledger, problem = settings.inspected_ledger()
        charged = ledger.charged("", but=approval.run) if ledger else ()
        before = approved_before(approval, known)
        earlier = before.read_plan() if before else None
        records = count_own_records(plan, private, settings.headings)
        return cls(
            approval=approval,
            plan=plan,
            guarantee=plan_guarantee(plan, colluders=colluders),
            hospitals=names[: plan.parties],
            unknown=max(0, plan.parties - len(names)),
            hospital=names[number],
            colluders=colluders,
            planned=guarantee.guesses_planned(plan),
            epsilon_alone=guarantee.epsilon_alone(plan),
            alone=guarantee.guesses_alone(plan),
            of_user=UserFigures.compute(plan, colluders, records.most_of_user or 1),
            budget=lifetime_budget(plan, settings.party.limits, charged, problem),
            answered=answered_so_far(approval, settings, ledger),
            records=records,
            fit=fit_plan(plan, settings, charged, search=alone),
            before=before,
            changes=tuple(plan_changes(earlier, plan)) if earlier else (),
        )

    @property
    def stated(self) -> dict[str, str]:
        """The coordinator's statements, keyed by field of the plan."""
        return {name: getattr(self.plan, name) for name in STATED}

    @property
    def own_texts(self) -> int:
        """The maximum number of texts, made from its records, that this hospital sends, further attempts included."""
        texts = (query.times * query.spec.texts for query in self.plan.queries if isinstance(query.spec, TextSpec))
        return sum(texts) * self.plan.max_attempts

    @property
    def without_noise(self) -> bool:
        """Whether any of the plan's questions is answered without noise."""
        return any(query.without_noise for query in self.plan.queries)

    @property
    def few_records(self) -> bool:
        """Whether fewer than a tenth of the hospital's records take part, or none at all."""
        return self.records.taking_part == 0 or 10 * self.records.taking_part < self.records.total

    def check_allowed(self) -> None:
        """Raise a RefusalError, which says what would fit, if the plan is beyond the limits: nobody can approve it."""
        if not self.fit.beyond or self.approval.state == "ended":  # `decide` refuses a run that has ended
            return
        fits = ""
        if self.fit.epsilon:
            fits = f", or tell the coordinator that epsilon {round_down(self.fit.epsilon)} would fit"
        raise RefusalError(
            Reason.OVER_LIMIT,
            f"not approved: run {escaped_line(self.approval.run)} is beyond this hospital's limits: {self.fit.beyond}",
            do=f"Change the limit first{fits}",
        )


def round_up(value: float, digits: int = 3) -> str:
    """Format a privacy loss, rounded up."""
    shown = f"{value:.{digits}f}"
    return shown if float(shown) >= value else f"{value + 10.0**-digits:.{digits}f}"


def round_down(value: float, digits: int = 3) -> str:
    """Format an amount of noise or of remaining budget, rounded down."""
    shown = f"{value:.{digits}f}"
    return shown if float(shown) <= value else f"{value - 10.0**-digits:.{digits}f}"
