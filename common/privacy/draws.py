"""Answers to account for, and the subsamples that they were computed from, as tuples that can be counted and sorted."""

from collections import Counter
from typing import NamedTuple


class PricedAnswer(NamedTuple):
    """One answer and its privacy parameters (see `common.privacy.accountant.ReleasedAnswers`)."""

    mechanism: str
    scale: float
    shares: int
    l1: int
    l2_squared: int
    touched: int
    shifts: tuple[int, ...]


class Draw(NamedTuple):
    """Answers on one subsample, with the number of each; at rate 1 all units take part."""

    rate: float
    answers: tuple[tuple[PricedAnswer, int], ...]


def draws_of_all_units(draws: tuple[tuple[Draw, int], ...]) -> tuple[tuple[Draw, int], ...]:
    """Return the same answers, of which each draw is given with its count, as if all units took part in all of them."""
    answers: Counter[PricedAnswer] = Counter()
    for draw, repeats in draws:
        for answer, times in draw.answers:
            answers[answer] += repeats * times
    return ((Draw(1.0, tuple(sorted(answers.items()))), 1),)
