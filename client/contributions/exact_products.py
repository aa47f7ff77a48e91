"""Inner products that do not depend on the order of summation.

The last bits of a matrix product depend on the shapes of its operands, so a record's value would depend slightly on the
number of other records, while sensitivities are proved for records that do not affect each other. Hence inner products
are *defined* on rounded numbers, so that every sum of such products is exact in float64: vectors of unit norm are
integers times 2^-22, and other rows are integers of up to 24 bits (fewer in many dimensions) times a power of two that
is chosen for each row. By the Cauchy-Schwarz inequality, no partial sum then reaches 2^53.

Votes need all 24 bits of both factors and are the most expensive, so they have a separate method
(`client/contributions/votes.py`).
"""

import math

import numpy as np
from numpy.typing import NDArray

STEP = 2.0**-22
"""Grid step of a rounded vector's entries."""
_VECTOR_BITS, _MOST_BITS, _EXACT_BITS = 22, 24, 53


def vectors_to_integers(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Convert (n, dim) vectors of norm up to 1.001 to integers, in units of STEP."""
    return np.rint(vectors.astype(np.float64) / STEP)


def rows_to_integers(rows: NDArray[np.float32], *, blocks: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Convert rows to integers; return these and the unit of each row's products with integer vectors.

    Args:
        rows: (m, blocks * dim) finite numbers.
        blocks: Number of concatenated vectors that a row is multiplied by.

    Returns:
        The integers, of shape (m, blocks * dim), and the units, of shape (m,).
    """
    # Norms: of the vectors, sqrt(blocks) 1.01 2^22; of a row, sqrt(blocks dim) 2^bits.
    growth = math.ceil(math.log2(1.01 * blocks * math.sqrt(rows.shape[1] / blocks)))
    bits = min(_MOST_BITS, _EXACT_BITS - _VECTOR_BITS - growth)
    exponents = np.frexp(np.abs(rows).max(axis=1))[1].astype(np.int64)
    integers = np.rint(np.ldexp(rows.astype(np.float64), (bits - exponents)[:, None]))
    return integers, np.ldexp(STEP, exponents - bits)


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the (n, m) inner products of (n, dim) and (m, dim) vectors of norm up to 1.001."""
    products: NDArray[np.float64] = vectors_to_integers(left) @ vectors_to_integers(right).T * STEP**2
    return products
