"""95 % intervals for a figure over test rows or training seeds, for proportions and for an area under the ROC curve."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from common.errors import DataError

LEVEL = 0.95
_NORMAL = 1.96
Interval = tuple[float, float]


def over_rows(figure: Callable[[NDArray[np.intp]], float], rows: int, *, draws: int = 500, seed: int = 0) -> Interval:
    """Return the percentile bootstrap interval (Efron 1979) of `figure`, over rows drawn with replacement.

    Args:
        figure: Function that computes the figure from row indices, (rows,).
        rows: Number of rows, at least 1.
        draws: Number of resamples.
        seed: Experiment seed.
    """
    generator = np.random.default_rng(seed)
    resampled = [figure(generator.integers(rows, size=rows)) for _ in range(draws)]
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def over_seeds(figures: Sequence[float]) -> Interval | None:
    """Return Student's t interval of the mean over independent trainings; None for fewer than two trainings."""
    if len(figures) < 2:
        return None
    half = stats.t.ppf((1 + LEVEL) / 2, len(figures) - 1) * np.std(figures, ddof=1) / math.sqrt(len(figures))
    return float(np.mean(figures) - half), float(np.mean(figures) + half)


def of_normal(value: float, deviation: float) -> Interval:
    """Return the interval of a figure whose error is normally distributed with this standard deviation."""
    return value - _NORMAL * deviation, value + _NORMAL * deviation


def of_share(hits: int, rows: int, *, level: float = LEVEL) -> Interval:
    """Return the exact interval of the proportion of `hits` among `rows` (Clopper and Pearson 1934)."""
    between = stats.binomtest(hits, rows).proportion_ci(level)
    return float(between.low), float(between.high)


def of_paired_shares(
    before: NDArray[np.bool_] | NDArray[np.float64], after: NDArray[np.bool_] | NDArray[np.float64]
) -> Interval:
    """Return the interval of the mean of `after` minus that of `before`, for the same rows (Bonett and Price 2012).

    One row is added for each direction of change, so that the interval has a positive width even if no row changes.

    Args:
        before: (rows,), in [0, 1], for at least one row: whether a row is a hit, or the fraction of trainings in which
            it is a hit.
        after: (rows,), as in `before`.
    """
    changes = np.concatenate([after.astype(np.float64) - before.astype(np.float64), [1.0, -1.0]])
    half = stats.norm.ppf((1 + LEVEL) / 2) * changes.std() / math.sqrt(len(changes))
    return max(-1.0, float(changes.mean() - half)), min(1.0, float(changes.mean() + half))


def area_under_curve(members: NDArray[np.floating], others: NDArray[np.floating]) -> tuple[float, Interval]:
    """Return the probability that a member outscores a non-member, with DeLong et al.'s (1988) interval.

    Ties count half. The variance is computed from the placements of both samples: a member's placement is the fraction
    of non-members below it, and a non-member's is the fraction of members above it. With midranks (Sun and Xu 2014) no
    pairs are compared. If the placements do not vary, for an area of 0 or 1, the variance and the width of the interval
    are 0.

    Args:
        members: (m,) scores, m at least 2.
        others: (n,) scores, n at least 2.

    Raises:
        DataError: There are too few scores, or a score is not finite.
    """
    m, n = len(members), len(others)
    if m < 2 or n < 2:
        raise DataError("area under the curve", expected="at least 2 members and 2 others", got="fewer")
    scores = np.concatenate([members, others])
    if not np.isfinite(scores).all():
        raise DataError("area under the curve", expected="finite scores", got="one that is not")
    ranks = stats.rankdata(scores)
    above = (ranks[:m] - stats.rankdata(members)) / n
    below = 1 - (ranks[m:] - stats.rankdata(others)) / m
    area = float(above.mean())
    half = stats.norm.ppf((1 + LEVEL) / 2) * math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
    return area, (max(0.0, float(area - half)), min(1.0, float(area + half)))
