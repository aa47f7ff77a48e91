"""Vectors of integers modulo 2^64, in which contributions are masked and summed.

A signed value v is sent as v mod 2^64 (two's complement), and a sum is decoded in the same way. The sum is exact as
long as its true value fits in 64 signed bits, so each of L parties may contribute values of magnitude up to (2^63 - 1)
// L. Larger values are rejected, never clipped: a clipped count is wrong, and nobody could detect it behind the masks.
"""

import numpy as np
from numpy.typing import NDArray

from common.errors import InternalError, PlanError

_LARGEST = 2**63 - 1


def limit(parties: int) -> int:
    """Return the largest magnitude that each of `parties` values may have without their sum wrapping around."""
    return _LARGEST // parties


def encode(values: NDArray[np.int64], *, parties: int = 1) -> NDArray[np.uint64]:
    """Return a fresh copy of `values` modulo 2^64.

    Args:
        values: (length,) int64.
        parties: Number of such vectors in the sum.

    Returns:
        (length,) uint64.

    Raises:
        PlanError: If `values` is empty or has the wrong shape or type, or a value exceeds `limit(parties)` in
            magnitude. The message does not contain the value, which is private.
    """
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.size == 0:
        raise PlanError("values to be summed", expected="an array with one axis, not empty", got=np.shape(values))
    if values.dtype != np.int64:
        raise PlanError("values to be summed", expected="int64", got=values.dtype, do="Round to whole numbers first")
    largest = limit(parties)
    # Two comparisons rather than abs(): abs(-2^63) is -2^63 in int64.
    if values.max() > largest or values.min() < -largest:
        raise PlanError(
            "values to be summed",
            expected=f"magnitudes up to {largest}, so that {parties} of them cannot wrap",
            got="a larger one",
            do="Check the bound when the plan is made",
        )
    return values.view(np.uint64).copy()


def decode(total: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return a sum decoded as two's complement, as a view of the same memory.

    Args:
        total: (length,) uint64.

    Returns:
        (length,) int64.
    """
    _check_ring(total)
    return total.view(np.int64)


def add_into(total: NDArray[np.uint64], vector: NDArray[np.uint64]) -> None:
    """Add `vector` to `total` in place, modulo 2^64; both (length,) uint64."""
    _check_ring(total)
    _check_ring(vector)
    if vector.shape != total.shape:
        raise InternalError("shape of a vector in the ring", expected=total.shape, got=vector.shape)
    np.add(total, vector, out=total)


def _check_ring(vector: NDArray[np.uint64]) -> None:
    if vector.dtype != np.uint64:
        raise InternalError("dtype of a vector in the ring", expected="uint64", got=vector.dtype)
