"""What an attacker can make of an answer, against closed forms, the library, and attacks that reach the bounds."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, stats
from scipy.special import expit, logit

from common.privacy import accountant, losses
from common.privacy.accountant import ReleasedAnswers, epsilon, trade_off
from common.privacy.gaussian import gaussian_delta, gaussian_mu
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.privacy.sensitivity import Sensitivity
from common.privacy.trade_off import Bound, TradeOff
from common.rng import secure_bytes

DELTA = 1e-5
PRIORS = (0.5, 0.01, 0.001)


def gaussian(mu, **changes):
    sensitivity = Sensitivity.of((500,), 1)
    return ReleasedAnswers(**{"mechanism": "gaussian", "sensitivity": sensitivity, "scale": 500 / mu} | changes)


def laplace(eps, shift=500, **changes):
    return ReleasedAnswers(mechanism="laplace", sensitivity=Sensitivity.of((shift,), 1), scale=shift / eps, **changes)


def pure(eps, **changes):
    return ReleasedAnswers(mechanism="pure", sensitivity=Sensitivity.of((1,), 1), scale=1 / eps, **changes)


def variation(release):
    """Twice the best even guess, less 1."""
    return 2 * trade_off([release], DELTA).even_guess - 1


def normal_variation(mu):
    return 2 * stats.norm.cdf(mu / 2) - 1


CLOSED = {
    "Gaussian": (gaussian(1.2), normal_variation(1.2)),
    "Gaussian by norm": (
        gaussian(0.8, sensitivity=Sensitivity(l1=10**4, l2_squared=10**8, touched=1), scale=12500.0),
        normal_variation(0.8),
    ),
    "four Gaussians": (gaussian(0.6, times=4), normal_variation(1.2)),
    "Laplace": (laplace(4.0), -math.expm1(-2)),
    "Laplace, exactly": (laplace(2.0, shift=1), math.tanh(1)),
    "Laplace of an odd shift": (
        laplace(3.0, shift=3),
        (1 - math.exp(-1)) * (1 + 2 * math.exp(-1)) / (1 + math.exp(-1)),
    ),
    "randomised response": (pure(1.5), math.tanh(0.75)),
    "subsampled": (gaussian(1.2, rate=0.1, draw="a"), 0.1 * normal_variation(1.2)),
    "subsampled Laplace": (laplace(4.0, rate=0.3, draw="a"), -0.3 * math.expm1(-2)),
}


@pytest.mark.parametrize("name", CLOSED)
def test_an_even_guess_is_that_of_the_closed_form(name):
    release, closed = CLOSED[name]
    assert closed - 1e-6 <= variation(release) <= closed * 1.001 + 1e-6


@pytest.mark.parametrize(("eps", "percent"), [(1.0, 55.33), (4.0, 67.82)])
def test_an_even_guess_against_gaussian_noise_is_far_below_that_of_the_worst_mechanism(eps, percent):
    bound = trade_off([gaussian(gaussian_mu(eps, DELTA))], DELTA)
    assert 100 * bound.even_guess == pytest.approx(percent, abs=0.01)
    assert 100 * trade_off([laplace(4.0)], DELTA).even_guess == pytest.approx(93.23, abs=0.01)
    assert TradeOff.of(eps, DELTA).even_guess == pytest.approx((math.exp(eps) + DELTA) / (1 + math.exp(eps)))


BELOW = {"pessimistic_estimate": False, "use_connect_dots": False}
LIBRARY = {
    "Gaussian": (gaussian(0.7, times=3), pld.from_discrete_gaussian_mechanism(500 / 0.7, 500, **BELOW), 3),
    "Laplace": (laplace(0.5, times=4), pld.from_discrete_laplace_mechanism(0.001, 500, **BELOW), 4),
    "response": (
        pure(0.3, times=9),
        pld.from_randomized_response(2 / (1 + math.exp(0.3)), 2, pessimistic_estimate=False),
        9,
    ),
    "subsampled": (
        gaussian(1.0, scale=500.0, rate=0.2, draw="a"),
        pld.from_discrete_gaussian_mechanism(500.0, 500, sampling_prob=0.2, **BELOW),
        1,
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("eps", [0.0, 0.4, 1.5])
def test_a_delta_is_never_below_the_librarys_lower_estimate(name, eps):
    release, theirs, times = LIBRARY[name]
    known = theirs.self_compose(times).get_delta_for_epsilon(eps)
    assert known <= trade_off([release], DELTA).delta(eps) <= known * 1.01 + 1e-4


def average(mu, prior):
    """E[b(L)] for a Gaussian loss, by quadrature."""
    loss = stats.norm(mu * mu / 2, mu)
    return integrate.quad(lambda at: loss.pdf(at) * expit(at + logit(prior)), -9 * mu, 12 * mu, epsabs=1e-12)[0]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("mu", [0.1, 0.92, 3.0])
def test_beliefs_after_a_gaussian_are_those_of_its_loss(mu, prior):
    bound = trade_off([gaussian(mu)], DELTA)
    assert average(mu, prior) <= bound.average_belief(prior) <= average(mu, prior) * 1.002 + 1e-6
    true = expit(stats.norm(mu * mu / 2, mu).isf(1e-3) + logit(prior))
    assert true <= bound.highest_belief(prior, 1e-3) <= expit(logit(true) + 0.45 * mu + 0.01)


@pytest.mark.parametrize("prior", PRIORS)
def test_beliefs_after_randomised_response_are_those_of_its_two_answers(prior):
    yes, no, truth = expit(1.5 + logit(prior)), expit(-1.5 + logit(prior)), expit(1.5)
    bound = trade_off([pure(1.5)], DELTA)
    assert bound.average_belief(prior) == pytest.approx(truth * yes + (1 - truth) * no, rel=1e-3)
    assert yes <= bound.highest_belief(prior, 1e-3) <= yes * 1.002


def test_nobody_learns_from_nothing_and_everything_without_noise():
    nothing, bare = trade_off([], DELTA), trade_off([gaussian(1.0, scale=0.0)], DELTA)
    assert (nothing.even_guess, nothing.delta(0.0)) == (0.5, 0.0)
    assert nothing.highest_belief(0.01, 1e-3) == pytest.approx(0.01) == nothing.average_belief(0.01)
    assert (bare.even_guess, bare.average_belief(0.01), bare.highest_belief(0.01, 1e-3)) == (1.0, 1.0, 1.0)
    assert TradeOff.of(2000.0, 0.0).even_guess == 1.0


MANY = {
    "too many subsamples": [gaussian(0.3, rate=0.5, draw=f"{i}", scale=2000.0 + i) for i in range(40)],
    "too much of everything": [laplace(0.01, shift=10**4 + i, rate=0.5, draw=f"{i}") for i in range(200)],
    "hardly any loss": [pure(1e-12)],
    "hardly any noise": [gaussian(30.0)],
    "coarse noise": [gaussian(1.0, scale=1.0, shares=9)],
}


@pytest.mark.parametrize("name", MANY)
def test_no_figure_is_worse_than_that_of_epsilon_and_delta(name):
    cost, bound = epsilon(MANY[name], DELTA), trade_off(MANY[name], DELTA)
    pair = TradeOff.of(cost, DELTA)
    assert 0.5 < bound.even_guess <= pair.even_guess <= 1
    for prior in PRIORS:
        assert prior <= bound.average_belief(prior) <= pair.average_belief(prior)
        assert prior <= bound.highest_belief(prior, 1e-3) <= pair.highest_belief(prior, 1e-3)


def test_many_subsamples_are_bounded_by_the_answers_of_all_units():
    answers = MANY["too many subsamples"]
    mu = math.sqrt(sum(500**2 / (release.scale**2) for release in answers))
    assert trade_off(answers, DELTA).even_guess <= 0.5 + normal_variation(mu) / 2 + 1e-4


def test_failing_samplers_and_uneven_sums_are_paid_for(monkeypatch):
    ideal = trade_off([gaussian(1.0)], DELTA)
    composed = losses.composed_losses(accountant._merged([gaussian(1.0)]))
    worse = Bound(composed, gap=0.01, failure=1e-4)
    assert worse.deltas(np.array([0.0]))[0] >= ideal.delta(0.0) * math.exp(0.01) + 2e-4
    assert worse.average_belief(0.01) >= ideal.average_belief(0.01) + 102e-4 - 1e-6


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_delta_grows_as_epsilon_falls_and_meets_the_epsilon_that_the_accountant_states(rate):
    release = gaussian(1.0, scale=500.0, rate=rate, draw="a" if rate < 1 else "")
    bound, cost = trade_off([release], DELTA), epsilon([release], DELTA)
    deltas = [bound.delta(eps) for eps in np.linspace(0, cost, 20)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] == pytest.approx(DELTA, rel=0.01)
    assert rate == 1 or bound.delta(0.5) < rate * gaussian_delta(0.5, 1.0)


SHARES, TRIES = 5, 40_000
ATTACKED = {
    "gaussian": ReleasedAnswers(mechanism="gaussian", sensitivity=Sensitivity.of((37,), 1), scale=40.0, shares=SHARES),
    "laplace": ReleasedAnswers(mechanism="laplace", sensitivity=Sensitivity.of((37,), 1), scale=20.0, shares=SHARES),
    "subsampled": ReleasedAnswers(
        mechanism="gaussian", sensitivity=Sensitivity.of((37,), 1), scale=20.0, shares=SHARES, rate=0.4, draw="once"
    ),
}


def summed_noise(release):
    """The noise of sums of as many parties as the release has shares, each as a party draws it: (TRIES,)."""
    share = release.scale / math.sqrt(SHARES)
    if release.mechanism == "gaussian":
        return sum(discrete_gaussian(share, TRIES, secure_bytes(32)) for _ in range(SHARES))
    return sum(discrete_laplace(release.scale, TRIES, secure_bytes(32), shares=SHARES) for _ in range(SHARES))


@pytest.mark.parametrize("name", ATTACKED)
def test_an_attack_by_the_likelihood_ratio_reaches_the_even_guess_and_does_not_exceed_it(name):
    """Noise is the operating system's. Each of three checks fails for sound code with probability 6e-7 or less."""
    release = ATTACKED[name]
    (shift,) = release.sensitivity.shifts
    rng = np.random.default_rng(5)
    took_part = rng.random(TRIES) < 0.5
    counted = took_part & (rng.random(TRIES) < release.rate)
    answers = shift * counted + summed_noise(release)
    # All three ratios grow with the answer, and are 1 halfway: of a subsample, the ratio is 1 where that of its
    # answers is.
    right = np.mean((answers > shift / 2) == took_part)
    bound = trade_off([release], DELTA).even_guess
    assert abs(right - bound) < 5 * math.sqrt(0.25 / TRIES) < 0.013
