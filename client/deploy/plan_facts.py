"""The facts by which a person at the hospital decides on a plan, gathered from the hospital's own files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from client.approvals import PlanApproval
from client.deploy.asked import asked
from client.deploy.plan_amounts import Budget, Given, OwnRecords, budget_under, counting, given, records_under
from client.deploy.plan_changes import changes, previous
from client.deploy.plan_fit import largest_epsilon, refusal, without_writer
from client.deploy.quiet import quiet
from client.deploy.settings import HospitalSettings
from client.deploy.shown_labels import shown_labels
from client.guard import Limits
from common.domain import Record
from common.messages import Reason
from common.page.words import ENGLISH, catalogue, spelt
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
from common.plan.plan import STATED, Plan
from common.privacy.accountant import Release
from common.queries.texts import TextSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUser:
    """Figures for all records of one user together, in a plan that protects single records.

    Attributes:
        records: Largest number of records of one user that take part.
        epsilon_released: Epsilon of the texts for readers.
        released: What readers of the texts can find out.
        epsilon_against: Epsilon against the coordinator and its colluders.
        against: What these can find out.
    """

    records: int
    epsilon_released: float
    released: Guesses
    epsilon_against: float
    against: Guesses

    @classmethod
    def of(cls, plan: Plan, colluders: int, records: int) -> Self | None:
        """Return the figures; None if each user has one record, or if the plan protects users."""
        if plan.unit != "sample" or records == 1:
            return None
        return cls(
            records=records,
            epsilon_released=epsilon_released(plan, records),
            released=guesses_released(plan, records),
            epsilon_against=epsilon_against(plan, colluders, records),
            against=guesses_against(plan, colluders, records),
        )


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
        of_user: The figures for all records of one user together; None unless the plan protects single records, and a
            user has several that take part.
        budget: The lifetime budget before and after the run.
        given: What this hospital has answered in the run, and what was charged for it.
        records: Counts of this hospital's records by the plan's labels.
        beyond: Why the plan is refused even if approved; empty if it is not refused.
        advised: Whether `beyond` says what plan to ask for, so that nothing need be said of `fits` where it is 0.
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
    of_user: OfUser | None
    budget: Budget
    given: Given
    records: OwnRecords
    beyond: str
    advised: bool
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
        ledger, problem = settings.inspected_ledger()
        charged = ledger.charged("", but=approval.run) if ledger else ()
        budget, counted = budget_under(plan, limits, charged, problem), counting(plan, limits, charged)
        refused, fits = refusal(plan, limits, counted, number=number, roster=roster, declared=declared), None
        if refused:
            helps = refused.reason is Reason.OVER_LIMIT and not refused.do
            fits = 0.0 if not helps else _fits(plan, limits, counted, declared) if alone else None
        elif refused := without_writer(plan, settings.party.kinds_of_writers):
            fits = 0.0
        before = previous(approval, known)
        earlier = before.read_plan() if before else None
        records = records_under(plan, private, settings.headings)
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
            of_user=OfUser.of(plan, colluders, records.most_of_user or 1),
            budget=budget,
            given=given(approval, settings, ledger),
            records=records,
            beyond=str(refused or ""),
            advised=bool(refused and refused.do),
            fits=fits,
            quiet=quiet(approval),
            before=before,
            changes=tuple(changes(earlier, plan)) if earlier else (),
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

    def trust(self, language: str = ENGLISH) -> str:
        """Return what the coordinator can see of the answers, and whether the hospital must trust it not to look.

        Args:
            language: Code of the reader's language.
        """
        plan, say = self.plan, catalogue(__package__, language).trust
        if not plan.secure:
            return str(say.none)
        shown = (plan.survivors, self.lifting, plan.parties - 1)
        sums = (say.sums_unless if self.lifting else say.sums).format(*shown)
        return str((say.malicious if plan.malicious else say.protocol).format(sums))

    def not_covered(self, language: str = ENGLISH) -> list[str]:
        """Return what the guarantee does not cover, in the reader's language; each item is "Heading: explanation."."""
        return not_covered(Scope.of(self.plan, lambda epsilon: spelt(up(epsilon), language)), language)

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
            **self.stated,
            "method": plan.method,
            "hospitals": list(self.hospitals),
            "hospitals_not_on_the_roster": self.unknown,
            "masks": "none" if not plan.secure else "malicious" if plan.malicious else "semi-honest",
            "coordinator": self.trust(),
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
            "of_user": asdict(self.of_user) if self.of_user else None,
            "corrupt": self.corrupt,
            "strength": self.released.strength,
            "right_guesses_percent": {name: guesses.right for name, guesses in of_epsilon.items()},
            "worst_guesses_percent": {name: guesses.worst for name, guesses in of_epsilon.items()},
            "beliefs_percent": {
                name: [asdict(belief) for belief in guesses.beliefs] for name, guesses in of_epsilon.items()
            },
            "own_texts": self.own_texts,
            "not_stated_by_the_plan": catalogue(__package__).purpose.not_stated,
            "not_covered": self.not_covered(),
            "queries": [
                values | {"asks": asked(query.spec)}
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
                "most_records_of_user": records.most_of_user,
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
