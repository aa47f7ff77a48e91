"""Exactness against integers of any size."""

import numpy as np
import pytest

from client.contributions import exact_products
from tests.support.asking import random_units, unit


def _exactly(left, right):
    return [
        [sum(int(a) * int(b) for a, b in zip(row, other, strict=True)) for other in right.tolist()]
        for row in left.tolist()
    ]


@pytest.mark.parametrize(("dim", "blocks"), [(2, 1), (96, 1), (768, 1), (64, 64), (4096, 2)])
def test_products_are_exact(dim, blocks):
    rng = np.random.default_rng(dim)
    # One of them the worst case, all entries alike.
    vectors = np.concatenate([random_units(rng, 3, dim), unit(np.ones((1, dim)))])
    # Aligned with a vector, of one size throughout, and of sizes far apart.
    rows = np.concatenate(
        [
            np.tile(1e6 * vectors[:1], blocks),
            np.full((1, blocks * dim), 1e6),
            10.0 ** rng.uniform(-40, 6, (1, blocks * dim)),
        ]
    ).astype(np.float32)
    integers, units = exact_products.rows_to_integers(rows, blocks=blocks)
    side_by_side = np.tile(exact_products.vectors_to_integers(vectors), blocks)
    exact = _exactly(side_by_side, integers)
    assert max(abs(value) for row in exact for value in row) < 2**53
    assert (side_by_side @ integers.T).tolist() == exact
    # In blocks and backwards too.
    by_block = sum(
        exact_products.vectors_to_integers(vectors) @ integers[:, start : start + dim].T
        for start in range((blocks - 1) * dim, -1, -dim)
    )
    assert by_block.tolist() == exact
    np.testing.assert_allclose(
        (side_by_side @ integers.T) * units,
        np.tile(vectors.astype(np.float64), blocks) @ rows.T.astype(np.float64),
        atol=2.0**-14 * blocks * np.abs(rows).max(),
    )


def test_zero_rows_and_whole_numbers():
    integers, units = exact_products.rows_to_integers(np.array([[0, 0], [1, -2], [0.5, 3e5]], np.float32))
    vectors = exact_products.vectors_to_integers(np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32))
    expected = [[0, 1, 0.5], [0, -2, 3e5], [0, -1, 0.3 + 2.4e5]]
    np.testing.assert_allclose(vectors @ integers.T * units, expected, rtol=1e-6)


def test_a_value_does_not_depend_on_its_batch():
    rng = np.random.default_rng(5)
    left, right = random_units(rng, 333, 768), random_units(rng, 50, 768)
    together = exact_products.cosines(left, right)
    for count in (1, 2, 7, 100):
        assert np.array_equal(exact_products.cosines(left[:count], right), together[:count])
        assert np.array_equal(exact_products.cosines(left, right[:count]), together[:, :count])
    np.testing.assert_allclose(together, left.astype(np.float64) @ right.T, atol=1e-6)
