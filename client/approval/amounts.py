"""A hospital's own figures about a plan: its lifetime budget, its records, and what it has answered in the run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from client.approval.entries import PlanApproval
from client.deploy.audit_reading import answered_questions
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from common.domain import UNLABELLED, Record, is_one_population
from common.ledger.ledger import Ledger
from common.plan.guesses import Guesses
from common.plan.plan import Plan
from common.privacy.accountant import ReleasedAnswers
from common.sections import normal_heading, sections
from common.spelling import skeleton


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeBudget:
    """The lifetime budget before and after a plan's run, as the limits count it.

    Attributes:
        limit: The most epsilon that all runs together may spend; None for no limit.
        delta: The delta at which the figures are computed: the limit's, or the plan's if there is no limit.
        before: Epsilon of all other runs combined.
        after: Epsilon of all runs including this one, if it is answered completely; the difference from `before` is the
            cost of this run.
        left: Remainder of the limit after this run; None if there is no limit.
        guesses: What somebody can find out from the answers of all runs, this one included.
        apart: Whether data sets count separately (`counts_separately`). The service's figures may then be lower than
            the figures here, which count all data sets.
        problem: Why the service does not start with this ledger; the figures may then be too low. Empty if it starts.
    """

    limit: float | None
    delta: float
    before: float
    after: float
    left: float | None
    guesses: Guesses
    apart: bool
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecords:
    """Counts of the hospital's own records by the plan's labels; only the hospital may see them.

    Attributes:
        total: Number of all the hospital's records.
        eligible: Number of records with a label of the plan.
        taking_part: Number of those that take part: in a plan that protects users, up to `most` of each user.
        most: The plan's maximum number of records of a user; None unless it protects users.
        users: Number of users whose records take part; None if they are not named.
        most_of_user: Largest number of records of one user that can take part, where users that look alike count as
            one, so that it is a bound also for a user in several spellings; None if users are not named.
        of_label: Number of records, keyed by label of the plan; labels without records are omitted.
        without: Labels of the plan that no record has.
        unasked: Number of records, keyed by label, for labels that are not in the plan.
    """

    total: int
    eligible: int
    taking_part: int
    most: int | None
    users: int | None
    most_of_user: int | None
    of_label: dict[str, int]
    without: tuple[str, ...]
    unasked: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredSoFar:
    """What this hospital has answered in a run, and what its ledger charged for it.

    After a ledger is restored, an answer may lack its charge; and `ledger accept` charges what may never have been
    answered. So the two are never derived from one another.

    Attributes:
        answered: Number of questions that were answered, by the audit log.
        charged: Number of answers that were charged, by the ledger.
        uncharged: Number of answered questions whose charge the ledger lacks: it was lost with another ledger.
        epsilon, delta: Epsilon of the charges of this run alone, as the limits count it, at this delta.
    """

    answered: int
    charged: int
    uncharged: int
    epsilon: float
    delta: float

    def __bool__(self) -> bool:
        return bool(self.answered or self.charged)


def answered_so_far(approval: PlanApproval, settings: HospitalSettings, ledger: Ledger | None) -> AnsweredSoFar:
    """Return what this hospital has answered in a plan's run; without a ledger, nothing was charged.

    Raises:
        OSError: The audit log cannot be read.
    """
    limits = settings.party.limits
    entries = ledger.entries(approval.run) if ledger else ()
    costs = {entry.index: entry.cost for entry in entries if entry.plan_digest.hex() == approval.plan_digest}
    answered = answered_questions(settings.audit_log).get((approval.run, approval.plan_digest), {})
    return AnsweredSoFar(
        answered=len(answered),
        charged=len(costs),
        uncharged=len(answered.keys() - set(costs)),
        epsilon=limits.spent(costs.values()),
        delta=limits.lifetime_delta,
    )


def counts_separately(plan: Plan, limits: Limits) -> bool:
    """Return whether the service counts only data sets that share a record with the data set of this plan's run."""
    return limits.separate_data_sets and plan.unit == "sample"


def lifetime_budget(plan: Plan, limits: Limits, charged: Sequence[ReleasedAnswers], problem: str) -> LifetimeBudget:
    """Return the budget before and after a plan's run; `charged` are the charges of all other runs."""
    counted_by = limits if limits.lifetime_epsilon is not None else replace(limits, lifetime_delta=plan.delta)
    together = (*charged, *plan.releases(limits.unknown_shares(plan)))
    after = counted_by.spent(together)
    return LifetimeBudget(
        limit=limits.lifetime_epsilon,
        delta=counted_by.lifetime_delta,
        before=counted_by.spent(charged),
        after=after,
        left=counted_by.left(after),
        guesses=counted_by.guesses(together),
        apart=counts_separately(plan, limits),
        problem=problem,
    )


def count_own_records(plan: Plan, private: Sequence[Record], headings: Sequence[str]) -> OwnRecords:
    """Return counts of the hospital's records by the plan's labels; without labels, all records are one population.

    The labels of a plan by sections are headings; `headings` are those that the hospital's own file names.
    """
    several = plan.labels_per_record > 1
    sets = [record.labels if several else (record.label,) for record in private]
    if is_one_population(plan.labels):
        sets = [(UNLABELLED,)] * len(private)
    if plan.by_section:
        spelt = {normal_heading(label): label for label in plan.labels}  # as the plan spells them
        headings_by_record = ([part.heading for part in sections(record.text, headings)] for record in private)
        sets = [tuple(spelt.get(normal_heading(heading), heading) for heading in mine) for mine in headings_by_record]
    counts = Counter(label for labels in sets for label in labels)
    eligible = [record for record, labels in zip(private, sets, strict=True) if not set(labels).isdisjoint(plan.labels)]
    of_user = Counter(record.user or "" for record in eligible)  # without names all belong to one user
    of_person: Counter[str] = Counter()
    for user, count in of_user.items():
        of_person[skeleton(user)] += count
    named = bool(of_user.keys() - {""})
    most = max((query.spec.max_records for query in plan.queries), default=0) if plan.unit == "user" else None
    return OwnRecords(
        total=len(private),
        eligible=len(eligible),
        taking_part=len(eligible) if most is None else sum(min(count, most) for count in of_user.values()),
        most=most,
        users=len(of_user) if named else None,
        most_of_user=max(of_person.values()) if named else None,
        of_label={label: counts[label] for label in plan.labels if counts[label]},
        without=tuple(label for label in plan.labels if not counts[label]),
        unasked={label: count for label, count in sorted(counts.items()) if label not in plan.labels},
    )
