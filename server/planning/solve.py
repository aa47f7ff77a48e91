"""A plan solved backwards: the least epsilon, or number of records, at which every answer reaches a given signal.

The noise of a calibrated plan depends only on epsilon, and decreases as epsilon grows; the signal depends only on the
number of records.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping

from common.errors import PlanError
from common.plan.plan import Plan
from server.planning.signal import parts_of, records_for, weakest, with_parts

_LARGEST = 2000
"""Largest epsilon that is searched, in hundredths. Above 20 the guarantee is meaningless: e^20 is half a billion."""
_POSSIBLE = 100
"""An epsilon, in hundredths, below which a plan may need more noise than it can have, and above which less."""


def least_epsilon(ratio: Callable[[float], float], target: float) -> float:
    """Return the smallest epsilon, a multiple of 0.01, at which the weakest signal is `target` times its noise.

    Args:
        ratio: Signal-to-noise ratio of the weakest answer as a function of epsilon; it increases with epsilon.
        target: Signal-to-noise ratio to reach, above 0.

    Raises:
        PlanError: The signal would need an epsilon above 20.
    """

    def enough(hundredths: int) -> bool:
        try:
            return ratio(hundredths / 100) >= target
        except PlanError:
            return hundredths >= _POSSIBLE

    epsilon = bisect_left(range(_LARGEST), True, lo=1, key=enough) / 100
    reached = ratio(epsilon)
    if reached < target:
        raise PlanError(
            "signal",
            expected=f"{target:g} times the noise at an epsilon of at most {_LARGEST / 100:g}",
            got=f"{reached:.2g}",
            do="Expect more records, or plan fewer candidates, labels or answers",
        )
    return epsilon


def least_records(plan: Plan, compared: Mapping[str, int], target: float) -> int:
    """Return the smallest number of records at which the weakest answer's signal is `target` times its noise.

    The parts of a questionnaire count as answers of their own.

    Args:
        plan: The plan with its noise.
        compared: Number of candidates or similar items, keyed by query.
        target: Signal-to-noise ratio to reach, above 0.

    Raises:
        PlanError: No number of records is enough, or no query's signal can be estimated.
    """
    estimated = {signal.query for signal in with_parts(plan, compared, 1) if signal.expected}
    needed = {
        name: records_for(target, plan, planned, compared.get(planned.name, 0), part)
        for planned in plan.queries
        for part in ("", *parts_of(planned))
        if (name := f"{planned.name}, {part}" if part else planned.name) in estimated
    }
    least = max((records for records in needed.values() if records), default=1)
    decisive = weakest(with_parts(plan, compared, least))
    if decisive.ratio < target:
        falls = needed[decisive.query] is not None
        raise PlanError(
            "signal",
            expected=f"{target:g} times the noise with some number of records",
            got=f"less for {decisive.query}, {f'with the {least:,} that others take' if falls else 'with any number'}",
            do=f"Choose {'more buckets' if falls else 'a larger epsilon'}",
        )
    return least
