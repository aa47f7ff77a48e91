"""95% intervals for a figure over test rows, training texts or seeds, for proportions and areas under ROC curves.

A figure may have several sources of error. Their variances are added, and each has degrees of freedom: the number of
values from which it was estimated, minus one. Too few values make an interval from the normal distribution too short.

One source is the choice of training texts: two sets of texts from one source teach more or less by chance. A difference
between them is a difference between the sources only if it exceeds this chance too, beside the choice of the test
texts. For some hundred training texts or fewer it is the larger of the two.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from common.errors import DataError

LEVEL = 0.95
_GROUPS = 500
"""Largest number of groups of rows that are left out in turn."""
_CHOICE_GROUPS = 10
"""Number of groups of training texts, and so of trainings; five give an interval that is much wider."""
_MOST_CHOSEN = 1000
"""Largest number of texts in these trainings: of 10,000 texts of many labels they would take a quarter of an hour. The
variance of a part is larger than that of all, so that the interval is then too wide."""
OVER_CHOICE = (
    "95% interval over the test texts, paired, and over the choice of the training texts (jackknife of ten groups of "
    f"each set, of {_MOST_CHOSEN:,} texts at most, Student's t), as if these were independent draws; another run of "
    "the language models may differ by more"
)
"""Words for intervals with the variances of `choice_variance`."""
OVER_TRAININGS = "trainings (Student's t)"
"""End of a definition's words for intervals by `interval_over_seeds`; all others are over rows."""
Interval = tuple[float, float]
Variance = tuple[float, float]
"""An estimated variance and its degrees of freedom."""


def interval_over_rows(
    figure: Callable[[NDArray[np.intp]], float],
    rows: int,
    *,
    within: Interval = (0.0, 1.0),
    others: Sequence[Variance] = (),
) -> Interval:
    """Return the jackknife interval of `figure` over rows, of which one group is left out at a time.

    For few rows or many classes the percentiles of a bootstrap hold the truth in far fewer than 95% of cases. Here the
    standard error is that of a jackknife (Efron and Stein 1981), which is rather too large, and is counted from the
    figure and from the figure without its estimated bias. As if two more rows spoke for and against, the variance is at
    least 2 / (rows + 2)², so that the interval has a width even if all rows are alike.

    Args:
        figure: Function that computes the figure from row indices.
        rows: Number of rows, at least 1.
        within: Range of the figure.
        others: Variances from other sources, which are added.
    """
    groups = min(rows, _GROUPS)
    group = np.random.default_rng(0).permutation(rows) % groups
    whole = figure(np.arange(rows))
    without = [figure(np.flatnonzero(group != left_out)) for left_out in range(groups)] if rows > 1 else [whole]
    variance = max(jackknife(without)[0], 2 / (rows + 2) ** 2)
    unbiased = groups * whole - (groups - 1) * float(np.mean(without))
    half = half_width([(variance, max(1, groups - 1)), *others])
    return max(within[0], min(whole, unbiased) - half), min(within[1], max(whole, unbiased) + half)


def jackknife(without: Sequence[float]) -> Variance:
    """Return the variance of a figure from its values without each group in turn (Efron and Stein 1981)."""
    return (len(without) - 1) * float(np.var(without)), max(1, len(without) - 1)


def choice_variance(
    labels: Sequence[str],
    tested: Callable[[list[int]], NDArray[np.float64]],
    generator: np.random.Generator,
) -> Variance:
    """Return the variance of a model's mean over test texts due to the choice of its training texts, at least 0.

    The estimate is a jackknife. Training texts are sorted by label and assigned by cycling through the groups, so that
    every label has about the same number of texts in each group. The mean over the test texts also varies because
    training changes single test texts at random. The variance over test texts has this part already, so it is
    subtracted: it is the mean square of the residuals in the table of parts and test texts, which has two ways.

    Args:
        labels: Label of each training text.
        tested: Function that trains the model on the texts with these indices and returns a value for each test text,
            such as 1 for a right answer.
        generator: Determines the order of the texts of each label.

    Raises:
        DataError: There are too few texts, or the model cannot be trained on a part of the texts.
    """
    groups = _CHOICE_GROUPS
    if len(labels) < 2 * groups:
        expected = f"{2 * groups} or more, to see how much their choice matters"
        raise DataError("training texts", expected=expected, got=len(labels))
    order = sorted(generator.permutation(len(labels)).tolist(), key=lambda at: labels[at])
    order = order[:: -(-len(order) // _MOST_CHOSEN)]
    parts = ([at for place, at in enumerate(order) if place % groups != left_out] for left_out in range(groups))
    table = np.array([tested(part) for part in parts], dtype=np.float64)
    means, rows = table.mean(axis=1), table.shape[1]
    residuals = table - means[:, None] - table.mean(axis=0) + means.mean()
    square = float((residuals**2).sum()) / (groups - 1) / max(1, rows - 1)
    variance, freedom = jackknife(means.tolist())
    return max(0.0, variance - (groups - 1) ** 2 / groups * square / rows), freedom


def half_width(variances: Sequence[Variance]) -> float:
    """Return half the width of an interval for a sum of independent errors (Satterthwaite 1946)."""
    total = sum(variance for variance, _ in variances)
    spread = sum(variance**2 / freedom for variance, freedom in variances)
    freedom = total**2 / spread if spread else math.inf
    return _student(freedom) * math.sqrt(total)


def interval_over_seeds(figures: Sequence[float]) -> Interval | None:
    """Return Student's t interval of the mean over independent trainings; None for fewer than two trainings."""
    if len(figures) < 2:
        return None
    half = _student(len(figures) - 1) * np.std(figures, ddof=1) / math.sqrt(len(figures))
    return float(np.mean(figures) - half), float(np.mean(figures) + half)


def laplace_interval(value: float, deviation: float) -> Interval:
    """Return the interval of a figure with Laplace noise of this standard deviation.

    For a sum of several independent Laplace variables the interval is a little too wide.
    """
    half = deviation * math.log(1 / (1 - LEVEL)) / math.sqrt(2)
    return value - half, value + half


def _student(freedom: float) -> float:
    """Return the quantile of Student's t distribution that bounds an interval; normal if `freedom` is infinite."""
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2))


def share_interval(hits: int, rows: int, *, level: float = LEVEL) -> Interval:
    """Return the exact interval of the proportion of `hits` among `rows` (Clopper and Pearson 1934)."""
    beyond = (1 - level) / 2
    low = special.betaincinv(hits, rows - hits + 1, beyond) if hits else 0.0
    high = special.betaincinv(hits + 1, rows - hits, 1 - beyond) if hits < rows else 1.0
    return float(low), float(high)


def paired_shares_interval(
    before: NDArray[np.bool_] | NDArray[np.float64],
    after: NDArray[np.bool_] | NDArray[np.float64],
    others: Sequence[Variance] = (),
) -> Interval:
    """Return the interval of the mean of `after` minus that of `before`, for the same rows (Bonett and Price 2012).

    One row is added for each direction of change, so that the interval has a positive width even if no row changes.

    Args:
        before: (rows,), in [0, 1], for at least one row: whether a row is a hit, or the fraction of trainings in which
            it is a hit.
        after: (rows,), as in `before`.
        others: Variances from sources other than the choice of rows, which are added.
    """
    changes = np.concatenate([after.astype(np.float64) - before.astype(np.float64), [1.0, -1.0]])
    half = half_width([(float(changes.var()) / len(changes), math.inf), *others])
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
    from scipy.stats import rankdata

    m, n = len(members), len(others)
    if m < 2 or n < 2:
        raise DataError("area under the curve", expected="at least 2 members and 2 others", got="fewer")
    scores = np.concatenate([members, others])
    if not np.isfinite(scores).all():
        raise DataError("area under the curve", expected="finite scores", got="one that is not")
    ranks = rankdata(scores)
    above = (ranks[:m] - rankdata(members)) / n
    below = 1 - (ranks[m:] - rankdata(others)) / m
    area = float(above.mean())
    half = _student(math.inf) * math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
    return area, (max(0.0, float(area - half)), min(1.0, float(area + half)))
