import math

import pytest

from common.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, rounded_mu_squared, sum_gap


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


def test_rounding_to_the_grid_costs_little_or_everything():
    assert rounded_mu_squared(43690, 1559.5647) == pytest.approx(43690 / 1559.5647**2, rel=1e-6)
    assert rounded_mu_squared(1, 1.5) == rounded_mu_squared(1, 0.1) == math.inf


def test_gap_of_summed_shares():
    assert sum_gap(2.0, 1) == 0
    assert sum_gap(2.0, 10) == pytest.approx(7.16e-17, rel=0.01)
    assert sum_gap(2.0, 1000) < 1e-16
    assert sum_gap(0.37, 100) > 1


def test_gap_of_very_many_shares_is_bounded_without_counting_them():
    exact = 10 * math.fsum(math.exp(-2 * math.pi**2 * 0.25 * k / (k + 1)) for k in range(1, 5000))
    assert exact < sum_gap(0.5, 5000) < exact * 1.01
    assert sum_gap(0.5, 1000) < sum_gap(0.5, 1001) < sum_gap(0.5, 1002)
    assert sum_gap(3.0, 10**12) < 1e-37
