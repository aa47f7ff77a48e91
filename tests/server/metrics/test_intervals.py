import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from common.errors import DataError
from server.metrics.accuracy import macro_f1
from server.metrics.intervals import (
    area_under_curve,
    half_width,
    interval_over_rows,
    interval_over_seeds,
    jackknife,
    laplace_interval,
    paired_shares_interval,
    share_interval,
)


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


@pytest.mark.parametrize(("rows", "rel"), [(400, 1e-9), (4000, 0.15)])
def test_a_mean_over_rows_has_students_interval(rows, rel):
    values = np.random.default_rng(3).normal(10, 2, rows)
    low, high = interval_over_rows(lambda at: float(values[at].mean()), rows, within=(-math.inf, math.inf))
    # Above 500 rows a group of several rows is left out.
    half = stats.t.ppf(0.975, min(rows, 500) - 1) * values.std(ddof=1) / math.sqrt(rows)
    assert high - low == pytest.approx(2 * half, rel=rel)
    assert low < values.mean() < high


@pytest.mark.parametrize(("labels", "rows"), [(2, 30), (10, 60), (77, 300)])
def test_nineteen_of_twenty_intervals_of_macro_f1_hold_the_truth(labels, rows):
    """Fewer than 17 of 20 would do so in 1 % of cases, if 95 % of intervals do; of a bootstrap at 77 labels, 12 do."""
    rng = np.random.default_rng(5)

    def answered(number):
        right = rng.integers(labels, size=number)
        return np.where(rng.random(number) < 0.8, right, rng.integers(labels, size=number)), right

    truth, held = macro_f1(*answered(200_000)), 0
    for _ in range(20):
        given, right = answered(rows)
        low, high = interval_over_rows(lambda at, given=given, right=right: macro_f1(given[at], right[at]), rows)
        held += low <= truth <= high
    assert held >= 17


def test_rows_that_are_all_alike_still_have_a_width_and_an_interval_stays_in_its_range():
    assert interval_over_rows(lambda at: 1.0, 20)[1] == 1
    assert 0.8 < interval_over_rows(lambda at: 1.0, 20)[0] < 0.9
    assert interval_over_rows(lambda at: float(at.size > 0), 1) == (0, 1)
    assert interval_over_rows(lambda at: -1.0, 20, within=(-1.0, 1.0))[0] == -1


def test_variances_of_several_sources_add_up_and_few_degrees_of_freedom_widen():
    assert half_width([(4.0, math.inf)]) == pytest.approx(stats.norm.ppf(0.975) * 2)
    assert half_width([(4.0, 4)]) == pytest.approx(stats.t.ppf(0.975, 4) * 2)
    assert half_width([(2.0, 4), (2.0, 4)]) == pytest.approx(stats.t.ppf(0.975, 8) * 2)
    assert half_width([(0.0, 4)]) == 0
    assert jackknife([1.0, 1.0]) == (0, 1)
    same = np.arange(40) % 2 == 0
    narrow, wide = paired_shares_interval(same, same), paired_shares_interval(same, same, [(0.01, 4)])
    assert wide[0] < narrow[0] < 0 < narrow[1] < wide[1]


def test_laplace_noise_has_its_own_quantile():
    low, high = laplace_interval(3.0, math.sqrt(2))
    assert stats.laplace.cdf(high - 3) == pytest.approx(0.975)
    assert low + high == pytest.approx(6)


def test_seeds_have_students_interval():
    assert interval_over_seeds([0.5]) is None
    low, high = interval_over_seeds([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, 2.0, 1 / np.sqrt(3)))


def test_a_share_has_its_exact_interval():
    assert share_interval(0, 10) == (0, pytest.approx(1 - 0.025 ** (1 / 10)))
    low, high = share_interval(3, 10)
    assert stats.binom.sf(2, 10, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 10, high) == pytest.approx(0.025)


def test_nineteen_of_twenty_intervals_of_paired_shares_hold_the_difference():
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        before = rng.random(60) < 0.5
        after = before ^ (rng.random(60) < np.where(before, 0.1, 0.3))
        low, high = paired_shares_interval(before, after)
        covered.append(low <= 0.5 * 0.3 - 0.5 * 0.1 <= high)
    assert 0.92 < np.mean(covered) < 0.99


def test_an_interval_of_paired_shares_has_a_width_where_no_row_changes():
    same = np.arange(40) % 2 == 0
    low, high = paired_shares_interval(same, same)
    assert -0.15 < low < 0 < high < 0.15
    assert paired_shares_interval(~np.ones(9, dtype=bool), np.ones(9, dtype=bool))[1] == 1
