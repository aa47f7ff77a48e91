"""Change of an answer by one unit, as a fraction of the bound in the query's module; above 1, the bound is violated.

Sums are compared by every bound that their specification states (`common/privacy/sensitivity.py`); the fraction refers
to the norm that determines the noise, l2 for Gaussian and l1 for Laplace noise. For a mechanism inside a party, the
proof states other bounds (`length_range.py`, `seed_choice.py`, `texts.py` in `common/queries`). In the following, m is
the largest number of records of one unit, b the scale of the noise, and B the bound on the norm of a record's rounded
gradient:

    sparse vector       every count moves by at most m
    noisy max           at most m choosers are replaced, whose utilities stay in [0, 1]; with `nearest` = n the
                        utilities are 1 for exactly n candidates, and no choice becomes more than e^(1/b) times as
                        likely
    DP-SGD              the sum of each step moves by at most m B in l2
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from common.privacy.mechanisms import UNIT
from common.queries.length_range import LengthRangeSpec
from common.queries.page import Spec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import FineTunedSpec

_ROUNDING = 1e-9
"""Tolerance for quotients of probabilities, which are floating-point numbers."""

Rows = NDArray[np.int64]


class Change(NamedTuple):
    """The change of an answer if the data set changes by one unit.

    Attributes:
        share: Size of the change, as a fraction of the bound for which the noise is calibrated.
        within: Whether all stated bounds hold.
    """

    share: float
    within: bool


def change(planned: PlannedQuery, before: Rows, after: Rows) -> Change:
    """Return the change between two answers before noise (`Replay.before_noise`), from neighbouring data sets."""
    match planned.spec:
        case SeedChoiceSpec() as spec:
            return _of_choices(spec, planned, before, after)
        case LengthRangeSpec() as spec:
            share = np.abs(after - before).max(initial=0) / spec.max_records
        case FineTunedSpec() as spec:
            share = math.sqrt(((after - before) ** 2).sum(axis=1).max() / spec.sensitivity.l2_squared)
        case spec:
            return _of_sum(spec, planned.mechanism, np.abs(after - before)[0])
    return Change(float(share), share <= 1)


def _of_sum(spec: Spec, mechanism: str, moved: Rows) -> Change:
    stated, largest = spec.sensitivity, spec.largest
    assert largest is not None
    l1, l2_squared = int(moved.sum()), int((moved**2).sum())
    touched = sorted(moved[moved > 0].tolist(), reverse=True)
    within = (
        l1 <= stated.l1
        and l2_squared <= stated.l2_squared
        and len(touched) <= stated.touched
        and moved.max(initial=0) <= spec.max_records * largest
        # Sorted, each within its own bound: then so is every monotone function of them.
        and all(got <= most for got, most in zip(touched, reversed(stated.shifts), strict=False))
    )
    return Change(l1 / stated.l1 if mechanism == "laplace" else math.sqrt(l2_squared) / stated.l2, within)


def _of_choices(spec: SeedChoiceSpec, planned: PlannedQuery, before: Rows, after: Rows) -> Change:
    """Return the change of the choices, regardless of the choosers' order, since a party sends its choices sorted."""
    old, new = Counter(map(bytes, before)), Counter(map(bytes, after))
    gone = [np.frombuffer(row, dtype=np.int64) for row in (old - new).elements()]
    come = [np.frombuffer(row, dtype=np.int64) for row in (new - old).elements()]
    rows = [*gone, *come]
    within = len(before) == len(after) == spec.choices and len(gone) == len(come) <= spec.max_records
    within &= all(row.min() >= 0 and row.max() <= UNIT for row in rows)
    within &= all(_has_constant_total(row, spec.nearest) for row in rows)
    pairs = [(one, other) for one in gone for other in come]
    if spec.nearest and planned.scale:
        epsilons = [_epsilon(one, other, planned.scale) for one, other in pairs]
        share = len(gone) * max(epsilons, default=0.0) * planned.scale / spec.sensitivity.l1
    else:
        ranges = [float(np.abs(one - other).max()) / UNIT for one, other in pairs]
        share = len(gone) * max(ranges, default=0.0) / spec.max_records
    return Change(share, within and share <= 1 + _ROUNDING)


def _has_constant_total(row: Rows, nearest: int) -> bool:
    """Return whether `nearest` utilities are 1 and all others 0, or all are equal, as they are without a record."""
    if not nearest or (row == row[0]).all():
        return True
    return int(np.count_nonzero(row == UNIT)) == int(np.count_nonzero(row)) == min(nearest, len(row))


def _epsilon(one: Rows, other: Rows, scale: float) -> float:
    """Return the exact epsilon of a choice by the exponential mechanism: the largest change in a log probability."""
    logs = [row / UNIT / scale - np.logaddexp.reduce(row / UNIT / scale) for row in (one, other)]
    return float(np.abs(logs[0] - logs[1]).max())
