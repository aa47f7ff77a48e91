"""Whether this hospital's limits allow a plan, and the largest epsilon that they would allow.

That figure is computed from figures that never leave the hospital. The search multiplies all noise in the plan by one
factor and checks the result against the limits, with the same code that refuses plans. If a coordinator then makes a
plan with the same queries for the epsilon found, that plan has at least as much noise.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from client.admission import check_parties
from client.approval.amounts import counts_separately
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from client.session import RefusalError
from client.writers.base import check_kinds
from common.errors import ConfigError, PlanError
from common.messages import Reason
from common.plan.plan import Plan
from common.privacy.accountant import ReleasedAnswers, epsilon

MOST_NOISE = 2.0**10
"""Largest factor that is tried for the noise; a plan that does not fit even then exceeds some other limit."""
SECONDS = 3.0
"""Seconds after which the search is given up, so that one figure does not keep a person from seeing the plan."""
_HALVINGS = 11
"""Number of times that the interval of the factor is halved; its ends then differ by less than 0.4%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFit:
    """Whether this hospital would answer a plan that a person approves.

    Attributes:
        beyond: Why it would not; empty if it would.
        advised: Whether `beyond` says what plan to ask for, so that nothing need be said of `epsilon` where it is 0.
        epsilon: The largest epsilon with which the limits would allow the same plan; 0 if they allow none; None if the
            plan is within the limits, or if the value was not calculated.
    """

    beyond: str = ""
    advised: bool = False
    epsilon: float | None = None


def fit_plan(
    plan: Plan, settings: HospitalSettings, charged: Sequence[ReleasedAnswers], *, search: bool = False
) -> PlanFit:
    """Return whether this hospital would answer a plan that a person approves, after the charges of all other runs.

    Only with `search`, which takes seconds, is the largest epsilon searched.

    Raises:
        ConfigError: The roster is missing or is not this hospital's.
    """
    limits, roster, declared = settings.party.limits, settings.roster(), settings.declared()
    number = settings.number(roster)
    counted = () if counts_separately(plan, limits) else tuple(charged)  # those that certainly count
    try:
        check_parties(plan, number, roster)
        limits.check(plan, counted, declared=declared)
    except RefusalError as refused:
        fitting: float | None = 0.0
        if refused.reason is Reason.OVER_LIMIT and not refused.do:  # more noise may help
            fitting = None
            with suppress(Exception):  # whatever fails in this figure, a person must be able to refuse the plan
                fitting = largest_epsilon(plan, limits, counted, declared=declared) if search else None
        return PlanFit(beyond=str(refused), advised=bool(refused.do), epsilon=fitting)
    try:
        check_kinds(plan, settings.party.kinds_of_writers)
    except RefusalError as refused:
        return PlanFit(beyond=str(refused), advised=bool(refused.do), epsilon=0.0)
    return PlanFit()


def largest_epsilon(
    plan: Plan,
    limits: Limits,
    charged: tuple[ReleasedAnswers, ...],
    *,
    declared: int,
    clock: Callable[[], float] = time.monotonic,
) -> float | None:
    """Return the maximum epsilon that the limits allow for all the plan's releases combined; 0 if they allow none.

    Return None if the search takes longer than `SECONDS` by this clock; the next call then continues where this one
    stopped. `charged` are the charges of other runs, for the data sets that the limits count.
    """
    ends = clock() + SECONDS
    least, most, fitting = 1.0, MOST_NOISE, 0.0
    middle = most  # so that of a plan that no noise helps no other factor is tried
    for _ in range(_HALVINGS + 1):
        if clock() > ends:
            return None
        epsilon = _epsilon(middle, plan, limits, charged, declared)
        if epsilon == math.inf:
            least = middle
        else:
            most, fitting = middle, epsilon or fitting
        if least == most:
            break
        middle = math.sqrt(least * most)
    return fitting


@lru_cache(maxsize=1000)
def _epsilon(factor: float, plan: Plan, limits: Limits, charged: tuple[ReleasedAnswers, ...], declared: int) -> float:
    """Return the epsilon of the plan with its noise multiplied by this factor.

    The epsilon is infinite if the limits refuse that plan, and 0 if no plan can have so much noise, for instance
    because its sums no longer fit the ring.
    """
    queries = tuple(replace(query, scale=query.scale * factor) for query in plan.queries)
    try:
        noisier = replace(plan, queries=queries, epsilon=math.inf)
        noisier = replace(noisier, epsilon=epsilon(noisier.releases(), plan.delta))
        limits.check(noisier, charged, declared=declared)
    except (ConfigError, PlanError):
        return 0.0
    except RefusalError:
        return math.inf
    return noisier.epsilon
