"""Sums along directions against their definition, and the integers of one record against their bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.contributions import class_sums as module
from client.contributions.class_sums import contribution, lower_entries, shorten_rows
from tests.support import asking
from tests.support.asking import chosen, embedded, random_basis, random_records, random_units

HALF = 2.0**-11
"""Half a grid unit of 1024 to the radius."""


def test_known_values():
    # Along the second and the first axis; about the origin for the first label, and (0.5, 0, 0) for the second.
    query = asking.sums([[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0.5, 0, 0]], 0.5, count=7)
    records = embedded(
        "abcdef",
        [0, 0, 0, 1, 1, 2],
        [[0.25, 0.125, 0.96], [0.5, -0.5 * HALF, 0.87], [0, 1, 0], [0.75, 0, 0.66], [0, 0, 1], [0, 1, 0]],
    )
    alone = [contribution(query, chosen(records, [record])).tolist() for record in range(6)]
    assert alone == [
        [256, 512, 7, 0, 0, 0],
        # Half a grid unit below zero goes to zero, and shortens the other by a little, which goes there too.
        [0, 1023, 7, 0, 0, 0],
        # Two radii are shortened to one.
        [1024, 0, 7, 0, 0, 0],
        [0, 0, 0, 0, 512, 7],
        [0, 0, 0, 0, -1024, 7],
        # A label that the query does not have.
        [0, 0, 0, 0, 0, 0],
    ]
    assert contribution(query, records).tolist() == np.sum(alone, axis=0).tolist()


def test_equals_the_definition():
    rng = np.random.default_rng(1)
    records = random_records(rng, 60, 24)
    for radius in (0.01, 0.3, 1.0, 4.0):
        query = asking.sums(random_basis(rng, 7, 24), random_units(rng, 3, 24) * 0.7, radius, grid=2**14)
        differing = 0
        for record in range(60):
            label = records.labels[record]
            y = query.basis.astype(float) @ (records.vectors[record].astype(float) - query.centres[label]) / radius
            expected = np.zeros((3, 8))
            expected[label] = [*np.trunc(2**14 * y / max(1, np.linalg.norm(y))), 512]
            got = contribution(query, chosen(records, [record]))
            assert got.dtype == np.int64
            # Rounding of vectors and directions moves a few values over an integer.
            assert np.abs(got - expected.ravel()).max() <= 1
            differing += np.count_nonzero(got != expected.ravel())
        assert differing < 0.02 * 60 * 7 / min(radius, 1)


@pytest.mark.parametrize("dim", [24, 384])
def test_a_record_adds_the_same_integers_in_any_batch_order_and_chunk(monkeypatch, dim):
    rng = np.random.default_rng(2)
    records = random_records(rng, 200, dim)
    query = asking.sums(random_basis(rng, 17, dim), random_units(rng, 3, dim) * 0.9, 0.2, grid=2**20)
    alone = np.array([contribution(query, chosen(records, [record])) for record in range(200)])
    assert np.array_equal(contribution(query, records), alone.sum(axis=0))
    monkeypatch.setattr(module, "_ROWS", 7)
    for size in (2, 3, 8, 41, 200):
        batch = rng.permutation(200)[:size]
        assert np.array_equal(contribution(query, chosen(records, batch)), alone[batch].sum(axis=0))


def test_rounding_to_the_nearest_would_exceed_the_bound_and_rounding_toward_zero_does_not():
    # Nine coordinates of a third have norm 1. On a grid of 2 the nearest integer is 1, and nine ones have norm 3.
    row = np.full((1, 9), 1 / 3)
    assert (np.rint(2 * row) ** 2).sum() > 2**2
    assert not shorten_rows(row, 2).any()
    rng = np.random.default_rng(3)
    rows = asking.unit(rng.standard_normal((500, 12))).astype(np.float64) * rng.choice([1, 1 + 1e-7, 5], (500, 1))
    for grid in (1, 3, 10, 1024, 2**20):
        factors = grid / np.maximum(np.linalg.norm(rows, axis=1), 1)
        nearest = np.rint(rows * factors[:, None]).astype(np.int64)
        assert (nearest**2).sum(axis=1).max() > grid**2
        for integers in (shorten_rows(rows, grid), lower_entries(nearest, grid)):
            assert (integers**2).sum(axis=1).max() <= grid**2


def test_integers_that_are_too_long_are_lowered_until_they_are_not_and_no_others():
    rows = np.array([[3, 4, 0], [3, -4, 1], [-5, 0, 1], [0, 0, 6], [0, 0, 0], [4, 4, -4]])
    expected = [[3, 4, 0], [3, -3, 1], [-4, 0, 1], [0, 0, 5], [0, 0, 0], [2, 3, -3]]
    assert lower_entries(rows, 5).tolist() == expected
    assert lower_entries(rows[:0], 5).shape == (0, 3)
    assert rows[0].tolist() == [3, 4, 0]


def test_floating_point_that_ends_above_the_bound_is_caught(monkeypatch):
    """A root that is too small by one part in a thousand, as a worse machine's might be by its last bits."""
    rng = np.random.default_rng(4)
    rows = 3 * asking.unit(rng.standard_normal((200, 5))).astype(np.float64)
    real = np.sqrt
    monkeypatch.setattr(module.np, "sqrt", lambda value: real(value) * 0.999)
    too_long = np.trunc(1024 * rows / (real((rows**2).sum(axis=1)) * 0.999)[:, None])
    assert ((too_long**2).sum(axis=1) > 1024**2).any()
    assert (shorten_rows(rows, 1024) ** 2).sum(axis=1).max() <= 1024**2


def test_largest_grid_and_number_of_directions_do_not_overflow():
    for signs in (1, -1):
        got = shorten_rows(np.full((2, 4096), signs * 1e3), 2**20)
        assert np.abs(got).min() >= math.isqrt(2**40 // 4096) - 1
        assert (got**2).sum(axis=1).max() <= 2**40


def test_what_is_no_number_counts_as_zero_and_a_huge_one_is_shortened_as_any():
    rows = np.array([[np.nan, 3], [np.inf, 0], [-np.inf, 0.5], [1e300, -1e300], [-1e30, 0], [3, 4]])
    assert shorten_rows(rows, 10).tolist() == [[0, 10], [0, 0], [0, 5], [7, -7], [-10, 0], [6, 8]]


def _norms(query, records):
    vector = np.abs(contribution(query, records))
    sensitivity = query.spec.sensitivity
    assert np.count_nonzero(vector) <= sensitivity.touched
    assert vector.max() <= query.spec.largest
    assert vector.sum() <= sensitivity.l1
    assert (vector**2).sum() <= sensitivity.l2_squared
    return vector.sum(), (vector**2).sum()


@pytest.mark.parametrize("directions", [1, 4, 16, 64])
@pytest.mark.parametrize("labels", [1, 3])
def test_one_record_reaches_both_bounds(directions, labels):
    """Along a direction l2, and along the diagonal of all of them l1 as well, with numbers that are exact in binary."""
    dim = 64
    query = asking.sums(np.eye(directions, dim), np.zeros((labels, dim)), 0.125)
    axis = np.eye(1, dim)
    diagonal = np.zeros((1, dim))
    diagonal[0, :directions] = directions**-0.5
    sensitivity = query.spec.sensitivity
    for label in range(labels):
        assert _norms(query, embedded("a", [label], axis))[1] == sensitivity.l2_squared == 1024**2 + 512**2
        assert _norms(query, embedded("a", [label], -diagonal))[1] == sensitivity.l2_squared
        assert _norms(query, embedded("a", [label], diagonal))[0] == sensitivity.l1


@pytest.mark.parametrize("records", [2, 3])
def test_equal_records_of_a_user_reach_both_bounds(records):
    query = asking.sums(np.eye(4, 6), np.zeros((2, 6)), 0.25, max_records=records)
    same = np.tile([[0.5, 0.5, 0.5, 0.5, 0, 0]], (records + 1, 1))
    of_user = embedded("abcd"[: records + 1], None, same, ("u",) * (records + 1)).limited(records)
    vector = contribution(query, of_user)
    sensitivity = query.spec.sensitivity
    assert (vector.sum(), (vector**2).sum()) == (sensitivity.l1, sensitivity.l2_squared)
    assert sensitivity.l1 == records * (2 * 1024 + 512)


@given(
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(0, 12),
    st.sampled_from([1e-3, 0.02, 0.5, 1.0, 1.4, 4.0]),
    st.sampled_from([1, 2, 3, 64, 1024, 2**20]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_no_record_exceeds_the_bounds_and_none_moves_anothers_part(  # noqa: PLR0917
    random_seed, directions, more, radius, grid, length
):
    rng = np.random.default_rng(random_seed)
    dim = directions + more
    query = asking.sums(
        random_basis(rng, directions, dim),
        length * random_units(rng, 3, dim),
        radius,
        grid=grid,
        count=max(1, grid // 2),
    )
    records = random_records(rng, 4, dim, labels=4)
    before = contribution(query, chosen(records, [0, 1, 2]))
    vector = contribution(query, chosen(records, [3]))
    assert np.array_equal(contribution(query, records) - before, vector)
    label = records.labels[3]
    elsewhere = np.delete(vector.reshape(3, -1), label, axis=0) if label < 3 else vector
    assert not elsewhere.any()
    _norms(query, chosen(records, [3]))


@pytest.mark.parametrize(
    "basis", [np.ones((3, 4)) / 2, np.array([[1, 0, 0, 0], [1e-3, 1, 0, 0]]), 1.001 * np.eye(4)[:2]]
)
def test_directions_that_are_not_quite_orthonormal_cannot_exceed_the_bounds_either(basis):
    """Coarsely wrong ones are refused, but the proof does not need that."""
    query = asking.sums(np.eye(len(basis), 4), np.zeros((2, 4)), 0.25)
    object.__setattr__(query, "basis", basis.astype(np.float32))
    for vector in np.concatenate([np.eye(4), np.full((1, 4), 0.5), basis[:1]]):
        _norms(query, embedded("a", [1], asking.unit([vector])))
