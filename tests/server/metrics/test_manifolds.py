import numpy as np
import pytest
from scipy.spatial.distance import cdist

from common.errors import DataError
from server.metrics.manifolds import overlap


def world(n, seed, shift=0.0):
    return (np.random.default_rng(seed).normal(size=(n, 6)) + shift).astype(np.float32)


def by_definition(a, b, k, k_density):
    """The formulas, pair by pair."""
    own_a, own_b, cross = cdist(a, a), cdist(b, b), cdist(a, b)
    radius = lambda distances, k: np.sort(distances, axis=1)[:, k]  # position 0 is the vector itself
    dense = cross <= radius(own_b, k_density)
    return (
        (cross <= radius(own_b, k)).any(axis=1).mean(),
        (cross <= radius(own_a, k)[:, None]).any(axis=0).mean(),
        dense.sum() / (k_density * len(a)),
        dense.any(axis=0).mean(),
    )


@pytest.mark.parametrize(("rows", "shift"), [((60, 80), 0.0), ((1100, 40), 1.0), ((30, 1050), 0.5)])
def test_it_is_the_definition(rows, shift):
    a, b = world(rows[0], 1, shift), world(rows[1], 2)
    measures = overlap(a, b, k=3, k_density=5)
    expected = by_definition(a, b, 3, 5)
    assert (measures.precision, measures.recall, measures.density, measures.coverage) == pytest.approx(expected)
    assert 0 < measures.precision < 1
    assert measures.f1 == pytest.approx(2 / (1 / measures.precision + 1 / measures.recall))


def test_one_synthetic_vector_amid_the_real_ones_by_hand():
    real = np.array([[0.0], [1.0], [2.0], [3.0]])
    measures = overlap(np.array([[1.4], [9.0], [9.1]]), real, k=1, k_density=2)
    # 1.4 is in the balls of radius 1 around 1 and 2; their second neighbours are as far as the first, but for the ends.
    assert measures.precision == pytest.approx(1 / 3)
    assert measures.density == pytest.approx((4 / 2) / 3)
    assert measures.coverage == 1.0  # the ends' balls of two neighbours reach 2 far
    assert measures.recall == 1.0  # the ball of 1.4 reaches to 9


def test_equal_sets_far_sets_and_duplicates():
    a = world(50, 3)
    same = overlap(a, a[::-1].copy())
    assert (same.precision, same.recall, same.coverage, same.f1) == (1, 1, 1, 1)
    far = overlap(a, a + 100)
    assert (far.precision, far.recall, far.density, far.coverage, far.f1) == (0, 0, 0, 0, 0)
    point = np.repeat(a[:1], 9, axis=0)  # balls of radius 0 hold what lies in their very centre
    assert overlap(point, point).precision == 1
    assert overlap(point + 1, point).precision == 0


@pytest.mark.parametrize(
    ("a", "says"),
    [(world(5, 0), "at least 6 rows"), (np.full((9, 6), np.nan), "finite"), (world(9, 0)[:, :2], "width")],
)
def test_what_has_no_neighbours_is_refused(a, says):
    with pytest.raises(DataError, match=says):
        overlap(a, world(20, 1))
