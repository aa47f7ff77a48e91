"""Numbers in place of `auto` in a method's settings, chosen from public numbers alone."""

import math
from collections.abc import Callable

from common.privacy.gaussian import gaussian_mu
from server.planning.expected import LEANING
from server.planning.signal import HOPELESS

AUTO = "auto"
SETTINGS = ("directions", "rounds")
"""Settings of methods that may be `auto`."""

ROUNDS = (5, 4, 3, 2)
_DIRECTIONS = ((8.0, 32), (2.5, 16), (0.0, 8))
"""Least signal to noise of a class mean along one direction, and the directions that are then worth their noise: 8 at
epsilon 1 for 100 records of 10 classes, 16 at epsilon 4 or for 300 records, 32 for many more."""


def directions(*, labels: int, records: int | None, epsilon: float, delta: float) -> int:
    """k, the number of directions of class sums that are asked for on the whole of epsilon.

    Args:
        labels: C.
        records: M, the expected number of records; with None it is the smallest.
        epsilon: Of the plan.
        delta: Of the plan.
    """
    mu = gaussian_mu(epsilon, delta) if math.isfinite(epsilon) else math.inf
    ratio = mu * LEANING * records / labels if records else 0.0
    return next(number for least, number in _DIRECTIONS if ratio >= least)


def rounds(ratio: Callable[[int], float]) -> int:
    """The most rounds with which the answers are not noise; where they always are, the most that makes them no worse.

    Args:
        ratio: Signal to noise of the weakest answer with that number of rounds, which does not grow with it.
    """
    enough = min(HOPELESS, ratio(ROUNDS[-1]))
    return next(number for number in ROUNDS if ratio(number) >= enough)
