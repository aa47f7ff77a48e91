import numpy as np
import pytest
from scipy.linalg import sqrtm

from common.errors import DataError
from server.metrics.fidelity import FREEDOM, fid, fid_error
from server.metrics.intervals import half_width


def rng(seed=0):
    return np.random.default_rng(seed)


def whitened(rows, width, seed=0):
    """Rows with mean exactly 0 and covariance exactly the identity, up to rounding."""
    raw = rng(seed).normal(size=(rows, width))
    raw -= raw.mean(axis=0)
    return np.linalg.qr(raw)[0] * np.sqrt(rows - 1)


def test_equal_sets_are_at_distance_zero():
    a = rng().normal(size=(40, 8)).astype(np.float32)
    assert fid(a, a) == pytest.approx(0, abs=1e-10)
    assert fid(a, a[::-1]) == pytest.approx(0, abs=1e-10)
    assert fid(a, a) >= 0


def test_the_error_covers_the_spread_over_sets_of_texts_and_shrinks_with_their_number():
    real = rng(9).normal(size=(400, 16))
    errors = {}
    for rows in (40, 400):
        sets = [rng(seed).normal(size=(rows, 16)) + 1 for seed in range(30)]
        spread = np.std([fid(texts, real) for texts in sets], ddof=1)
        errors[rows] = np.sqrt(np.mean([fid_error(texts, real) ** 2 for texts in sets]))
        assert 0.7 * spread < errors[rows] < 1.5 * spread
    assert errors[400] < errors[40] / 2
    assert fid_error(rng().normal(size=(9, 16)), real) is None


def test_nineteen_of_twenty_intervals_hold_the_mean_distance_of_as_many_texts():
    """At 95 %, fewer than 135 of 150 do in 0.2 % of cases; with the normal distribution's quantile only 88 % do."""
    real, draws = rng(9).normal(size=(200, 8)), rng(10)
    sets = [draws.normal(size=(50, 8)) + 0.2 for _ in range(150)]
    values = np.array([fid(texts, real) for texts in sets])
    halves = np.array([half_width([(fid_error(texts, real) ** 2, FREEDOM)]) for texts in sets])
    assert (abs(values - values.mean()) < halves).sum() >= 135


def test_a_shift_counts_squared():
    a = rng().normal(size=(40, 3))
    assert fid(a, a + np.array([3, 0, -4])) == pytest.approx(25)


def test_diagonal_covariances_have_a_closed_form():
    a = whitened(50, 4) * [1, 2, 3, 0]
    b = whitened(30, 4, seed=1) * [2, 2, 1, 5] + [1, 0, 0, 0]
    assert fid(a, b) == pytest.approx(1 + (1 - 2) ** 2 + 0 + (3 - 1) ** 2 + 5**2)


def test_one_dimension_by_hand():
    a, b = np.array([[0.0], [2.0]]), np.array([[1.0], [2.0], [6.0]])
    assert fid(a, b) == pytest.approx((1 - 3) ** 2 + (np.sqrt(2) - np.sqrt(7)) ** 2)


def test_it_agrees_with_the_matrix_root():
    a, b = rng(1).normal(size=(200, 6)) @ rng(2).normal(size=(6, 6)), rng(3).normal(size=(90, 6)) + 0.3
    cov_a, cov_b = np.cov(a.T), np.cov(b.T)
    root = sqrtm(cov_a @ cov_b).real
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(cov_a + cov_b - 2 * root)
    assert fid(a, b) == pytest.approx(expected, rel=1e-9)
    assert fid(b, a) == pytest.approx(expected, rel=1e-9)


def test_fewer_rows_than_dimensions():
    """Added dimensions that are constant change nothing, though both covariances become singular."""
    a, b = rng(1).normal(size=(12, 5)), rng(2).normal(size=(9, 5))
    turned = np.linalg.qr(rng(3).normal(size=(64, 64)))[0][:5]
    assert fid(a @ turned, b @ turned) == pytest.approx(fid(a, b), rel=1e-9)
    assert fid(a @ turned, a @ turned) == pytest.approx(0, abs=1e-10)


def test_two_rows_are_enough():
    assert fid(np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])) == pytest.approx(2 + 2 + 2)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (np.zeros((1, 3)), np.zeros((4, 3)), "at least 2 rows"),
        (np.zeros((4, 3)), np.zeros((0, 3)), "at least 2 rows"),
        (np.zeros((4, 3)), np.zeros((4, 2)), "one width"),
        (np.zeros(4), np.zeros((4, 2)), "one width"),
        (np.full((4, 3), np.nan), np.zeros((4, 3)), "finite"),
        (np.zeros((4, 3)), np.full((4, 3), np.inf), "finite"),
    ],
)
def test_what_has_no_distance_is_refused(a, b, says):
    with pytest.raises(DataError, match=says):
        fid(a, b)
