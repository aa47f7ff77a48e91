"""Numbers in place of `auto` in a method's settings, chosen by the signal that a plan is expected to have."""

import math
from collections.abc import Callable

from server.planning.signal import HOPELESS

DIRECTIONS = (16, 32, 64, 128)
UNKNOWN = 32
"""Where no number of records is expected."""
_PER_RATIO = 10.0
"""Measured on banking10 and mts_notes8 with 100, 300 and 1000 records at epsilon 1, 4 and infinite: the nearest-mean
classifier of the estimates is within .007 of that with the best number of directions. A fixed one loses up to .07."""
ROUNDS = (5, 4, 3, 2)


def directions(ratio: float) -> int:
    """k, the number of directions of class sums: ten times the signal to noise, to the nearest in `DIRECTIONS`.

    Args:
        ratio: Signal to noise of a class mean along one direction, which k does not change.
    """
    wanted = math.log2(_PER_RATIO * min(max(ratio, 1e-9), 1e9))
    return min(DIRECTIONS, key=lambda number: abs(math.log2(number) - wanted))


def rounds(ratio: Callable[[int], float]) -> int:
    """The most rounds with which the answers are not noise; the fewest, where they always are.

    Args:
        ratio: Signal to noise of the weakest answer with that number of rounds.
    """
    return next((number for number in ROUNDS if ratio(number) >= HOPELESS), ROUNDS[-1])
