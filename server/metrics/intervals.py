"""How sure a figure is: 95 % intervals over test rows, over training seeds, and of an area under the curve."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from common.errors import DataError

LEVEL = 0.95
Interval = tuple[float, float]


def over_rows(figure: Callable[[NDArray[np.intp]], float], rows: int, *, draws: int = 500, seed: int = 0) -> Interval:
    """Percentile bootstrap (Efron 1979): `figure` of rows drawn with replacement.

    Args:
        figure: From positions (rows,) to the figure of those rows.
        rows: How many there are, at least 1.
        draws: How often to draw.
        seed: Experiment seed.
    """
    generator = np.random.default_rng(seed)
    found = [figure(generator.integers(rows, size=rows)) for _ in range(draws)]
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def over_seeds(figures: Sequence[float]) -> Interval | None:
    """Student's t interval of the mean over independent trainings; None for fewer than two."""
    if len(figures) < 2:
        return None
    half = stats.t.ppf((1 + LEVEL) / 2, len(figures) - 1) * np.std(figures, ddof=1) / math.sqrt(len(figures))
    return float(np.mean(figures) - half), float(np.mean(figures) + half)


def area_under_curve(members: NDArray[np.floating], others: NDArray[np.floating]) -> tuple[float, Interval]:
    """Probability that a member scores higher than another, ties half, and its interval by DeLong et al. (1988).

    The variance is that of the two samples' placements: for each member the share of others below it, and for each
    other the share of members above it. By midranks (Sun and Xu 2014) it needs no comparison of pairs. Where a sample's
    placements do not vary at all, an area of 0 or 1, the variance is 0 and so is the interval's width.

    Args:
        members: (m,) scores, m at least 2.
        others: (n,) scores, n at least 2.

    Raises:
        DataError: There are fewer, or a score is not finite.
    """
    m, n = len(members), len(others)
    if m < 2 or n < 2:
        raise DataError("area under the curve", expected="at least 2 members and 2 others", got="fewer")
    together = np.concatenate([members, others])
    if not np.isfinite(together).all():
        raise DataError("area under the curve", expected="finite scores", got="one that is not")
    ranks = stats.rankdata(together)
    above = (ranks[:m] - stats.rankdata(members)) / n
    below = 1 - (ranks[m:] - stats.rankdata(others)) / m
    area = float(above.mean())
    half = stats.norm.ppf((1 + LEVEL) / 2) * math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
    return area, (max(0.0, float(area - half)), min(1.0, float(area + half)))
