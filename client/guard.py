"""The party's own limits, which come from its own file and never from a message."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from client.session import RefusalError
from common import validate
from common.errors import ConfigError, PlanError
from common.messages import Reason
from common.plan.aggregation import log2_breach
from common.plan.guarantee import epsilon_against, verify
from common.plan.guesses import Guesses
from common.plan.plan import UNITS, Plan
from common.privacy.accountant import ReleasedAnswers, epsilon, epsilon_by_norm, trade_off
from common.queries.closed_set import KINDS
from common.queries.votes import VotesSpec
from common.secagg import graph
from common.secagg.graph import GRINDING_BITS

KINDS_ACCEPTED_BY_DEFAULT = (
    "votes",
    "label histogram",
    "length histogram",
    "vocabulary histogram",
    "density sketch",
    "class sums",
    "self-similarity",
    "correct count",
    "length range",
    "seed choice",
    "fine-tuned samples",
)
"""Kinds of queries that a file without a line `queries` accepts. The list is fixed: a hospital accepts a later kind,
proven or not, only by writing it into its file, since nobody was asked about it when an older file was written."""

_USER_LEVEL = (
    "Ask for a plan with privacy.unit=user privacy.max_records=N, which protects a person with N records, or set "
    "`unit: sample` in this party's limits"
)
_SMALLER_DELTA = "Ask for a plan with a smaller privacy.delta, or declare fewer: caucus-party rotate --max-records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the use of a party's records.

    The defaults apply if the file lacks a line. They equal the values in `configs/client.yaml`, which `caucus-party
    init` copies, except that the default of `queries` is shorter; a test compares the two.

    Attributes:
        max_epsilon: Maximum ε of a plan against the coordinator and the `corrupt` parties; for a plan with unproven
            queries, maximum ε of its other queries. It may be infinite only together with `unsafe_no_noise`.
        max_delta: Maximum δ of a plan. Whatever this limit is, δ times the number of records that this party declares
            must be below 1 (`refusals`).
        lifetime_epsilon: Maximum ε, at `lifetime_delta` and against the same coalition, of everything in this party's
            ledger together with the whole new plan; None for no such limit. A coordinator gets no fresh budget by
            starting another run. A charge is computed for the coalition assumed at that time: if `corrupt` is raised
            later, earlier answers remain charged for the smaller coalition. If `unit` or `min_unit_records` is
            tightened later, they remain charged for one record, and have cost a user with several records more;
            `caucus-party check` counts the runs (`protects`).
        lifetime_delta: The δ of `lifetime_epsilon`.
        separate_data_sets: Counts only what was answered about data sets that share a record with this run's data set.
            A refusal then reveals to the coordinator, without noise, whether the data sets share any record; use this
            only for data sets for which that is known anyway.
        queries: Kinds of queries that are answered; by default `KINDS_ACCEPTED_BY_DEFAULT`.
        max_top: Maximum number of votes of one record in each direction (Q).
        min_survivors: Minimum number of parties in a sum; above 1, secure aggregation is required.
        unit: "sample" accepts plans at sample level and at user level, "user" at user level only.
        min_unit_records: Minimum number of one user's records that a plan must protect together; 1 accepts sample
            level.
        malicious_coordinator: Refuses plans whose secure aggregation trusts the coordinator to follow the protocol.
        corrupt: Fraction of all parties, rounded up to a whole number of parties, that may help the coordinator in any
            way: they may disclose to it their noise, their shares and everything else that they see, and sign anything.
            Secure aggregation must hide this party's answer from them, and both limits of ε must hold without their
            noise. The plan's own numbers are the coordinator's choice: if it assumes fewer colluders than there are, a
            malicious coordinator can obtain two signed survivor sets and, from the shares for both, this party's answer
            with only its own share of the noise.
        security_bits: The probability that a mask can be lifted in a plan with a sparse graph must be below
            2^-security_bits, or below 2^-(security_bits + 40) if the coordinator is not trusted, since it can try many
            graphs.
        unsafe_no_noise: Allows plans without noise; only for experiments on data that is not private.
        unsafe_unproven: Also answers the kinds whose released texts have no privacy proof (`Spec.unproven`), at ε = ∞,
            if `queries` names them. Requires `lifetime_epsilon=None`.
    """

    max_epsilon: float = 8.0
    max_delta: float = 1e-4
    lifetime_epsilon: float | None = 10.0
    lifetime_delta: float = 1e-4
    separate_data_sets: bool = False
    queries: tuple[str, ...] = KINDS_ACCEPTED_BY_DEFAULT
    max_top: int = 16
    min_survivors: int = 2
    unit: str = "sample"
    min_unit_records: int = 1
    malicious_coordinator: bool = True
    corrupt: float = 0.3
    security_bits: int = 40
    unsafe_no_noise: bool = False
    unsafe_unproven: bool = False

    def __post_init__(self) -> None:
        validate.flags(separate_data_sets=self.separate_data_sets, malicious_coordinator=self.malicious_coordinator)
        validate.flags(unsafe_no_noise=self.unsafe_no_noise, unsafe_unproven=self.unsafe_unproven)
        validate.probability(max_delta=self.max_delta, lifetime_delta=self.lifetime_delta)
        validate.at_least(1, max_top=self.max_top, min_survivors=self.min_survivors)
        validate.at_least(1, min_unit_records=self.min_unit_records)
        validate.integers(0, security_bits=self.security_bits)
        validate.in_range(0, 1, corrupt=self.corrupt)
        validate.one_of("unit", self.unit, among=UNITS)
        object.__setattr__(self, "queries", tuple(self.queries))
        for kind in self.queries:
            validate.one_of("queries", kind, among=KINDS)
        if not self.max_epsilon > 0:
            raise ConfigError("max_epsilon", expected="a number > 0", got=self.max_epsilon)
        if self.lifetime_epsilon is not None and not 0 < self.lifetime_epsilon < math.inf:
            raise ConfigError("lifetime_epsilon", expected="a finite number > 0, or null", got=self.lifetime_epsilon)
        if math.isinf(self.max_epsilon) and not self.unsafe_no_noise:
            do = "Set it to a number, or unsafe_no_noise to true if no record is private"
            raise ConfigError("max_epsilon", expected="finite", got=self.max_epsilon, do=do)

    def looser(self, than: "Limits") -> list[str]:
        """Return the names of the limits that allow more than those of other limits do."""
        return [
            name for name, loose in _LOOSENESS.items() if not loose(getattr(self, name)) <= loose(getattr(than, name))
        ]

    def protects(self, plan: Plan) -> bool:
        """Return whether a plan protects as many records of one user together as these limits demand."""
        together = all(query.spec.max_records >= self.min_unit_records for query in plan.queries)
        return together and (self.unit == "sample" or plan.unit == "user")

    def check(self, plan: Plan, earlier: Iterable[ReleasedAnswers] = (), *, declared: int) -> None:
        """Check that a plan is within the limits, before any private data is accessed.

        Args:
            plan: The plan.
            earlier: Charges of other runs.
            declared: Maximum number of records that this party declares, which is public.

        Raises:
            RefusalError: A limit is exceeded; the reason is OVER_LIMIT, and the error names the limit for this party's
                own log.
        """
        for _, refusal in self.refusals(plan, earlier, declared=declared):
            raise refusal

    def refusals(
        self, plan: Plan, earlier: Iterable[ReleasedAnswers] = (), *, declared: int
    ) -> Iterator[tuple[str, RefusalError]]:
        """Yield the name of each limit that a plan exceeds, with its RefusalError; `check` raises the first.

        A plan with too little noise for the epsilon that it claims counts as exceeding `max_epsilon`, whatever its
        value. A plan whose δ is one over `declared` or more counts as exceeding `max_delta`, whatever its value: even
        at ε = 0, each record may be published with probability δ, so δ times this party's records is the number of them
        that may be expected to be published. Both numbers are public, so the refusal reveals nothing. The records of
        other parties do not count: a party decides about its own records alone, and no other party can have plans
        refused here by declaring many.
        """
        for query in plan.queries:
            if query.spec.kind not in self.queries:
                yield "queries", _refusal("query", f"one of {', '.join(self.queries)}", query.spec.kind)
            if query.unproven and not self.unsafe_unproven:
                expected = "one with a proof, or unsafe_unproven in this party's limits"
                yield "unsafe_unproven", _refusal("query", expected, query.name)
            if query.without_noise and not self.unsafe_no_noise:
                expected = "one with noise, or unsafe_no_noise in this party's limits"
                yield "unsafe_no_noise", _refusal("query", expected, query.name)
            if isinstance(query.spec, VotesSpec):
                yield from _above("max_top", "votes in each direction", query.spec.top, self.max_top)
            records = query.spec.max_records
            yield from _below("min_unit_records", "records protected together", records, self.min_unit_records)
        if self.unit == "user" and plan.unit != "user":
            yield "unit", _refusal("unit that is protected", "user", plan.unit, do=_USER_LEVEL)
        yield from _above("max_delta", "plan's delta", plan.delta, self.max_delta)
        if plan.delta * declared >= 1:
            yield (
                "max_delta",
                _refusal(
                    "plan's delta",
                    f"below 1/{declared}, one over the number of records that this party declares",
                    plan.delta,
                    do=_SMALLER_DELTA,
                ),
            )
        survivors = plan.survivors if plan.secure else 1
        yield from _below("min_survivors", "parties in a sum", survivors, self.min_survivors)
        yield from self._of_aggregation(plan)
        # The plan's claim is recomputed: a coordinator that writes a small epsilon over a small sigma is refused.
        try:
            verify(plan)
        except PlanError as error:
            refusal = RefusalError(Reason.OVER_LIMIT, error.what, expected="enough for the plan's epsilon")
            refusal.__cause__ = error
            yield "max_epsilon", refusal
        yield from self._of_epsilon(plan)
        yield from self._of_lifetime([*earlier, *plan.releases(self.unknown_shares(plan))])

    def coalition(self, plan: Plan) -> int:
        """Return the number of other parties that this party assumes to help the coordinator."""
        return graph.coalition(self.corrupt, plan.parties)

    def helpers(self, plan: Plan) -> int:
        """Return how many other parties may help the coordinator: the larger of this party's number and the plan's."""
        return min(max(plan.colluders, self.coalition(plan)), plan.parties - 1)

    def unknown_shares(self, plan: Plan) -> int:
        """Return the number of noise shares in a sum that are unknown to the assumed coalition.

        If the coalition could lift the masks from one party's answer, it lacks only that party's own share.
        """
        if self.coalition(plan) > plan.largest_coalition:
            return 1
        return max(1, min(plan.noise_parties, plan.survivors - self.coalition(plan))) if plan.secure else 1

    def allow(self, charges: Iterable[ReleasedAnswers]) -> None:
        """Raise a RefusalError if the charges exceed a record's lifetime limits.

        Args:
            charges: All charges, the requested one included.

        Raises:
            RefusalError: A lifetime limit is exceeded; the reason is OVER_LIMIT.
        """
        for _, refusal in self._of_lifetime(charges):
            raise refusal

    def spent(self, charges: Iterable[ReleasedAnswers]) -> float:
        """Return the epsilon of these charges at `lifetime_delta`, to be compared with `lifetime_epsilon`."""
        charges = list(charges)
        # The bound by norm takes no time and is never below the truth; it is far above it only for many subsamples.
        spent = epsilon_by_norm(charges, self.lifetime_delta)
        limit = math.inf if self.lifetime_epsilon is None else self.lifetime_epsilon
        if spent > limit and any(charge.draws > 1 for charge in charges):
            spent = epsilon(charges, self.lifetime_delta)
        return spent

    def guesses(self, charges: Iterable[ReleasedAnswers]) -> Guesses:
        """Return what somebody can find out from these charges together, beside their epsilon at `lifetime_delta`."""
        charges = list(charges)
        return Guesses.of(trade_off(charges, self.lifetime_delta), self.spent(charges), self.lifetime_delta)

    def left(self, spent: float) -> float | None:
        """Return the remainder of `lifetime_epsilon` after `spent`, at least 0; None if there is no such limit."""
        return None if self.lifetime_epsilon is None else max(0.0, self.lifetime_epsilon - spent)

    def _of_lifetime(self, charges: Iterable[ReleasedAnswers]) -> Iterator[tuple[str, RefusalError]]:
        if self.lifetime_epsilon is not None:
            yield from _above("lifetime_epsilon", "epsilon of all runs", self.spent(charges), self.lifetime_epsilon)

    def _of_epsilon(self, plan: Plan) -> Iterator[tuple[str, RefusalError]]:
        proven = [query for query in plan.queries if not query.unproven]
        if len(proven) == len(plan.queries):
            yield from _above("max_epsilon", "plan's epsilon", plan.epsilon, self.max_epsilon)
        helping = self.helpers(plan) if plan.secure else 0
        against = epsilon_against(replace(plan, queries=tuple(proven)), helping)
        whom = f" against the coordinator and {helping} of {plan.parties} parties" if helping else ""
        yield from _above("max_epsilon", f"plan's epsilon{whom}", against, self.max_epsilon)

    def _of_aggregation(self, plan: Plan) -> Iterator[tuple[str, RefusalError]]:
        if self.malicious_coordinator and not plan.malicious:
            yield "malicious_coordinator", _refusal("secure aggregation", "signed", "a trusted coordinator")
        if not plan.secure:
            return
        corrupt = self.coalition(plan)
        if plan.malicious:
            yield from _below("corrupt", "corrupt parties that the signatures allow for", plan.corrupt, corrupt)
        bits = self.security_bits + (GRINDING_BITS if plan.malicious else 0)
        if (breach := log2_breach(plan, corrupt)) > -bits:
            what = f"chance that {corrupt} corrupt parties lift a mask"
            yield "security_bits", _refusal(what, f"2^-{bits} or less", f"2^{breach:.0f}")


_LOOSENESS: Mapping[str, Callable[[Any], Any]] = {
    "max_epsilon": float,
    "max_delta": float,
    "lifetime_epsilon": lambda most: math.inf if most is None else most,
    "lifetime_delta": float,
    "separate_data_sets": bool,
    "queries": frozenset,
    "max_top": int,
    "min_survivors": operator.neg,
    "unit": lambda unit: unit != "user",
    "min_unit_records": operator.neg,
    "malicious_coordinator": operator.not_,
    "corrupt": operator.neg,
    "security_bits": operator.neg,
    "unsafe_no_noise": bool,
    "unsafe_unproven": bool,
}
"""Functions of each limit's value that return the more, or the larger set, the more the limit allows."""


def _above(name: str, what: str, value: float, limit: float) -> Iterator[tuple[str, RefusalError]]:
    if not value <= limit:
        rounded = round(value, 3)
        yield name, _refusal(what, f"at most {limit}", rounded if rounded > limit else value)


def _below(name: str, what: str, value: float, limit: float) -> Iterator[tuple[str, RefusalError]]:
    if not value >= limit:
        yield name, _refusal(what, f"at least {limit}", value)


def _refusal(what: str, expected: str, got: object, do: str | None = None) -> RefusalError:
    return RefusalError(Reason.OVER_LIMIT, what, expected=expected, got=got, do=do)
