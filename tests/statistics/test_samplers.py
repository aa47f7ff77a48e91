"""The noise has the right distribution: accept the right one, reject the wrong.

Keys are fixed, so that a test passes always or never; the false-alarm rates are those over the choice of keys. Together
they are below 4e-5.
"""

import math

import numpy as np
import pytest
from scipy import stats

from common.privacy.exact import gaussian, laplace_share
from common.privacy.keystream import Keystream
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from tests.support.lanes import slow

KEY = bytes([7]) * 32
FALSE_ALARM = 1e-6


def _gaussian(sigma, reach):
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return weights / weights.sum()


def _share(scale, shares, reach):
    """One share of a discrete Laplace: a negative binomial minus another."""
    one = stats.nbinom.pmf(np.arange(reach + 1), 1 / shares, -math.expm1(-1 / scale))
    return np.convolve(one, one[::-1])


def _p_value(draws, probabilities):
    """Chi-square goodness of fit; cells hold 50 or more, beyond the last one a side values are pooled."""
    middle = len(probabilities) // 2
    reach = np.flatnonzero(probabilities * len(draws) >= 50).max() - middle
    cells = probabilities[middle - reach : middle + reach + 1].copy()
    cells[0], cells[-1] = probabilities[: middle - reach + 1].sum(), probabilities[middle + reach :].sum()
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(cells))
    return stats.chisquare(observed, cells / cells.sum() * len(draws)).pvalue


@pytest.mark.parametrize("sigma", [0.5, 2.0, 37.3])
def test_gaussian_table_fits_and_a_scale_off_by_2_percent_does_not(sigma):
    """False alarm 1e-6 each; a wrong scale is missed with a probability far below that."""
    draws, reach = discrete_gaussian(sigma, 10**6, KEY), math.ceil(60 * sigma)
    assert _p_value(draws, _gaussian(sigma, reach)) > FALSE_ALARM
    assert _p_value(draws, _gaussian(sigma * 1.02, reach)) < FALSE_ALARM
    assert _p_value(draws, _gaussian(sigma / 1.02, reach)) < FALSE_ALARM


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_exact_gaussian_fits_and_a_scale_off_by_10_percent_does_not(sigma):
    """False alarm 1e-6 each."""
    draws, reach = gaussian(sigma, 20_000, Keystream(KEY)), math.ceil(60 * sigma)
    assert _p_value(draws, _gaussian(sigma, reach)) > FALSE_ALARM
    assert _p_value(draws, _gaussian(sigma * 1.1, reach)) < FALSE_ALARM
    assert _p_value(draws, _gaussian(sigma / 1.1, reach)) < FALSE_ALARM


@pytest.mark.parametrize("shares", [1, 4, 10])
@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_laplace_table_fits_and_a_scale_off_by_5_percent_or_another_share_does_not(scale, shares):
    """False alarm 1e-6 each."""
    draws, reach = discrete_laplace(scale, 10**6, KEY, shares=shares), math.ceil(80 * scale)
    assert _p_value(draws, _share(scale, shares, reach)) > FALSE_ALARM
    assert _p_value(draws, _share(scale * 1.05, shares, reach)) < FALSE_ALARM
    assert _p_value(draws, _share(scale / 1.05, shares, reach)) < FALSE_ALARM
    assert _p_value(draws, _share(scale, shares + 1, reach)) < FALSE_ALARM


@pytest.mark.parametrize(("scale", "shares"), [slow(0.7, 1), (3.0, 4), slow(0.7, 4), slow(3.0, 1)])
def test_exact_laplace_fits_and_a_scale_off_by_5_percent_does_not(scale, shares):
    """False alarm 1e-6 each."""
    count, reach = 100_000, math.ceil(80 * scale)
    draws = laplace_share(scale, count, Keystream(KEY), shares=shares)
    assert _p_value(draws, _share(scale, shares, reach)) > FALSE_ALARM
    assert _p_value(draws, _share(scale * 1.05, shares, reach)) < FALSE_ALARM
    assert _p_value(draws, _share(scale / 1.05, shares, reach)) < FALSE_ALARM


def _two_samples(one, other, borders):
    counts = [np.bincount(np.searchsorted(borders, part), minlength=len(borders) + 1) for part in (one, other)]
    return stats.chi2_contingency(np.array(counts)).pvalue


def test_gaussian_table_against_the_exact_sampler():
    """Two-sample chi-square over cells half a sigma wide or wider at the usual scale; false alarm 1e-6."""
    sigma = 1560.0
    borders = sigma * np.array([-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
    oracle = gaussian(sigma, 20_000, Keystream(bytes(32)))
    table = discrete_gaussian(sigma, 200_000, KEY)
    assert _two_samples(oracle, table, borders) > FALSE_ALARM
    assert _two_samples(oracle, np.rint(table * 1.05).astype(np.int64), borders) < FALSE_ALARM


@pytest.mark.parametrize(("shares", "scale", "count"), [(1, 1560.0, 60_000), slow(5, 8.0, 120_000)])
def test_laplace_table_against_the_exact_sampler(shares, scale, count):
    """Two-sample chi-square over cells of equal probability; false alarm 1e-6 each."""
    oracle = laplace_share(scale, count, Keystream(bytes(32)), shares=shares)
    table = discrete_laplace(scale, 500_000, KEY, shares=shares)
    wrong = discrete_laplace(scale * 1.05, 500_000, KEY, shares=shares)
    borders = np.unique(np.quantile(wrong, np.linspace(0.01, 0.99, 15)))
    assert _two_samples(oracle, table, borders) > FALSE_ALARM
    assert _two_samples(oracle, wrong, borders) < FALSE_ALARM


def test_beyond_the_largest_tables():
    """Kolmogorov-Smirnov against the continuous distributions, 1e-5 of the scale away; false alarm 1e-6 each."""
    draws = discrete_gaussian(5e4, 10_000, KEY)
    assert stats.kstest(draws / 5e4, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(draws / 4e4, "norm").pvalue < FALSE_ALARM
    draws = discrete_laplace(5e4, 10_000, KEY)
    assert stats.kstest(draws / 5e4, "laplace").pvalue > FALSE_ALARM
    assert stats.kstest(draws / 4e4, "laplace").pvalue < FALSE_ALARM


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


@pytest.mark.parametrize("shares", [1, 3, 10])
def test_sum_of_laplace_shares_fits_the_discrete_laplace_and_one_share_less_does_not(shares):
    """False alarm 1e-6 each."""
    keys = [bytes([shares, i]) + bytes(30) for i in range(shares)]
    parts = [discrete_laplace(30.0, 10**6, key, shares=shares) for key in keys]
    whole = _share(30.0, 1, 2400)
    assert _p_value(sum(parts), whole) > FALSE_ALARM
    assert _p_value(sum(parts) - parts[0], whole) < FALSE_ALARM


def test_shares_of_2_grid_units_sum_to_the_ideal_and_shares_of_037_do_not():
    """By convolution, without chance: what the lower limit on a Gaussian share protects from.

    Unit counts, sensitivity 1, epsilon 1, delta 1e-5, 100 shares: the smallest sigma is 3.74, a share 0.37, and the
    true delta is 122 times the nominal one.
    """

    def of_sum(share, shares, reach):
        one, total = _gaussian(share, reach), np.ones(1)
        for _ in range(shares):
            total = np.convolve(total, one)
        middle = len(total) // 2
        return total[middle - reach : middle + reach + 1]

    right, ideal = of_sum(2.0, 10, 70), _gaussian(2.0 * math.sqrt(10), 70)
    likely = ideal > 1e-8
    assert np.abs(np.log(right[likely] / ideal[likely])).max() < 1e-12

    noise = of_sum(3.7405 / 10, 100, 80)
    delta = np.maximum(noise[1:] - math.e * noise[:-1], 0).sum() + noise[0]
    assert delta / 1e-5 == pytest.approx(122, abs=0.5)
