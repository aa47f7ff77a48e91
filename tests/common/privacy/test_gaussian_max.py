"""What one noised choice among fixed candidates costs: the formula, against other ways to the same number."""

import itertools
import math

import numpy as np
import pytest

from common.errors import ConfigError
from common.privacy import gaussian_max
from common.privacy.gaussian import gaussian_epsilon

DELTA = 1 / (8948 * math.log(8948))
"""RPSG, appendix B.3."""


@pytest.mark.parametrize(
    ("claimed", "sigma", "proved", "by_norm"),
    [(4.0, 1.20, 1.955, 9.08), (2.0, 2.40, 0.971, 3.99), (1.0, 4.80, 0.485, 1.82)],
)
def test_the_papers_claim_for_the_choice_its_argument_and_what_is_proved(claimed, sigma, proved, by_norm):
    scale = gaussian_max.claimed_sigma(claimed, DELTA)
    assert scale == pytest.approx(sigma, abs=0.005)
    assert gaussian_max.claimed_epsilon(scale, DELTA) == pytest.approx(claimed)
    assert gaussian_max.epsilon(scale, 5) == pytest.approx(proved, abs=0.001)
    # All five utilities move: as a Gaussian mechanism it costs more than twice what is claimed.
    assert gaussian_epsilon(DELTA, math.sqrt(5) / scale) == pytest.approx(by_norm, abs=0.01)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0, 100.0])
def test_between_two_candidates_it_is_a_normal_distribution_function(sigma):
    # P(Z_1 + 1 > Z_2) = Phi(1 / (sqrt(2) sigma)).
    tail = math.erfc(1 / (2 * sigma)) / 2
    assert gaussian_max.epsilon(sigma, 2) == pytest.approx(math.log((1 - tail) / tail), rel=1e-5)


@pytest.mark.parametrize("candidates", [2, 3])
def test_no_pair_of_utilities_tells_more_by_brute_force(candidates):
    # Noise on a coarse grid, all of its draws; utilities 0, 1/2 and 1. The worst pair is the one of the proof.
    steps, sigma = 8, 1.5
    noise = np.arange(-6 * steps, 6 * steps + 1)
    weights = np.exp(-((noise / steps) ** 2) / (2 * sigma**2))
    below = np.cumsum(weights)

    def wins(utilities):
        """Probability of each candidate but for ties, which the grid makes and which count for nobody."""
        chances = []
        for c in range(candidates):
            chance = weights.copy()
            for b in set(range(candidates)) - {c}:
                at = noise + utilities[c] - utilities[b] - 1 - noise[0]
                chance *= np.where(at < 0, 0.0, below[np.clip(at, 0, len(below) - 1)])
            chances.append(chance.sum())
        return np.array(chances)

    every = [wins(u) for u in itertools.product((0, steps // 2, steps), repeat=candidates)]
    worst = max(float(np.log(one / other).max()) for one, other in itertools.product(every, every))
    one = (steps,) + (0,) * (candidates - 1)
    other = (0,) + (steps,) * (candidates - 1)
    assert worst == pytest.approx(math.log(wins(one)[0] / wins(other)[0]))
    assert worst == pytest.approx(gaussian_max.epsilon(sigma, candidates), rel=0.05)


def test_it_grows_with_candidates_and_falls_with_noise():
    by_candidates = [gaussian_max.epsilon(1.0, count) for count in (2, 3, 5, 50, 256)]
    by_noise = [gaussian_max.epsilon(sigma, 5) for sigma in (100.0, 10.0, 1.0, 0.1, 0.01)]
    assert by_candidates == sorted(by_candidates)
    assert by_noise == sorted(by_noise)
    assert math.isfinite(by_noise[-1])


def test_no_noise_costs_infinity_and_nonsense_is_refused():
    assert gaussian_max.epsilon(0.0, 5) == gaussian_max.claimed_epsilon(0.0, DELTA) == math.inf
    with pytest.raises(ConfigError):
        gaussian_max.epsilon(1.0, 1)
    with pytest.raises(ConfigError):
        gaussian_max.epsilon(-1.0, 2)


def test_the_highest_noised_utility_is_chosen():
    utilities = np.array([0, 2**20, 5])
    assert gaussian_max.choose_noisy_max(utilities, 0.0, bytes(32)) == 1
    assert gaussian_max.choose_noisy_max(np.array([7, 7]), 0.0, bytes(32)) == 0
    picks = [gaussian_max.choose_noisy_max(utilities, 2.0**20, bytes([n, 1]) + bytes(30)) for n in range(200)]
    assert picks == [gaussian_max.choose_noisy_max(utilities, 2.0**20, bytes([n, 1]) + bytes(30)) for n in range(200)]
    # P(Z + 1 > both others) = 0.634 for sigma = 1; five standard deviations of 200 draws are 0.17.
    assert picks.count(1) / 200 == pytest.approx(0.634, abs=0.17)
    assert len(set(picks)) == 3
