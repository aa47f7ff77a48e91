"""Answers to account for, and the subsamples that they were computed from, as tuples that can be counted and sorted."""

from typing import NamedTuple


class PricedAnswer(NamedTuple):
    """One answer and its privacy parameters (see `common.privacy.accountant.Release`)."""

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
