"""Holm's correction of the verdicts of a paper: p-values from intervals, and which verdicts stand."""

import math

import numpy as np
import pytest
from scipy import stats

from simulations.laboratory.results.claims import (
    DOES_NOT_SHOW,
    HIGHER,
    HOLDS,
    LOWER,
    NOT_RUN,
    REFUTED,
    WITHIN,
    WITHOUT_PRIVACY,
    Claim,
)
from simulations.laboratory.results.correction import p_value, standing_verdicts
from simulations.laboratory.results.findings import Difference, Finding


def difference(values, epsilon=4.0):
    mean = float(np.mean(values))
    half = float(stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)) if len(values) > 1 else None
    interval = None if half is None else (mean - half, mean + half)
    return Difference(epsilon=epsilon, mean=mean, interval=interval, pairs=len(values))


COMPUTED = Difference(epsilon=None, mean=1.0, interval=(1.0, 1.0), pairs=0)


def finding(*differences, name="a", verdict=HOLDS, expects=HIGHER, margin=0.0, failures=()):
    claim = Claim(
        name=name,
        paper="",
        claim="",
        where="",
        published="",
        rows={"a": (), "b": ()},
        compare=("a", "b"),
        expects=expects,
        margin=margin,
    )
    return Finding(claim=claim, data=(), figures=(), differences=differences, verdict=verdict, failures=failures)


@pytest.mark.parametrize("expects", [HIGHER, LOWER])
def test_the_p_value_is_that_of_students_t_test(expects):
    values = [0.02, 0.05, 0.03, 0.06, 0.01]
    assert p_value(finding(difference(values), expects=expects)) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_within_a_margin_both_sides_are_rejected():
    values = [0.004, -0.002, 0.003, 0.001, -0.004]
    sides = (
        stats.ttest_1samp(values, -0.01, alternative="greater"),
        stats.ttest_1samp(values, 0.01, alternative="less"),
    )
    within = finding(difference(values), expects=WITHIN, margin=0.01)
    assert p_value(within) == pytest.approx(2 * max(side.pvalue for side in sides))
    outside = [0.1, 0.11, 0.09, 0.1, 0.105]
    refuted = finding(difference(outside), verdict=REFUTED, expects=WITHIN, margin=0.01)
    assert p_value(refuted) == pytest.approx(2 * stats.ttest_1samp(outside, 0.01, alternative="greater").pvalue)


def test_a_claim_that_holds_is_decided_at_the_largest_private_epsilon_and_others_by_the_smallest_of_all():
    surer, weaker = [0.05, 0.06, 0.05, 0.06], [0.0, 0.06, -0.02, 0.03]
    at = [difference(weaker, 1.0), difference(surer, 4.0), difference(weaker, math.inf)]
    p = stats.ttest_1samp(surer, 0).pvalue
    assert p_value(finding(*at)) == pytest.approx(p)
    assert p_value(finding(*at, verdict=DOES_NOT_SHOW)) == pytest.approx(2 * p)
    assert p_value(finding(difference(surer, math.inf))) == pytest.approx(p)
    assert p_value(finding(difference([0.1]))) is None
    assert p_value(finding(COMPUTED)) is None
    without = finding(difference(weaker, 4.0), difference(surer, math.inf), verdict=WITHOUT_PRIVACY)
    assert p_value(without) == pytest.approx(2 * p)
    assert standing_verdicts([without]) == {"a": True}


@pytest.mark.parametrize("value", [0.1, 0.0])
@pytest.mark.parametrize("verdict", [HOLDS, WITHOUT_PRIVACY, REFUTED, DOES_NOT_SHOW])
def test_pairs_that_all_differ_by_the_same_are_no_test(value, verdict):
    identity = difference([value, value, value], math.inf)
    assert p_value(finding(identity, verdict=verdict, expects=WITHIN, margin=0.2)) is None
    assert standing_verdicts([finding(identity, verdict=verdict)]) == {}
    surer = difference([0.05, 0.06, 0.05, 0.06])
    assert p_value(finding(surer, difference([value] * 3, 8.0), verdict=DOES_NOT_SHOW)) == pytest.approx(
        2 * stats.ttest_1samp([0.05, 0.06, 0.05, 0.06], 0).pvalue
    )


def test_a_claim_with_a_failed_run_shows_nothing_and_one_without_all_its_runs_does_not_count():
    sure = difference([0.1, 0.1001])
    assert p_value(finding(sure, failures=("broken",))) == 1.0
    assert p_value(finding(sure, verdict=NOT_RUN)) is None


def test_a_verdict_stands_by_holms_procedure_among_all_claims_of_the_paper():
    def of(p, name, verdict=HOLDS):
        t = stats.t.isf(p / 2, 1)  # two values whose test has this p-value
        return finding(difference([t - 1, t + 1]), name=name, verdict=verdict)

    paper = [of(0.012, "a"), of(0.02, "b", REFUTED), of(0.03, "c"), of(0.9, "d", DOES_NOT_SHOW)]
    assert standing_verdicts(paper) == {"a": True, "b": False, "c": False}  # .05/4 = .0125, and then .05/3 = .0167
    assert standing_verdicts(paper[:3]) == {"a": True, "b": True, "c": True}  # .05/3, .05/2, .05
    assert standing_verdicts([finding(COMPUTED)]) == {}


def test_no_true_difference_stands_in_more_than_a_twentieth_of_papers():
    rng = np.random.default_rng(7)
    stands = 0
    for _ in range(50):
        paper = [finding(difference(rng.normal(size=5)), name=str(number)) for number in range(20)]
        stands += any(standing_verdicts(paper).values())
    assert stands < 10  # 2.5 expected, false alarm below 2e-4
