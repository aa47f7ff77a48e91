"""A plan solved backwards: the least epsilon, or number of records, with which every answer reaches a signal.

The noise of a calibrated plan depends on epsilon alone, and falls as it grows; the signal depends on the records alone.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache

from scipy.optimize import brentq

from common.errors import PlanError
from common.plan.plan import Plan
from server.planning.signal import records_for, signals, weakest

SMALLEST, LARGEST = 0.01, 20.0
"""The range that is searched. Above 20 the guarantee means nothing: e^20 is half a billion."""

_DIGITS = 3


def least_epsilon(ratio: Callable[[float], float], target: float) -> float:
    """The least epsilon, with three digits, at which the weakest answer has `target` times its noise.

    Args:
        ratio: Signal to noise of the weakest answer at an epsilon, about in proportion to it.
        target: Above 0.

    Raises:
        PlanError: It takes more than `LARGEST`.
    """
    # On log scales it is nearly a line, so that few plans are calibrated.
    over = cache(lambda log_epsilon: math.log(ratio(math.exp(log_epsilon)) / target))
    smallest, largest = math.log(SMALLEST), math.log(LARGEST)
    low = high = 0.0
    while over(high) < 0:
        if high == largest:
            raise PlanError(
                "signal",
                expected=f"{target:g} times the noise at an epsilon of at most {LARGEST:g}",
                got=f"{target * math.exp(over(high)):.2g}",
                do="Expect more records, or plan fewer candidates, labels or answers",
            )
        low, high = high, min(high - over(high) + 0.1, largest)
    while over(low) >= 0:
        if low == smallest:
            return SMALLEST
        low, high = max(low - over(low) - 0.1, smallest), low
    epsilon = _rounded_up(math.exp(brentq(over, low, high, xtol=1e-4)))
    while over(math.log(epsilon)) < 0:
        epsilon = _rounded_up(epsilon * (1 + 10.0 ** (1 - _DIGITS)))
    return epsilon


def least_records(plan: Plan, compared: Mapping[str, int], target: float) -> int:
    """The least number of records with which the weakest answer of a plan has `target` times its noise.

    Args:
        plan: With its noise.
        compared: By query, number of candidates and the like.
        target: Above 0.

    Raises:
        PlanError: No number of records is enough, or no query's signal can be estimated.
    """
    needed = {
        planned.name: records_for(target, plan, planned, compared.get(planned.name, 0))
        for planned, estimate in zip(plan.queries, signals(plan, compared, 1), strict=True)
        if estimate.expected
    }
    least = max((records for records in needed.values() if records), default=1)
    found = weakest(signals(plan, compared, least))
    if found is None or found.ratio < target:
        raise PlanError(
            "signal",
            expected=f"{target:g} times the noise with some number of records",
            got="no query whose signal can be estimated" if found is None else f"{found.ratio:.2g} of {found.query}",
            do=None if found is None else "Choose a larger epsilon",
        )
    return least


def _rounded_up(epsilon: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(epsilon)) + 1 - _DIGITS)
    return float(f"{math.ceil(epsilon / unit - 1e-9) * unit:.{_DIGITS}g}")
