import math
from fractions import Fraction

import pytest

from common.privacy.accountant import ReleasedAnswers, epsilon, epsilon_by_norm
from common.privacy.gaussian import gaussian_epsilon, rounded_mu_squared
from common.privacy.norms import amplified_epsilon, quotient_up, unamplified_epsilon
from common.privacy.sensitivity import Sensitivity

ONE = Sensitivity.of((1,), 1)
USERS = Sensitivity(l1=30, l2_squared=900, touched=5)
DELTA = 1e-5


def test_quotients_are_rounded_up():
    for numerator, denominator in ((510, 2040.0), (1, 3.0), (7, 0.1), (10**30, 1.7)):
        quotient = Fraction(quotient_up(numerator, denominator))
        exact = Fraction(numerator) / Fraction(denominator)
        assert exact <= quotient <= exact * (1 + Fraction(1, 2**51))
    assert quotient_up(510, 2040.0) == 0.25
    assert quotient_up(10**200, 1e-200) == math.inf


@pytest.mark.parametrize("rate", [1.0, 0.8, 1e-6])
@pytest.mark.parametrize("eps", [1e-9, 0.3, 5.0, 1000.0])
def test_amplification_and_its_inverse(rate, eps):
    assert unamplified_epsilon(amplified_epsilon(eps, rate), rate) == pytest.approx(eps, rel=1e-6)
    if eps < 700:
        assert amplified_epsilon(eps, rate) == pytest.approx(math.log(1 + rate * (math.exp(eps) - 1)), rel=1e-6)
    assert amplified_epsilon(eps, rate) <= eps


@pytest.mark.parametrize("delta", [1e-5, 1e-20])
def test_pure_answers_cost_their_sum_exactly(delta):
    pure = ReleasedAnswers(mechanism="pure", sensitivity=Sensitivity(l1=4, l2_squared=16, touched=2), scale=3.0)
    laplace = ReleasedAnswers(
        mechanism="laplace", sensitivity=Sensitivity.of((1, 2), 8), scale=64.0, times=2, shares=10
    )
    exact = Fraction(4, 3) + Fraction(3, 4)
    assert 0 <= Fraction(epsilon_by_norm([pure, laplace], delta)) - exact < 1e-15
    assert epsilon_by_norm([laplace], delta) == 0.75
    # Truncated tails must not spoil it.
    assert epsilon([pure, laplace], 1e-20) == epsilon_by_norm([pure, laplace], 1e-20)
    assert epsilon([ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=1e-3)], delta) == 1000


def test_gaussians_are_one_and_pure_answers_are_added():
    few = ReleasedAnswers(mechanism="gaussian", sensitivity=USERS, scale=90.0, times=3)
    other = ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=7.0)
    pure = ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=4.0)
    mu = math.sqrt(3 * rounded_mu_squared(900, 90.0) + rounded_mu_squared(1, 7.0))
    assert epsilon_by_norm([few, other], DELTA) == pytest.approx(gaussian_epsilon(DELTA, mu), rel=1e-7)
    assert epsilon_by_norm([few, other, pure], DELTA) == pytest.approx(0.25 + gaussian_epsilon(DELTA, mu), rel=1e-7)


def test_one_subsample_costs_what_the_classical_amplification_says():
    """ln(1 + q (e^epsilon - 1)) at q delta, one draw for ten rounds."""
    rounds = ReleasedAnswers(mechanism="gaussian", sensitivity=USERS, scale=60.0, times=10, rate=0.3, draw="once")
    mu = math.sqrt(10 * rounded_mu_squared(900, 60.0))
    assert epsilon_by_norm([rounds], DELTA) == pytest.approx(
        amplified_epsilon(gaussian_epsilon(DELTA / 0.3, mu), 0.3), rel=1e-6
    )
    pure = ReleasedAnswers(mechanism="laplace", sensitivity=USERS, scale=30.0, times=2, rate=0.3, draw="once")
    assert epsilon_by_norm([pure], DELTA) == pytest.approx(amplified_epsilon(2.0, 0.3), rel=1e-9)
    together = epsilon_by_norm([rounds, pure], DELTA)
    assert together == pytest.approx(amplified_epsilon(2.0 + gaussian_epsilon(DELTA / 0.3, mu), 0.3), rel=1e-6)


def test_many_subsamples_cost_no_more_than_none():
    def rounds(rate, draw):
        return [
            ReleasedAnswers(mechanism="gaussian", sensitivity=USERS, scale=200.0, rate=rate, draw=draw and f"{draw}{i}")
            for i in range(100)
        ]

    whole = epsilon_by_norm(rounds(1.0, ""), DELTA)
    assert epsilon_by_norm(rounds(0.99, "round"), DELTA) == whole
    assert epsilon_by_norm(rounds(0.001, "round"), DELTA) < whole / 5
