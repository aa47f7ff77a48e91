"""The largest epsilon of a plan that this hospital's limits allow, from figures that never leave the hospital.

All noise of the plan is made larger by one factor, and the limits are asked whether they refuse it: the code that
refuses a plan is the one that says what would fit. What a coordinator plans for that epsilon has at least as much
noise, if its queries are the same.
"""

import math
from dataclasses import replace
from functools import lru_cache

from client.guard import Limits
from client.session import RefusalError
from common.plan.plan import Plan
from common.privacy.accountant import Release, epsilon

MOST_NOISE = 2.0**10
"""Largest factor of the noise that is tried; a plan that does not fit then is refused for something else."""
_HALVINGS = 7
"""Number of times that the interval of the factor is halved, after which its ends differ by less than 0.6 %."""


@lru_cache(maxsize=100)
def largest_epsilon(plan: Plan, limits: Limits, charged: tuple[Release, ...]) -> float | None:
    """Return the largest epsilon, of all that the plan releases, that the limits allow; None if none helps.

    It takes seconds, and is kept for the next time.

    Args:
        plan: The plan, which they refuse.
        limits: The hospital's limits.
        charged: What other runs were charged, of the data sets that the limits count.
    """
    fitting = _fits(most := MOST_NOISE, plan, limits, charged)
    if fitting is None:
        return None
    least, middle = 1.0, 2.0
    while middle < most:  # most plans need little more noise
        found = _fits(middle, plan, limits, charged)
        if found is None:
            least, middle = middle, 2 * middle
        else:
            most, fitting = middle, found
    for _ in range(_HALVINGS):
        middle = math.sqrt(least * most)
        found = _fits(middle, plan, limits, charged)
        if found is None:
            least = middle
        else:
            most, fitting = middle, found
    return fitting


def _fits(factor: float, plan: Plan, limits: Limits, charged: tuple[Release, ...]) -> float | None:
    """Return the epsilon of the plan with this many times its noise; None if the limits refuse it."""
    queries = tuple(replace(query, scale=query.scale * factor) for query in plan.queries)
    noisier = replace(plan, queries=queries, epsilon=math.inf)
    noisier = replace(noisier, epsilon=epsilon(noisier.releases(), plan.delta))
    try:
        limits.check(noisier, charged)
    except RefusalError:
        return None
    return noisier.epsilon
