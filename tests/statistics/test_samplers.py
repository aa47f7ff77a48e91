"""The noise has the right distribution: accept the right one, reject the wrong.

Keys are fixed, so that a test passes always or never; the false-alarm rates are those over the choice of keys. Together
they are below 2e-5.
"""

import math

import numpy as np
import pytest
from scipy import stats

from common.privacy.accountant import calibrate_gaussian
from common.privacy.samplers import _Stream, discrete_gaussian, rejection

KEY = bytes([7]) * 32
FALSE_ALARM = 1e-6


def _probabilities(sigma, reach):
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return weights / weights.sum()


def _p_value(draws, sigma):
    """Chi-square goodness of fit; values beyond 3 sigma are pooled into one cell a side, and cells hold 5 or more."""
    reach = math.ceil(3 * sigma)
    probabilities = _probabilities(sigma, 20 * reach)
    middle = 20 * reach
    cells = probabilities[middle - reach : middle + reach + 1].copy()
    cells[0], cells[-1] = probabilities[: middle - reach + 1].sum(), probabilities[middle + reach :].sum()
    expected = cells / cells.sum() * len(draws)
    assert expected.min() >= 5
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(cells))
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("sigma", [0.5, 2.0, 37.3])
def test_table_fits_and_a_scale_off_by_2_percent_does_not(sigma):
    """False alarm 1e-6 each; a wrong scale is missed with a probability far below that."""
    draws = discrete_gaussian(sigma, 10**6, KEY)
    assert _p_value(draws, sigma) > FALSE_ALARM
    assert _p_value(draws, sigma * 1.02) < FALSE_ALARM
    assert _p_value(draws, sigma / 1.02) < FALSE_ALARM


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_rejection_fits_and_a_scale_off_by_10_percent_does_not(sigma):
    """False alarm 1e-6 each."""
    draws = rejection(sigma, 20_000, _Stream(KEY))
    assert _p_value(draws, sigma) > FALSE_ALARM
    assert _p_value(draws, sigma * 1.1) < FALSE_ALARM
    assert _p_value(draws, sigma / 1.1) < FALSE_ALARM


def test_table_against_rejection():
    """Two-sample chi-square over one-sigma-wide cells at the usual scale; false alarm 1e-6."""
    sigma, cells = 1560.0, np.array([-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
    oracle = rejection(sigma, 20_000, _Stream(bytes(32)))
    table = discrete_gaussian(sigma, 200_000, KEY)

    def p_value(draws):
        counts = [np.bincount(np.searchsorted(cells * sigma, part), minlength=12) for part in (oracle, draws)]
        return stats.chi2_contingency(np.array(counts)).pvalue

    assert p_value(table) > FALSE_ALARM
    assert p_value(np.rint(table * 1.05).astype(np.int64)) < FALSE_ALARM


def test_beyond_the_largest_table():
    """Kolmogorov-Smirnov against the continuous Gaussian, 1e-5 of sigma away; false alarm 1e-6."""
    draws = discrete_gaussian(5e4, 10_000, KEY)
    assert stats.kstest(draws / 5e4, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(draws / 4e4, "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("shares", [1, 3, 10])
def test_variance_of_summed_shares_within_5_sigma(shares):
    """1e6 coordinates: standard error sqrt(2 / n) of the variance; false alarm 6e-7 each. A missing share shows."""
    sigma, count = 1559.5647, 10**6
    share = sigma / math.sqrt(shares)
    total = sum(discrete_gaussian(share, count, bytes([shares, i]) + bytes(30)) for i in range(shares))
    limit = 5 * math.sqrt(2 / count)
    assert abs(np.mean(total.astype(float) ** 2) / sigma**2 - 1) < limit
    assert abs(total.mean()) < 5 * sigma / math.sqrt(count)
    one_less = total - discrete_gaussian(share, count, bytes([shares, 0]) + bytes(30))
    assert abs(np.mean(one_less.astype(float) ** 2) / sigma**2 - 1) > limit


def test_shares_of_2_grid_units_sum_to_the_ideal_and_shares_of_037_do_not():
    """By convolution, without chance: what the lower limit on a share protects from.

    Unit counts, sensitivity 1, epsilon 1, delta 1e-5, 100 shares: the smallest sigma is 3.74, a share 0.37, and the
    true delta is 122 times the nominal one.
    """

    def of_sum(share, shares, reach):
        one, total = _probabilities(share, reach), np.ones(1)
        for _ in range(shares):
            total = np.convolve(total, one)
        middle = len(total) // 2
        return total[middle - reach : middle + reach + 1]

    right, ideal = of_sum(2.0, 10, 70), _probabilities(2.0 * math.sqrt(10), 70)
    likely = ideal > 1e-8
    assert np.abs(np.log(right[likely] / ideal[likely])).max() < 1e-12

    noise = of_sum(calibrate_gaussian((1,), 1, 1.0, 1e-5) / 10, 100, 80)
    delta = np.maximum(noise[1:] - math.e * noise[:-1], 0).sum() + noise[0]
    assert delta / 1e-5 == pytest.approx(122, abs=0.5)
