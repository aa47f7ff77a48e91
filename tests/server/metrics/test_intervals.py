import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from common.errors import DataError
from server.metrics.intervals import area_under_curve, of_paired_shares, of_share, over_rows, over_seeds


def test_the_area_is_that_of_a_library_ties_included():
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 9, 40) + 1.0, rng.integers(0, 9, 70).astype(float)
    area, _ = area_under_curve(members, others)
    assert area == pytest.approx(roc_auc_score([1] * 40 + [0] * 70, np.r_[members, others]))


def test_the_variance_is_delongs_by_definition():
    rng = np.random.default_rng(1)
    members, others = rng.normal(0.5, 1, 30), rng.normal(0, 1, 50)
    wins = (members[:, None] > others).astype(float)
    variance = wins.mean(axis=1).var(ddof=1) / 30 + wins.mean(axis=0).var(ddof=1) / 50
    _, (low, high) = area_under_curve(members, others)
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(variance))


def test_nineteen_of_twenty_intervals_hold_the_truth():
    rng = np.random.default_rng(2)
    truth = stats.norm.cdf(0.5 / np.sqrt(2))
    intervals = [area_under_curve(rng.normal(0.5, 1, 60), rng.normal(0, 1, 80))[1] for _ in range(400)]
    assert 0.92 < np.mean([low <= truth <= high for low, high in intervals]) < 0.98


def test_no_area_without_scores():
    with pytest.raises(DataError, match="at least 2"):
        area_under_curve(np.ones(1), np.ones(5))
    with pytest.raises(DataError, match="finite"):
        area_under_curve(np.array([1, np.nan]), np.ones(5))


def test_rows_drawn_again_spread_as_the_mean_does():
    values = np.random.default_rng(3).normal(10, 2, 400)
    low, high = over_rows(lambda at: float(values[at].mean()), 400)
    assert high - low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.15)
    assert low < values.mean() < high


def test_seeds_have_students_interval():
    assert over_seeds([0.5]) is None
    low, high = over_seeds([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, 2.0, 1 / np.sqrt(3)))


def test_a_share_has_its_exact_interval():
    assert of_share(0, 10) == (0, pytest.approx(1 - 0.025 ** (1 / 10)))
    low, high = of_share(3, 10)
    assert stats.binom.sf(2, 10, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 10, high) == pytest.approx(0.025)


def test_nineteen_of_twenty_intervals_of_paired_shares_hold_the_difference():
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        before = rng.random(60) < 0.5
        after = before ^ (rng.random(60) < np.where(before, 0.1, 0.3))
        low, high = of_paired_shares(before, after)
        covered.append(low <= 0.5 * 0.3 - 0.5 * 0.1 <= high)
    assert 0.92 < np.mean(covered) < 0.99


def test_an_interval_of_paired_shares_has_a_width_where_no_row_changes():
    same = np.arange(40) % 2 == 0
    low, high = of_paired_shares(same, same)
    assert -0.15 < low < 0 < high < 0.15
    assert of_paired_shares(~np.ones(9, dtype=bool), np.ones(9, dtype=bool))[1] == 1
