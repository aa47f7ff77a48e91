"""The largest epsilon of a plan that this hospital's limits allow, computed from figures that never leave the hospital.

The search multiplies all noise in the plan by one factor and checks the result against the limits, with the same code
that refuses plans. If a coordinator then makes a plan with the same queries for the epsilon found, that plan has at
least as much noise.
"""

import math
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache

from client.admission import check_parties
from client.guard import Limits
from client.session import RefusalError
from client.writers.base import check_kinds
from common.domain import PartyId
from common.errors import ConfigError, PlanError
from common.plan.plan import Plan
from common.privacy.accountant import Release, epsilon
from common.secagg.identity import Roster

MOST_NOISE = 2.0**10
"""Largest factor that is tried for the noise; a plan that does not fit even then exceeds some other limit."""
SECONDS = 3.0
"""Seconds after which the search is given up, so that one figure does not keep a person from seeing the plan."""
_HALVINGS = 11
"""Number of times that the interval of the factor is halved; its ends then differ by less than 0.4 %."""


def refusal(
    plan: Plan, limits: Limits, charged: tuple[Release, ...], *, number: PartyId, roster: Roster, declared: int
) -> RefusalError | None:
    """Return why a plan is refused even if it is approved; None if it is not refused.

    Args:
        plan: The plan.
        limits: The hospital's limits.
        charged: Charges of other runs, for the data sets that the limits count.
        number: This hospital's number.
        roster: The identities of all parties.
        declared: Maximum number of records that this hospital declares.
    """
    try:
        check_parties(plan, number, roster)
        limits.check(plan, charged, declared=declared)
    except RefusalError as error:
        return error
    return None


def without_writer(plan: Plan, kinds: Collection[str]) -> RefusalError | None:
    """Return why a plan is refused if it asks for texts that none of the writers of these kinds writes; else None."""
    try:
        check_kinds(plan, kinds)
    except RefusalError as error:
        return error
    return None


def largest_epsilon(
    plan: Plan,
    limits: Limits,
    charged: tuple[Release, ...],
    *,
    declared: int,
    clock: Callable[[], float] = time.monotonic,
) -> float | None:
    """Return the maximum epsilon that the limits allow for all the plan's releases combined; 0 if they allow none.

    Return None if the search takes longer than `SECONDS`; the next call then continues where this one stopped.

    Args:
        plan: The plan, which the limits refuse.
        limits: The hospital's limits.
        charged: Charges of other runs, for the data sets that the limits count.
        declared: Maximum number of records that this hospital declares.
        clock: Function that returns monotonic time in seconds.
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
def _epsilon(factor: float, plan: Plan, limits: Limits, charged: tuple[Release, ...], declared: int) -> float:
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
