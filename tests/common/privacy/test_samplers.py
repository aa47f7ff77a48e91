import math

import mpmath
import numpy as np
import pytest

from common.errors import ConfigError, InternalError
from common.privacy import samplers
from common.privacy.samplers import LARGEST_TABLE, discrete_gaussian, table_tv

KEY = bytes(range(32))
KNOWN = {1560.0: [1398, 1973, 1005, -1398, -3025, 583], 25000.0: [29339, 37700, 21334, 41886, 7289, 3071]}


def test_known_answers():
    # Noise must be the same after a restart, so the mapping from key to draws may never change silently.
    assert discrete_gaussian(1560.0, 6, KEY).tolist() == KNOWN[1560.0]
    assert discrete_gaussian(2.5e4, 6, KEY).tolist() == KNOWN[2.5e4]


def test_shorter_requests_are_prefixes_over_chunk_borders(monkeypatch):
    long = discrete_gaussian(20.0, 1000, KEY)
    monkeypatch.setattr(samplers, "_CHUNK", 64)
    np.testing.assert_array_equal(discrete_gaussian(20.0, 300, KEY), long[:300])
    assert long.dtype == np.int64
    assert discrete_gaussian(20.0, 0, KEY).shape == (0,)


def test_another_key_gives_other_draws():
    assert not np.array_equal(discrete_gaussian(1560.0, 8, KEY), discrete_gaussian(1560.0, 8, bytes(32)))


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_is_no_noise_is_refused(sigma):
    with pytest.raises(ConfigError):
        discrete_gaussian(sigma, 1, KEY)


def test_a_short_key_is_refused_and_not_shown():
    with pytest.raises(InternalError, match="31 bytes") as caught:
        discrete_gaussian(2.0, 1, b"secret" + bytes(25))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("sigma", [0.3, 2.0, 7.7, 150.0])
def test_table_against_independent_arithmetic(sigma):
    """Half the sum of all differences, tails included, is the total variation distance: below what is claimed."""
    table = samplers._table(sigma)
    thresholds = [int(high) << 64 | int(low) for high, low in zip(table.high_words, table.low_words, strict=True)]
    probabilities = np.diff([0, *thresholds, 1 << 128])
    with mpmath.workdps(60):
        weight = lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2))  # noqa: E731
        far = math.ceil(30 * sigma) + 2
        total = mpmath.fsum(weight(k) for k in range(-far, far + 1))
        inside = [mpmath.mpf(int(p)) / mpmath.mpf(2) ** 128 for p in probabilities]
        gaps = [abs(p - weight(table.low + i) / total) for i, p in enumerate(inside)]
        outside = mpmath.fsum(weight(k) / total for k in range(-far, far + 1) if abs(k) > -table.low)
        distance = (mpmath.fsum(gaps) + outside) / 2
    assert len(inside) == 1 - 2 * table.low
    assert distance <= table_tv(sigma)


def test_claimed_distance_is_below_8e_31_up_to_the_largest_table():
    assert all(0 < table_tv(sigma) <= 8e-31 for sigma in (0.01, 0.5, 2.0, 1560.0, LARGEST_TABLE))
    assert table_tv(LARGEST_TABLE * 1.001) == 0


def _by_bisection(table, first, second):
    u = int(first) << 64 | int(second)
    pairs = zip(table.high_words, table.low_words, strict=True)
    return table.low + sum(int(high) << 64 | int(low) <= u for high, low in pairs)


@pytest.mark.parametrize("sigma", [0.4, 2.0, 30.0])
def test_look_up_around_every_threshold(sigma):
    """The rare draws that the first word does not settle: one below, on, and one above each threshold."""
    table = samplers._table(sigma)
    around = []
    for high, low in zip(table.high_words, table.low_words, strict=True):
        threshold = int(high) << 64 | int(low)
        around += [threshold - 1, threshold, threshold + 1, int(high) << 64, int(high) << 64 | 2**64 - 1]
    around += [0, 2**128 - 1, 2**127]
    around = [u for u in around if 0 <= u < 2**128]
    first = np.array([u >> 64 for u in around], dtype=np.uint64)
    second = np.array([u & (2**64 - 1) for u in around], dtype=np.uint64)
    expected = [_by_bisection(table, a, b) for a, b in zip(first, second, strict=True)]
    assert samplers._look_up(table, first, second).tolist() == expected
    assert min(expected) == table.low
    assert max(expected) == -table.low


def test_guide_agrees_with_bisection_on_random_words():
    table = samplers._table(3.0)
    first, second = np.random.default_rng(0).integers(0, 2**64, (2, 2000), dtype=np.uint64)
    expected = [_by_bisection(table, a, b) for a, b in zip(first, second, strict=True)]
    assert samplers._look_up(table, first, second).tolist() == expected


def test_uniform_integers_below_a_bound_reach_all_of_it():
    stream = samplers._Stream(KEY)
    assert {stream.below(5) for _ in range(200)} == set(range(5))
    assert stream.below(1) == 0
