"""Distances between two sets of vectors against closed forms, definitions pair by pair, and other libraries."""

import sys

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from common.errors import ConfigError, DataError
from server.metrics import fidelity
from server.metrics.fidelity import FREEDOM, divergences, fid, fid_error, overlap, sinkhorn, wasserstein
from server.metrics.intervals import half_width


def rng(seed=0):
    return np.random.default_rng(seed)


def world(rows, seed, shift=0.0, width=6):
    return (rng(seed).normal(size=(rows, width)) + shift).astype(np.float32)


def whitened(rows, width, seed=0):
    """Rows with mean exactly 0 and covariance exactly the identity, up to rounding."""
    raw = rng(seed).normal(size=(rows, width))
    raw -= raw.mean(axis=0)
    return np.linalg.qr(raw)[0] * np.sqrt(rows - 1)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (world(40, 0), world(40, 0)[::-1], 0),
        (world(40, 0, width=3), world(40, 0, width=3) + np.array([3, 0, -4]), 25),
        (whitened(50, 4) * [1, 2, 3, 0], whitened(30, 4, seed=1) * [2, 2, 1, 5] + [1, 0, 0, 0], 1 + 1 + 0 + 4 + 25),
        (np.array([[0.0], [2.0]]), np.array([[1.0], [2.0], [6.0]]), 4 + (np.sqrt(2) - np.sqrt(7)) ** 2),
        (np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 0.0], [2.0, 0.0]]), 2 + 2 + 2),
    ],
    ids=["equal", "shifted", "diagonal", "one dimension", "two rows"],
)
def test_fid_of_sets_with_a_closed_form_is_it(a, b, expected):
    assert fid(a, b) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert fid(a, a) >= 0


def test_fid_agrees_with_the_matrix_root_in_more_dimensions_than_rows_too():
    a, b = rng(1).normal(size=(200, 6)) @ rng(2).normal(size=(6, 6)), rng(3).normal(size=(90, 6)) + 0.3
    cov_a, cov_b = np.cov(a.T), np.cov(b.T)
    root = sqrtm(cov_a @ cov_b).real
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(cov_a + cov_b - 2 * root)
    assert (fid(a, b), fid(b, a)) == pytest.approx((expected, expected), rel=1e-9)
    # Added dimensions that are constant change nothing, though both covariances become singular.
    few, turned = a[:5], np.linalg.qr(rng(3).normal(size=(64, 64)))[0][:6]
    assert fid(few @ turned, b @ turned) == pytest.approx(fid(few, b), rel=1e-9)


def test_fid_error_covers_the_spread_over_sets_of_texts_and_shrinks_with_their_number():
    real = rng(9).normal(size=(400, 16))
    errors = {}
    for rows in (40, 400):
        sets = [rng(seed).normal(size=(rows, 16)) + 1 for seed in range(30)]
        spread = np.std([fid(texts, real) for texts in sets], ddof=1)
        errors[rows] = np.sqrt(np.mean([fid_error(texts, real) ** 2 for texts in sets]))
        assert 0.7 * spread < errors[rows] < 1.5 * spread
    assert errors[400] < errors[40] / 2
    assert fid_error(rng().normal(size=(9, 16)), real) is None


def test_fid_intervals_hold_the_mean_distance_of_as_many_texts_nineteen_times_of_twenty():
    """At 95%, fewer than 135 of 150 do in 0.2% of cases; with the normal distribution's quantile only 88% do."""
    real, draws = rng(9).normal(size=(200, 8)), rng(10)
    sets = [draws.normal(size=(50, 8)) + 0.2 for _ in range(150)]
    values = np.array([fid(texts, real) for texts in sets])
    halves = np.array([half_width([(fid_error(texts, real) ** 2, FREEDOM)]) for texts in sets])
    assert (abs(values - values.mean()) < halves).sum() >= 135


@pytest.mark.parametrize(("rows", "shift"), [((60, 80), 0.0), ((1100, 40), 1.0), ((30, 1050), 0.5)])
def test_overlap_is_its_definition_pair_by_pair(rows, shift):
    a, b = world(rows[0], 1, shift), world(rows[1], 2)
    cross, (own_a, own_b) = cdist(a, b), (np.sort(cdist(vectors, vectors), axis=1) for vectors in (a, b))
    dense = cross <= own_b[:, 5]  # position 0 is the vector itself
    expected = {
        "precision": (cross <= own_b[:, 3]).any(axis=1).mean(),
        "recall": (cross <= own_a[:, 3, None]).any(axis=0).mean(),
        "density": dense.sum() / (5 * len(a)),
        "coverage": dense.any(axis=0).mean(),
    }
    expected["f1"] = 2 / (1 / expected["precision"] + 1 / expected["recall"])
    assert overlap(a, b) == pytest.approx(expected)
    assert 0 < expected["precision"] < 1


def test_overlap_of_equal_far_and_repeated_vectors_is_whole_or_nothing():
    a = world(50, 3)
    same, far = overlap(a, a[::-1].copy()), overlap(a, a + 100)
    assert [same[name] for name in ("precision", "recall", "coverage", "f1")] == [1] * 4
    assert set(far.values()) == {0}
    point = np.repeat(a[:1], 9, axis=0)  # balls of radius 0 hold what lies in their very centre
    assert (overlap(point, point)["precision"], overlap(point + 1, point)["precision"]) == (1, 0)


def groups(counts, seed=0):
    """So many vectors in each of four far apart places."""
    places = np.repeat(np.eye(4), counts, axis=0)
    return (places + 0.001 * rng(seed).normal(size=places.shape)).astype(np.float32)


def test_divergences_of_known_histograms_have_a_closed_form(monkeypatch):
    import mauve

    # Four buckets, so that k-means finds the four places whatever it starts from.
    arguments, real = {}, mauve.compute_mauve
    monkeypatch.setattr(
        mauve, "compute_mauve", lambda *a, **k: arguments.update(k) or real(*a, **k | {"num_buckets": 4})
    )
    p, q = np.array([10, 10, 20, 0]), np.array([10, 10, 10, 10])
    found, smooth_p, smooth_q = divergences(groups(p), groups(q, 1)), (p + 0.5) / 42, (q + 0.5) / 42
    assert found["total_variation"] == pytest.approx(0.25)
    assert found["kl"] == pytest.approx((smooth_p * np.log(smooth_p / smooth_q)).sum())
    assert (arguments["kmeans_num_redo"], arguments["kmeans_max_iter"]) == (5, 500)


def test_divergences_of_equal_sets_are_nothing_and_of_far_ones_whole():
    a, far = groups([20, 20, 20, 0]), divergences(groups([40, 0, 0, 0]), groups([0, 40, 0, 0]))
    assert divergences(a, a) == pytest.approx({"mauve": 1, "kl": 0, "total_variation": 0}, abs=1e-6)
    assert (far["mauve"] < 0.05, far["total_variation"]) == (True, 1)


def test_divergences_without_the_package_name_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mauve", None)
    with pytest.raises(ConfigError, match=r"EXTRAS=\[mauve\]"):
        divergences(world(30, 0), world(30, 1))


def test_wasserstein_is_the_closed_form_on_a_line_and_the_best_assignment_of_equally_many():
    a, b = world(40, 0, width=1), world(70, 1, 0.3, width=1)
    assert wasserstein(a, b) == pytest.approx(stats.wasserstein_distance(a[:, 0], b[:, 0]))
    costs = cdist(world(30, 0), world(30, 1, 0.5))
    assert wasserstein(world(30, 0), world(30, 1, 0.5)) == pytest.approx(costs[linear_sum_assignment(costs)].mean())


def test_sinkhorn_is_that_of_a_library_and_the_same_on_logarithms(monkeypatch):
    import ot

    a, b = world(25, 3, width=3) / 3, world(35, 4, 0.5, width=3) / 3
    value = lambda x, y: ot.solve(cdist(x, y, "sqeuclidean") / 2, reg=0.05, max_iter=5000, tol=1e-9).value
    expected = value(a, b) - value(a, a) / 2 - value(b, b) / 2
    assert sinkhorn(a, b) == pytest.approx(expected, rel=1e-3)
    monkeypatch.setattr(fidelity, "_LARGEST_EXPONENT", 0)
    assert sinkhorn(a, b) == pytest.approx(expected, rel=1e-3)
    assert sinkhorn(np.zeros((1, 2)), np.array([[0.6, 0.8]])) == pytest.approx(0.5)


@pytest.mark.parametrize("distance", [wasserstein, sinkhorn])
def test_transport_of_large_sets_is_of_the_same_drawn_rows(monkeypatch, distance):
    monkeypatch.setattr(fidelity, "_MOST_MOVED", 10)
    a = world(200, 5)
    assert distance(a, a) == pytest.approx(0, abs=1e-6)
    assert distance(a, a + 3) > 1


@pytest.mark.parametrize(
    ("measure", "least"), [(fid, 2), (overlap, 6), (divergences, 20), (wasserstein, 1), (sinkhorn, 1)]
)
def test_vectors_that_cannot_be_compared_are_refused(measure, least):
    a, b = world(least, 0), world(30, 1)
    for wrong in (a[1:], b * np.nan, b * np.inf, b[:, :2], b[:, 0]):
        for sets in ((wrong, b), (b, wrong)):
            with pytest.raises(DataError):
                measure(*sets)


def test_divergences_of_vectors_that_are_all_the_same_are_refused():
    with pytest.raises(DataError):
        divergences(np.ones((30, 4)), np.ones((30, 4)))
