"""Outputs of the mechanisms against their exact distributions: accept the right one, reject another.

Keys are fixed, so that a test passes always or never; the false-alarm rate, over the choice of keys, is 1e-6 for each
comparison, and below 1e-5 together.
"""

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from common.privacy.mechanisms import length_range, noisy_max
from tests.support.selection import exponential, permute_and_flip

FALSE_ALARM = 1e-6
CAP = 4


def _key(i):
    return hashlib.sha256(i.to_bytes(4, "big")).digest()


def _p_value(observed, probabilities):
    cells = [cell for cell, p in probabilities.items() if p * observed.total() >= 5]
    rest = 1 - sum(probabilities[cell] for cell in cells)
    counts = [observed[cell] for cell in cells]
    expected = [probabilities[cell] * observed.total() for cell in cells]
    if rest * observed.total() >= 5:
        counts, expected = [*counts, observed.total() - sum(counts)], [*expected, rest * observed.total()]
    return stats.chisquare(counts, np.array(expected) * sum(counts) / sum(expected)).pvalue


@pytest.mark.parametrize(
    ("replacement", "right", "wrong"), [(False, permute_and_flip, exponential), (True, exponential, permute_and_flip)]
)
def test_choices_follow_their_own_distribution_and_not_the_other(replacement, right, wrong):
    """Three candidates, whose probabilities differ between the mechanisms by up to 0.07."""
    utilities, scale = [0, 500, 900], 700.5
    drawn = Counter(noisy_max(utilities, scale, _key(i), replacement=replacement) for i in range(20_000))
    assert _p_value(drawn, dict(enumerate(right(utilities, scale)))) > FALSE_ALARM
    assert _p_value(drawn, dict(enumerate(wrong(utilities, scale)))) < FALSE_ALARM
    assert _p_value(drawn, dict(enumerate(right(utilities, scale * 1.2)))) < FALSE_ALARM


def _laplace(scale):
    """Values and probabilities, with less than 1e-12 beyond them."""
    values = np.arange(-math.ceil(30 * scale), math.ceil(30 * scale) + 1)
    weights = np.exp(-np.abs(values) / scale)
    return values, weights / weights.sum()


def _stops(counts, threshold_scale, count_scale):
    """Where AboveThreshold stops, exactly: a sum over the threshold's noise, given which the counts' is independent."""
    thresholds, weights = _laplace(threshold_scale)
    noise, noise_weights = _laplace(count_scale)
    below = np.cumsum(noise_weights)
    going, result = weights.copy(), []
    for count in counts:
        stop = below[np.clip(thresholds - count - noise[0], 0, len(noise) - 1)] * (thresholds - count >= noise[0])
        result.append(float((going * stop).sum()))
        going = going * (1 - stop)
    return [*result, float(going.sum())]


def _ends(lengths, threshold_scale, count_scale):
    """Distributions of the high end and of the low end, by brute force."""
    high = _stops([sum(n > x for n in lengths) for x in range(CAP)], threshold_scale, count_scale)
    low = _stops([sum(n < x for n in lengths) for x in range(CAP, 0, -1)], threshold_scale, count_scale)
    return high, low[::-1]


def _ranges(lengths, threshold_scale, count_scale):
    high, low = _ends(lengths, threshold_scale, count_scale)
    result = Counter()
    for (a, p), (b, q) in itertools.product(enumerate(high), enumerate(low)):
        result[min(a, b), max(a, b)] += p * q
    return result


def test_length_ranges_follow_the_exact_distribution_and_not_that_of_less_noise():
    lengths, scale = [1, 2, 2, 2, 3, 3, 9], 1.3
    drawn = Counter(length_range(lengths, CAP, scale, _key(i)) for i in range(20_000))
    clipped = [min(n, CAP) for n in lengths]
    assert _p_value(drawn, _ranges(clipped, scale, 2 * scale)) > FALSE_ALARM
    assert _p_value(drawn, _ranges(clipped, scale, 1.7 * scale)) < FALSE_ALARM
    assert _p_value(drawn, _ranges(clipped, 1.3 * scale, 2 * scale)) < FALSE_ALARM
    assert _p_value(drawn, _ranges(clipped[:-1], scale, 2 * scale)) < FALSE_ALARM


@pytest.mark.parametrize("scale", [0.8, 2.0])
def test_claimed_epsilon_of_an_end_over_all_small_neighbours(scale):
    """Every data set of up to 4 records, one record added, removed or replaced; without chance, 1e-9 for rounding.

    The claim is 2 / scale; all counts of a run move in one direction, so 1.5 / scale holds too.
    """
    sets = [s for size in range(5) for s in itertools.combinations_with_replacement(range(CAP + 1), size)]
    ends = {records: _ends(records, scale, 2 * scale) for records in sets}
    worst = 0.0
    for records in sets:
        for place in range(len(records)):
            rest = records[:place] + records[place + 1 :]
            for other in [rest, *(tuple(sorted([*rest, n])) for n in range(CAP + 1))]:
                for mine, yours in zip(ends[records], ends[other], strict=True):
                    worst = max(worst, *(abs(math.log(p / q)) for p, q in zip(mine, yours, strict=True)))
    assert 0.9 / scale < worst <= 1.5 / scale + 1e-9
