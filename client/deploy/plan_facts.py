"""The facts by which a person at the hospital decides on a plan, gathered from the hospital's own files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from client.approvals import PlanApproval
from client.deploy.plan_amounts import Budget, Given, OwnRecords, budget_under, counting, given, records_under
from client.deploy.plan_changes import changes, previous
from client.deploy.plan_fit import largest_epsilon, refusal, without_writer
from client.deploy.quiet import quiet
from client.deploy.settings import HospitalSettings
from client.deploy.shown_labels import shown_labels
from client.guard import Limits
from common.domain import Record
from common.messages import Reason
from common.plan.guarantee import (
    corrupt_for_readers,
    epsilon_against,
    epsilon_alone,
    epsilon_if_all_add_noise,
    epsilon_released,
    guesses_against,
    guesses_alone,
    guesses_planned,
    guesses_released,
)
from common.plan.guesses import Guesses
from common.plan.not_covered import Scope, not_covered
from common.plan.plan import Plan
from common.privacy.accountant import Release
from common.queries.texts import TextSpec

NOT_STATED_BY_THE_PLAN = ("which language models write", "whether one runs at a provider", "how many texts they write")
"""Facts that a person may want to know but that no plan contains; only the coordinator can provide them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """The facts about one plan.

    Attributes:
        approval: The plan's entry among the hospital's decisions.
        plan: The plan.
        hospitals: Names of the hospitals that take part, from this hospital's roster.
        unknown: Number of parties that are not on this hospital's roster.
        hospital: This hospital's name.
        colluders: Number of other hospitals that are assumed to help the coordinator: the number in the plan or the
            number in this hospital's limits, whichever is larger.
        corrupt: Number of hospitals on whose noise no figure for readers relies (`common.plan.guarantee`).
        planned: What can be found out from all that the run releases.
        epsilon_released: Epsilon of the texts for readers; see `common.plan.guarantee`.
        released: What readers of the texts can find out.
        epsilon_if_all_add_noise: Epsilon of the texts if every hospital adds its noise; no figure relies on it.
        epsilon_against: Epsilon against the coordinator together with `colluders` hospitals.
        against: What these can find out.
        epsilon_alone: Epsilon of this hospital's answers if only its own share of the noise protects them.
        alone: What can then be found out.
        budget: The lifetime budget before and after the run.
        given: What this hospital has answered in the run, and what was charged for it.
        records: Counts of this hospital's records by the plan's labels.
        not_covered: What the guarantee does not cover; each item reads "Heading: explanation.".
        beyond: Why the plan is refused even if approved; empty if it is not refused.
        fits: The largest epsilon with which the limits would allow the same plan; 0 if they allow none; None if the
            plan is within the limits, or if the value was not calculated.
        quiet: Why the plan's run may be over (`client.deploy.quiet`); empty if there is no sign of this.
        before: The last approved run, other than this one, with the same plan or name; None if there is no such run.
        changes: The changes since the plan of `before`, each as a clause.
    """

    approval: PlanApproval
    plan: Plan
    hospitals: tuple[str, ...]
    unknown: int
    hospital: str
    colluders: int
    corrupt: int
    planned: Guesses
    epsilon_released: float
    released: Guesses
    epsilon_if_all_add_noise: float
    epsilon_against: float
    against: Guesses
    epsilon_alone: float
    alone: Guesses
    budget: Budget
    given: Given
    records: OwnRecords
    not_covered: tuple[str, ...]
    beyond: str
    fits: float | None
    quiet: str
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

        Args:
            approval: The plan's entry, written by this version of the program.
            settings: The hospital's settings.
            private: The hospital's records.
            known: All plans that the hospital was asked about, to find the previous plan of the same name.
            alone: Whether the plan is shown alone; only then is `fits` calculated, which takes seconds.

        Raises:
            ConfigError: The roster is missing or is not this hospital's.
            LedgerError: The ledger was edited, is damaged or cannot be read.
        """
        plan = Plan.from_json(approval.plan)
        limits = settings.party.limits
        names, roster = settings.roster_file().names, settings.roster()
        number, declared = settings.number(roster), settings.declared()
        colluders = limits.helpers(plan)
        ledger, problem = settings.noted_head.inspected(settings.ledger)
        charged = ledger.charged("", but=approval.run) if ledger else ()
        budget, counted = budget_under(plan, limits, charged, problem), counting(plan, limits, charged)
        refused, fits = refusal(plan, limits, counted, number=number, roster=roster, declared=declared), None
        if refused:
            helps = refused.reason is Reason.OVER_LIMIT
            fits = 0.0 if not helps else _fits(plan, limits, counted, declared) if alone else None
        elif refused := without_writer(plan, settings.party.kinds_of_writers):
            fits = 0.0
        before = previous(approval, known)
        earlier = before.read_plan() if before else None
        return cls(
            approval=approval,
            plan=plan,
            hospitals=names[: plan.parties],
            unknown=max(0, plan.parties - len(names)),
            hospital=names[number],
            colluders=colluders,
            corrupt=corrupt_for_readers(plan),
            planned=guesses_planned(plan),
            epsilon_released=epsilon_released(plan),
            released=guesses_released(plan),
            epsilon_if_all_add_noise=epsilon_if_all_add_noise(plan),
            epsilon_against=epsilon_against(plan, colluders),
            against=guesses_against(plan, colluders),
            epsilon_alone=epsilon_alone(plan),
            alone=guesses_alone(plan),
            budget=budget,
            given=given(approval, settings, ledger),
            records=records_under(plan, private, settings.headings),
            not_covered=tuple(not_covered(Scope.of(plan, up))),
            beyond=str(refused or ""),
            fits=fits,
            quiet=quiet(approval),
            before=before,
            changes=tuple(changes(earlier, plan)) if earlier else (),
        )

    @property
    def unit(self) -> str:
        """The unit of privacy that the plan protects, in words."""
        if self.plan.unit == "sample":
            return "each record"
        records = sorted({query.spec.max_records for query in self.plan.queries})
        most = " or ".join(map(str, records)) or "no"
        return f"each user, of whom up to {most} records take part and the others do not"

    @property
    def own_texts(self) -> int:
        """The maximum number of texts, made from its records, that this hospital sends, further attempts included."""
        texts = (query.times * query.spec.texts for query in self.plan.queries if isinstance(query.spec, TextSpec))
        return sum(texts) * self.plan.max_attempts

    @property
    def questions(self) -> int:
        """The number of questions that the plan asks."""
        return sum(query.times for query in self.plan.queries)

    @property
    def without_noise(self) -> bool:
        """Whether any of the plan's questions is answered without noise."""
        return any(query.without_noise for query in self.plan.queries)

    @property
    def few_records(self) -> bool:
        """Whether fewer than a tenth of the hospital's records take part, or none at all."""
        return self.records.taking_part == 0 or 10 * self.records.taking_part < self.records.total

    @property
    def lifting(self) -> int | None:
        """The smallest number of other hospitals that could lift this hospital's masks together with the coordinator.

        None if no number of them could, or if there are no masks.
        """
        needed = self.plan.largest_coalition + 1
        return needed if self.plan.secure and needed < self.plan.parties else None

    @property
    def trust(self) -> str:
        """What the coordinator can see of the answers, and whether the hospital must trust it not to look, in words."""
        plan = self.plan
        if not plan.secure:
            return "sees each noised answer of this hospital: NO masks, it need not do anything for that"
        unless = f", unless {self.lifting} of the {plan.parties - 1} others help it" if self.lifting else ""
        sums = f"sees sums over {plan.survivors} or more hospitals, and never this hospital's own answers{unless}"
        if plan.malicious:
            return f"need not be trusted: whatever it does, it {sums}"
        return f"MUST be trusted: if it follows the protocol, it {sums}"

    def plain(self) -> dict[str, object]:
        """Return the facts as values for JSON."""
        plan, budget, records = self.plan, self.budget, self.records
        of_epsilon = {
            "epsilon": self.planned,
            "epsilon_released": self.released,
            "epsilon_against": self.against,
            "epsilon_alone": self.alone,
        }
        return {
            "run": self.approval.run,
            "plan_digest": self.approval.plan_digest,
            "decision": self.approval.decision,
            "by": self.approval.by,
            "decided": self.approval.decided,
            "reason": self.approval.reason,
            "first_seen": self.approval.first_seen,
            "run_before": self.before.run if self.before else None,
            "changes": list(self.changes),
            "purpose": plan.purpose,
            "recipient": plan.recipient,
            "method": plan.method,
            "hospitals": list(self.hospitals),
            "hospitals_not_on_the_roster": self.unknown,
            "masks": "none" if not plan.secure else "malicious" if plan.malicious else "semi-honest",
            "coordinator": self.trust,
            "colluders_against_masks": plan.largest_coalition if plan.secure else None,
            "threshold": plan.threshold,
            "survivors": plan.survivors,
            "colluders": self.colluders,
            "attempts": plan.max_attempts,
            "unit": plan.unit,
            "max_records": max((query.spec.max_records for query in plan.queries), default=1),
            "delta": plan.delta,
            "epsilon": plan.epsilon,
            "epsilon_released": self.epsilon_released,
            "epsilon_if_all_add_noise": self.epsilon_if_all_add_noise,
            "epsilon_against": self.epsilon_against,
            "epsilon_alone": self.epsilon_alone,
            "corrupt": self.corrupt,
            "strength": self.released.strength,
            "right_guesses_percent": {name: guesses.right for name, guesses in of_epsilon.items()},
            "worst_guesses_percent": {name: guesses.worst for name, guesses in of_epsilon.items()},
            "beliefs_percent": {
                name: [asdict(belief) for belief in guesses.beliefs] for name, guesses in of_epsilon.items()
            },
            "own_texts": self.own_texts,
            "not_stated_by_the_plan": list(NOT_STATED_BY_THE_PLAN),
            "not_covered": list(self.not_covered),
            "queries": [
                values | {"asks": query.spec.asks}
                for values, query in zip(plan.to_dict()["queries"], plan.queries, strict=True)
            ],
            "lifetime": {
                "limit": budget.limit,
                "delta": budget.delta,
                "before": budget.before,
                "after": budget.after,
                "left": budget.left,
                "right_guesses_percent": budget.guesses.right,
                "data_sets_apart": budget.apart,
                "problem": budget.problem,
            },
            "answered": self.given.answered,
            "charged": self.given.charged,
            "charges_lost": self.given.uncharged,
            "records": {
                "total": records.total,
                "taking_part": records.taking_part,
                "users": records.users,
                "of_label": records.of_label,
                "labels_without_records": list(records.without),
                "not_asked_for": shown_labels(records.unasked),
            },
            "beyond_limits": self.beyond,
            "largest_epsilon_within_limits": self.fits,
            "may_be_over": self.quiet,
        }


def _fits(plan: Plan, limits: Limits, charged: tuple[Release, ...], declared: int) -> float | None:
    try:
        return largest_epsilon(plan, limits, charged, declared=declared)
    except Exception:  # noqa: BLE001 whatever fails in this figure, a person must be able to refuse the plan
        return None


def up(value: float, digits: int = 3) -> str:
    """Format a privacy loss, rounded up."""
    shown = f"{value:.{digits}f}"
    return shown if float(shown) >= value else f"{value + 10.0**-digits:.{digits}f}"


def down(value: float, digits: int = 3) -> str:
    """Format an amount of noise or of remaining budget, rounded down."""
    shown = f"{value:.{digits}f}"
    return shown if float(shown) <= value else f"{value - 10.0**-digits:.{digits}f}"
