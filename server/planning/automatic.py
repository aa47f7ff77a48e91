"""Numbers in place of `auto` in a method's settings, chosen by the signal that a plan is expected to have."""

from collections.abc import Callable

from server.planning.signal import HOPELESS

AUTO = "auto"
SETTINGS = ("directions", "rounds")
"""Settings of methods that may be `auto`."""

DIRECTIONS = ((8.0, 32), (2.5, 16), (0.0, 8))
"""Least signal to noise along a direction, and the number of directions that are then worth their noise: 8 at epsilon 1
for 100 records of 10 labels, 16 at epsilon 4 or for 300 records, 32 for both."""
ROUNDS = (5, 4, 3, 2)


def directions(ratio: float) -> int:
    """k, the number of directions of class sums.

    Args:
        ratio: Signal to noise of a class mean along one direction, which k does not change.
    """
    return next(number for least, number in DIRECTIONS if ratio >= least)


def rounds(ratio: Callable[[int], float]) -> int:
    """The most rounds with which the answers are not noise; the fewest, where they always are.

    Args:
        ratio: Signal to noise of the weakest answer with that number of rounds.
    """
    return next((number for number in ROUNDS if ratio(number) >= HOPELESS), ROUNDS[-1])
