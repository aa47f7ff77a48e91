import math

import numpy as np
import pytest

from common.errors import ConfigError, PlanError
from common.privacy import accountant
from common.privacy.accountant import (
    Release,
    calibrate_gaussian,
    continuous_sigma,
    epsilon,
    epsilon_by_norm,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    paper_sigma,
    sum_gap,
)
from common.queries import VotesSpec

SHIFTS = VotesSpec(top=8).shifts
DELTA = 1e-5


def _votes(sigma, **release):
    return Release(**{"shifts": SHIFTS, "sigma": sigma, "times": 4, **release})


@pytest.mark.parametrize(
    ("asked", "paper", "tight", "ratio", "really"),
    [
        (1, 38.76, 12.184, 3.18, 0.283),
        (2, 19.38, 6.512, 2.98, 0.602),
        (4, 9.69, 3.531, 2.74, 1.287),
        (8, 4.85, 1.960, 2.47, 2.788),
    ],
)
def test_calibration_for_four_rounds_of_eight_votes(asked, paper, tight, ratio, really):
    sigma = calibrate_gaussian(SHIFTS, 4, asked, DELTA)
    by_paper = paper_sigma(asked, DELTA, 4)
    assert by_paper == pytest.approx(paper, abs=0.006)
    assert sigma / 128 == pytest.approx(tight, abs=6e-4)
    assert by_paper * 128 / sigma == pytest.approx(ratio, abs=0.006)
    assert epsilon([_votes(by_paper * 128)], DELTA) == pytest.approx(really, abs=6e-4)
    # Never more than asked; and the lattice costs next to nothing against the continuous Gaussian.
    assert asked * (1 - 1e-6) < epsilon([_votes(sigma)], DELTA) <= asked
    assert sigma / continuous_sigma(SHIFTS, 4, asked, DELTA) == pytest.approx(1, abs=2e-6)


def test_exact_epsilon_at_the_reference_scale():
    assert epsilon([_votes(1559.5647)], DELTA) == pytest.approx(1.0000008, abs=5e-8)


@pytest.mark.parametrize(("shift", "sigma", "times"), [(1, 1.5, 1), (3, 2.5, 3), (2, 8.0, 1)])
def test_against_direct_convolution(shift, sigma, times):
    """The definition: delta = sum of (p(x) - e^epsilon q(x)) over outcomes, at the epsilon that is claimed."""
    reach = math.ceil(15 * sigma)
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    weights /= weights.sum()
    # A sum of `times` coordinates is a sufficient statistic: the loss is linear in it.
    total = np.ones(1)
    for _ in range(times):
        total = np.convolve(total, weights)
    sums = np.arange(len(total)) - len(total) // 2
    losses = (2 * shift * sums + times * shift**2) / (2 * sigma**2)

    def true_delta(eps):
        return (total * np.maximum(1 - np.exp(eps - losses), 0)).sum()

    release = Release(shifts=(shift,), sigma=sigma, times=times)
    claimed = epsilon([release], DELTA)
    # An upper bound, and not by much.
    assert true_delta(claimed) <= DELTA * (1 + 1e-9)
    assert true_delta(claimed * 0.999) > DELTA
    assert true_delta(epsilon_by_norm([release], DELTA)) <= DELTA


@pytest.mark.parametrize("sigma", [251.0, 1559.5647])
def test_the_bound_by_norm_lies_just_above_the_exact_value(sigma):
    exact, bound = epsilon([_votes(sigma)], DELTA), epsilon_by_norm([_votes(sigma)], DELTA)
    assert bound == pytest.approx(exact, rel=1e-4)


def test_user_level_is_accounted_by_norm_and_composes_with_the_rest():
    users = Release(shifts=VotesSpec(top=8, max_records=8).shifts, sigma=8 * 1560.0, times=4, records=8)
    assert epsilon([users], DELTA) == epsilon_by_norm([users], DELTA) == pytest.approx(1, abs=1e-3)
    both = epsilon([users, _votes(1560.0)], DELTA)
    assert both == pytest.approx(gaussian_epsilon(DELTA, math.sqrt(2) * gaussian_mu(1, DELTA)), abs=2e-3)


def test_any_directions_of_a_users_records_stay_below_the_bound():
    """Exact epsilon of shifts that are no multiple of one record's: below the bound by norm, small grid or not."""
    for top, sigma in ((1, 3.0), (2, 5.0), (3, 12.0)):
        spec = VotesSpec(top=top, max_records=2)
        bound = epsilon([Release(shifts=spec.shifts, sigma=sigma, records=2)], DELTA)
        one = np.array([2**q for q in range(top)])
        for second in (one, one[::-1], np.roll(one, 1)):
            together = tuple(int(shift) for shift in one + second) * 2
            assert epsilon([Release(shifts=together, sigma=sigma)], DELTA) <= bound
        apart = tuple(int(shift) for shift in (*one, *one)) * 2
        assert epsilon([Release(shifts=apart, sigma=sigma)], DELTA) <= bound


def test_composition_counts_answers_not_objects():
    few = Release(shifts=(1, 2), sigma=20.0, times=4)
    once, twice = (Release(shifts=(1, 2), sigma=20.0, times=times) for times in (1, 2))
    together = epsilon([few], DELTA)
    assert epsilon([once] * 4, DELTA) == epsilon([twice, twice], DELTA) == together
    assert epsilon([few, once], DELTA) > together
    assert epsilon([few, Release(shifts=(1,), sigma=200.0)], DELTA) > together


def test_nothing_released_costs_nothing_and_no_noise_costs_everything():
    for account in (epsilon, epsilon_by_norm):
        assert account([], DELTA) == 0
        assert account([_votes(0.0)], DELTA) == math.inf
        assert account([_votes(1560.0), _votes(0.0)], DELTA) == math.inf


@pytest.mark.parametrize("sigma", [1.4, 5.0, 40.0])
def test_noise_that_hides_nothing_costs_everything(sigma):
    assert epsilon([_votes(sigma)], DELTA) == math.inf
    assert epsilon_by_norm([_votes(sigma)], DELTA) == math.inf


def test_very_large_noise_costs_nothing():
    assert epsilon_by_norm([_votes(1e12)], DELTA) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sigma": -1.0},
        {"sigma": math.nan},
        {"shifts": ()},
        {"shifts": (1, 0)},
        {"times": 0},
        {"shares": 0},
        {"records": 0},
    ],
)
def test_impossible_releases_are_refused(wrong):
    with pytest.raises(ConfigError):
        Release(**{"shifts": (1,), "sigma": 1.0, **wrong})


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_impossible_delta_is_refused(delta):
    with pytest.raises(ConfigError):
        epsilon([_votes(1560.0)], delta)
    with pytest.raises(ConfigError):
        calibrate_gaussian(SHIFTS, 4, 1.0, delta)


@pytest.mark.parametrize("asked", [0.0, -1.0, math.nan])
def test_impossible_epsilon_is_refused(asked):
    with pytest.raises(ConfigError):
        calibrate_gaussian(SHIFTS, 4, asked, DELTA)


def test_infinite_epsilon_means_no_noise():
    assert calibrate_gaussian(SHIFTS, 4, math.inf, DELTA) == 0


def test_what_cannot_be_proved_cannot_be_calibrated():
    with pytest.raises(PlanError, match="delta 1e-20"):
        calibrate_gaussian((1,), 1, 1.0, 1e-20)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
def test_gaussian_formulas_are_inverse(mu, delta):
    eps = gaussian_epsilon(delta, mu)
    if eps > 0:
        assert gaussian_delta(eps, mu) <= delta
        assert gaussian_delta(eps, mu) == pytest.approx(delta, rel=1e-6)
        assert gaussian_mu(eps, delta) == pytest.approx(mu, rel=1e-6)
    else:
        assert gaussian_delta(0.0, mu) <= delta


def test_gap_of_summed_shares():
    assert sum_gap(2.0, 1) == 0
    assert sum_gap(2.0, 10) == pytest.approx(7.16e-17, rel=0.01)
    assert sum_gap(2.0, 1000) < 1e-16
    assert sum_gap(0.37, 100) > 1


def test_shares_are_paid_for():
    ideal = epsilon([_votes(1560.0)], DELTA)
    assert epsilon([_votes(1560.0, shares=10)], DELTA) == pytest.approx(ideal, rel=1e-8)
    rough = Release(shifts=(1, 1), sigma=6.0, shares=36)
    gap = 2 * sum_gap(1.0, 36)
    assert epsilon([rough], DELTA) >= epsilon([Release(shifts=(1, 1), sigma=6.0)], DELTA) + 2 * gap
    assert epsilon([Release(shifts=(1, 1), sigma=3.7, shares=100)], DELTA) == math.inf


def test_failing_samplers_are_paid_for(monkeypatch):
    release = Release(shifts=(1, 2), sigma=7.25, shares=2)
    ideal = epsilon([release], DELTA)
    monkeypatch.setattr(accountant, "gaussian_tv", lambda _: 1e-10)
    accountant._at_delta.cache_clear()
    assert ideal < epsilon([release], DELTA) < ideal * 1.001
    monkeypatch.setattr(accountant, "gaussian_tv", lambda _: 1e-6)
    accountant._at_delta.cache_clear()
    assert epsilon([release], DELTA) == math.inf
    accountant._at_delta.cache_clear()
