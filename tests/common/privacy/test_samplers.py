import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import ConfigError, InternalError
from common.privacy import samplers
from common.privacy.exact import laplace_share
from common.privacy.keystream import Keystream
from common.privacy.samplers import (
    LARGEST_LAPLACE_TABLE,
    LARGEST_TABLE,
    discrete_gaussian,
    discrete_laplace,
    gaussian_tv,
    laplace_tv,
)

KEY = bytes(range(32))
KNOWN = {1560.0: [1398, 1973, 1005, -1398, -3025, 583], 25000.0: [29339, 37700, 21334, 41886, 7289, 3071]}
LAPLACE = {
    (1560.0, 1): [-914, 1784, -1577, 2902, 233, -2616],
    (1560.0, 10): [-266, 48, -12, 332, 9, -424],
    (25000.0, 1): [29338, -11894, 37699, -11445, 21334, -35940],
}
BITS = 700


def test_known_answers():
    # An answer that is repeated after a restart must hold the same noise, so key to draws may never change silently.
    assert discrete_gaussian(1560.0, 6, KEY).tolist() == KNOWN[1560.0]
    assert discrete_gaussian(2.5e4, 6, KEY).tolist() == KNOWN[2.5e4]
    assert discrete_laplace(1560.0, 6, KEY).tolist() == LAPLACE[1560.0, 1]
    assert discrete_laplace(1560.0, 6, KEY, shares=10).tolist() == LAPLACE[1560.0, 10]
    assert discrete_laplace(2.5e4, 6, KEY).tolist() == LAPLACE[2.5e4, 1]


@pytest.mark.parametrize(
    "sampler",
    [
        discrete_gaussian,
        discrete_laplace,
        lambda scale, size, key: discrete_laplace(scale, size, key, shares=3),
        lambda scale, size, key: laplace_share(scale, size, Keystream(key), shares=3),
    ],
)
def test_shorter_requests_are_prefixes(sampler):
    long = sampler(20.0, 1000, KEY)
    np.testing.assert_array_equal(sampler(20.0, 300, KEY), long[:300])
    assert long.dtype == np.int64
    assert long.shape == (1000,)
    assert sampler(20.0, 0, KEY).shape == (0,)
    assert not np.array_equal(sampler(20.0, 20, bytes(32)), long[:20])


@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_is_no_noise_is_refused(sampler, scale):
    with pytest.raises(ConfigError):
        sampler(scale, 1, KEY)


def test_no_shares_are_refused():
    with pytest.raises(ConfigError, match="shares"):
        discrete_laplace(2.0, 1, KEY, shares=0)
    with pytest.raises(ConfigError, match="shares"):
        laplace_tv(2.0, 0)


@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_a_short_key_is_refused_and_not_shown(sampler):
    with pytest.raises(InternalError, match="31 bytes") as caught:
        sampler(2.0, 1, b"secret" + bytes(25))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_scales_so_small_that_all_other_weights_vanish(sampler):
    assert sampler(0.004, 50, KEY).tolist() == [0] * 50


def _exp(exponent):
    """exp(-exponent) with 700 fractional bits, by the series of its inverse: nothing in common with the code's way."""
    total = term = 1 << 2 * BITS
    k = 0
    while term:
        k += 1
        term = term * exponent.numerator // (exponent.denominator * k)
        total += term
    return (1 << 3 * BITS) // total


def _distance(table, weights):
    """Total variation distance of a table from what is in proportion to weights: value -> integer."""
    thresholds = [int(high) << 64 | int(low) for high, low in zip(table.high_words, table.low_words, strict=True)]
    probabilities = np.diff([0, *thresholds, 1 << 128])
    values = {table.low + i: int(p) for i, p in enumerate(probabilities)}
    total = sum(weights.values())
    gaps = sum(abs(values.get(k, 0) * total - (weight << 128)) for k, weight in weights.items())
    assert set(values) <= set(weights)
    return float(Fraction(gaps, 2 * total << 128))


@pytest.mark.parametrize("sigma", [0.05, 0.3, 2.0, 7.7, 50.0])
def test_gaussian_table_against_independent_arithmetic(sigma):
    """Half the sum of all differences, tails included, is the total variation distance: below what is claimed."""
    one_step = _exp(1 / (2 * Fraction(sigma) ** 2))
    weights, weight, factor = {0: 1 << BITS}, 1 << BITS, one_step
    for k in range(1, math.ceil(17 * sigma) + 2):
        weight = weight * factor >> BITS
        factor = (factor * one_step >> BITS) * one_step >> BITS
        weights[k] = weights[-k] = weight
    assert 0 < _distance(samplers._gaussian_table(sigma), weights) <= gaussian_tv(sigma)


def _negative_binomial(scale, shares):
    ratio, weight = _exp(1 / Fraction(scale)), 1 << BITS
    weights = {0: weight}
    for k in range(math.ceil(120 * scale) + 2):
        weight = (weight * ratio >> BITS) * (Fraction(1, shares) + k) // (k + 1)
        weights[k + 1] = weight
    return weights


@pytest.mark.parametrize("shares", [1, 3, 100])
@pytest.mark.parametrize("scale", [0.05, 0.3, 2.0, 30.0])
def test_laplace_table_against_independent_arithmetic(scale, shares):
    """Both draws of a share."""
    weights = _negative_binomial(scale, shares)
    distance = _distance(samplers._negative_binomial_table(scale, shares), weights)
    assert 0 < 2 * distance <= laplace_tv(scale, shares)
    assert stats.nbinom.pmf(2, 1 / shares, -math.expm1(-1 / scale)) == pytest.approx(weights[2] / sum(weights.values()))


def test_another_scale_or_number_of_shares_is_far_from_the_table():
    table = samplers._negative_binomial_table(2.0, 3)
    assert _distance(table, _negative_binomial(2.0000001, 3)) > 1e-9
    assert _distance(table, _negative_binomial(2.0, 4)) > 1e-2


def _share(scale, shares):
    """Probabilities of one share, from -reach to reach, as the table has them."""
    table = samplers._negative_binomial_table(scale, shares)
    one = np.diff([0.0, *(table.high_words.astype(float) / 2**64), 1.0])
    return np.convolve(one, one[::-1])


@pytest.mark.parametrize("scale", [0.6, 3.0])
@pytest.mark.parametrize("shares", [1, 2, 5, 10])
def test_shares_sum_to_the_discrete_laplace(scale, shares):
    """By convolution, without chance."""

    def of_sum(count):
        total = np.ones(1)
        for _ in range(count):
            total = np.convolve(total, _share(scale, shares))
        middle = len(total) // 2
        return total[middle - 40 : middle + 41]

    ratio = math.exp(-1 / scale)
    ideal = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-40, 41))
    assert np.abs(of_sum(shares) - ideal).max() < 1e-12
    assert np.abs(of_sum(shares + 1) - ideal).max() > 1e-3


def test_claimed_distances_up_to_the_largest_tables():
    assert all(0 < gaussian_tv(sigma) <= 8e-31 for sigma in (0.01, 0.5, 2.0, 1560.0, LARGEST_TABLE))
    assert gaussian_tv(LARGEST_TABLE * 1.001) == 0
    scales = (0.01, 0.5, 2.0, 1560.0, LARGEST_LAPLACE_TABLE)
    assert all(0 < laplace_tv(scale, shares) <= 2.1e-32 for scale in scales for shares in (1, 10))
    assert laplace_tv(LARGEST_LAPLACE_TABLE * 1.001, 10) == 0


def test_uniform_integers_below_a_bound_reach_all_of_it():
    stream = Keystream(KEY)
    assert {stream.below(5) for _ in range(200)} == set(range(5))
    assert stream.below(1) == 0
