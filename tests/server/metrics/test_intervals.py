"""Intervals against closed forms and other libraries, and how often they hold the truth."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from common.errors import DataError
from server.evaluation.figures import difference
from server.metrics.accuracy import macro_f1
from server.metrics.intervals import (
    area_under_curve,
    choice_variance,
    half_width,
    interval_over_rows,
    interval_over_seeds,
    jackknife,
    laplace_interval,
    paired_shares_interval,
    share_interval,
)


def test_area_is_that_of_a_library_and_its_variance_delongs_by_definition():
    rng = np.random.default_rng(0)
    members, others = rng.integers(0, 9, 40) + 1.0, rng.integers(0, 9, 70).astype(float)
    area, (low, high) = area_under_curve(members, others)
    assert area == pytest.approx(roc_auc_score([1] * 40 + [0] * 70, np.r_[members, others]))
    wins = (members[:, None] > others) + (members[:, None] == others) / 2
    variance = wins.mean(axis=1).var(ddof=1) / 40 + wins.mean(axis=0).var(ddof=1) / 70
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(variance))


def test_area_intervals_hold_the_truth_nineteen_times_of_twenty():
    rng = np.random.default_rng(2)
    truth = stats.norm.cdf(0.5 / np.sqrt(2))
    intervals = [area_under_curve(rng.normal(0.5, 1, 60), rng.normal(0, 1, 80))[1] for _ in range(400)]
    assert 0.92 < np.mean([low <= truth <= high for low, high in intervals]) < 0.98


@pytest.mark.parametrize("scores", [np.ones(1), np.array([1, np.nan])])
def test_area_without_two_finite_scores_is_refused(scores):
    with pytest.raises(DataError):
        area_under_curve(scores, np.ones(5))


@pytest.mark.parametrize(("rows", "rel"), [(400, 1e-9), (4000, 0.15)])
def test_interval_of_a_mean_over_rows_is_students(rows, rel):
    values = np.random.default_rng(3).normal(10, 2, rows)
    low, high = interval_over_rows(lambda at: float(values[at].mean()), rows, within=(-math.inf, math.inf))
    # Above 500 rows a group of several rows is left out.
    half = stats.t.ppf(0.975, min(rows, 500) - 1) * values.std(ddof=1) / math.sqrt(rows)
    assert high - low == pytest.approx(2 * half, rel=rel)
    assert low < values.mean() < high


@pytest.mark.parametrize(("labels", "rows"), [(2, 30), (10, 60), (77, 300)])
def test_intervals_of_macro_f1_hold_the_truth_nineteen_times_of_twenty(labels, rows):
    """Fewer than 17 of 20 would do so in 1% of cases, if 95% of intervals do; of a bootstrap at 77 labels, 12 do."""
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


def test_interval_of_rows_that_are_all_alike_has_a_width_and_stays_in_its_range():
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


def test_intervals_of_noise_seeds_and_shares_have_their_exact_quantiles():
    low, high = laplace_interval(3.0, math.sqrt(2))
    assert (stats.laplace.cdf(high - 3), low + high) == pytest.approx((0.975, 6))
    assert interval_over_seeds([0.5]) is None
    assert interval_over_seeds([1.0, 2.0, 3.0]) == pytest.approx(stats.t.interval(0.95, 2, 2.0, 1 / np.sqrt(3)))
    assert share_interval(0, 10) == (0, pytest.approx(1 - 0.025 ** (1 / 10)))
    low, high = share_interval(3, 10)
    assert (stats.binom.sf(2, 10, low), stats.binom.cdf(3, 10, high)) == pytest.approx((0.025, 0.025))


def test_intervals_of_paired_shares_hold_the_difference_nineteen_times_of_twenty():
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        before = rng.random(60) < 0.5
        after = before ^ (rng.random(60) < np.where(before, 0.1, 0.3))
        low, high = paired_shares_interval(before, after)
        covered.append(low <= 0.5 * 0.3 - 0.5 * 0.1 <= high)
    assert 0.92 < np.mean(covered) < 0.99


def test_interval_of_paired_shares_where_no_row_changes_has_a_width_that_other_sources_widen():
    same = np.arange(40) % 2 == 0
    narrow, wide = paired_shares_interval(same, same), paired_shares_interval(same, same, [(0.01, 4)])
    assert -0.15 < narrow[0] < 0 < narrow[1] < 0.15
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert paired_shares_interval(~np.ones(9, dtype=bool), np.ones(9, dtype=bool))[1] == 1


LABELS, WIDTH, ROWS = 4, 6, 300
CENTRES = np.random.default_rng(0).normal(size=(LABELS, WIDTH))


def drawn(rng, count):
    labels = np.arange(count) % LABELS  # in turn, as methods order their texts
    return CENTRES[labels] + 1.5 * rng.normal(size=(count, WIDTH)), labels


def clear(rng, count, test, *, noise=0.0):
    """Whether there is a clear difference by the test texts alone, and with the choice of training texts."""
    (texts, truth), answers, others = test, [], []
    for extra in (noise, 0.0):
        train, labels = drawn(rng, count)
        labels = np.where(rng.random(count) < extra, (labels + 1) % LABELS, labels)

        def hits(at, train=train, labels=labels):
            """Whether the nearest mean of a label is right, a classifier that trains in no time."""
            means = np.array([train[at][labels[at] == label].mean(axis=0) for label in range(LABELS)])
            return (((texts[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == truth).astype(float)

        answers.append(hits(np.arange(count)))
        others.append(choice_variance(labels.astype(str).tolist(), hits, rng))
    ends = (difference(*answers, more).interval for more in ((), others))
    return [low > 0 or high < 0 for low, high in ends]


def test_choice_variance_finds_equally_good_sets_clearly_different_in_one_of_twenty_cases():
    """At 5%, more than 13 of 120 are found in 0.3% of cases; by the test texts alone one in six is."""
    rng = np.random.default_rng(1)
    found = np.sum([clear(rng, 40, drawn(rng, ROWS)) for _ in range(120)], axis=0)
    assert found[1] <= 13 < found[0]


def test_choice_variance_leaves_a_set_with_many_wrong_labels_clearly_worse():
    rng = np.random.default_rng(2)
    assert np.mean([clear(rng, 80, drawn(rng, ROWS), noise=0.6)[1] for _ in range(20)]) > 0.7


def test_choice_variance_leaves_out_one_text_in_ten_of_each_label_alike():
    parts, labels = [], list("abcde" * 8)
    choice_variance(labels, lambda at: parts.append(at) or np.zeros(3), np.random.default_rng(0))
    assert [len(part) for part in parts] == [36] * 10
    assert all(min(Counter(labels[at] for at in part).values()) >= 6 for part in parts)
    assert Counter(at for part in parts for at in part) == dict.fromkeys(range(40), 9)


def test_choice_variance_counts_what_changes_single_test_texts_once():
    """The variance over test texts has it; a change of all of them is due to the training texts."""
    rng = np.random.default_rng(0)
    single = [choice_variance(["a"] * 20, lambda _: rng.normal(size=50), rng)[0] for _ in range(100)]
    assert np.mean(single) < 0.05  # without the subtraction 9 * 0.9 / 50 = 0.16
    level = iter(range(10))
    found = choice_variance(["a"] * 20, lambda _: np.full(5, float(next(level))), rng)
    assert found == pytest.approx((9 * np.var(range(10)), 9))


def test_choice_variance_of_few_texts_is_refused():
    with pytest.raises(DataError):
        choice_variance(["a"] * 19, lambda _: np.zeros(1), np.random.default_rng(0))
