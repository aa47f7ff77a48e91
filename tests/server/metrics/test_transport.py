import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from common.errors import DataError
from server.metrics import transport
from server.metrics.transport import sinkhorn, wasserstein


def world(n, seed, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, 3)) + shift


def test_wasserstein_is_the_closed_form_on_a_line():
    a, b = world(40, 0)[:, :1], world(70, 1)[:, :1] + 0.3
    assert wasserstein(a, b) == pytest.approx(stats.wasserstein_distance(a[:, 0], b[:, 0]))


def test_wasserstein_is_the_best_assignment_of_equally_many():
    a, b = world(30, 0), world(30, 1, 0.5)
    costs = cdist(a, b)
    assert wasserstein(a, b) == pytest.approx(costs[linear_sum_assignment(costs)].mean())
    assert wasserstein(a, a[::-1]) == pytest.approx(0, abs=1e-12)


def test_sinkhorn_of_two_points_and_of_shifted_sets_has_a_closed_form():
    assert sinkhorn(np.zeros((1, 2)), np.array([[0.6, 0.8]])) == pytest.approx(0.5)
    # A shift moves every cost by |shift|^2 / 2 and terms that the marginals fix.
    a = world(40, 2)
    assert sinkhorn(a, a + np.array([0.3, 0, 0.4]), entropy=0.5) == pytest.approx(0.25 / 2, rel=1e-3)
    assert sinkhorn(a, a) == 0


def test_sinkhorn_is_that_of_a_library_and_the_same_on_logarithms(monkeypatch):
    import ot

    a, b = world(25, 3) / 3, world(35, 4, 0.5) / 3
    value = lambda x, y: ot.solve(cdist(x, y, "sqeuclidean") / 2, reg=0.05, max_iter=5000, tol=1e-9).value
    expected = value(a, b) - value(a, a) / 2 - value(b, b) / 2
    assert sinkhorn(a, b) == pytest.approx(expected, rel=1e-3)
    monkeypatch.setattr(transport, "_LARGEST_EXPONENT", 0)
    assert sinkhorn(a, b) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("distance", [wasserstein, sinkhorn])
def test_large_sets_are_drawn_from_and_wrong_ones_refused(monkeypatch, distance):
    monkeypatch.setattr(transport, "LARGEST", 10)
    a = world(200, 5)
    assert distance(a, a) == pytest.approx(0, abs=1e-9)  # the same rows are drawn of both
    assert distance(a, a + 3) > 1
    with pytest.raises(DataError, match="finite"):
        distance(a, a * np.inf)
    with pytest.raises(DataError, match="at least 1 rows"):
        distance(a, a[:0])
