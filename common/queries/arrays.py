"""Checks of a query's arrays: dtype, shape and range; the error names the query and the array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import PlanError, ProtocolError

_NORM_TOLERANCE = 1e-3
_LARGEST_ENTRY = 1e6


def labelled_rows(kind: str, vectors: NDArray[np.float32], labels: NDArray[np.int32]) -> None:
    """Refuse anything but (rows, dim) float32 unit rows, each with one label number, (rows,) int32, at least 0."""
    unit_rows(kind, vectors=vectors)
    shaped(kind, "labels", labels, np.int32, (len(vectors),))
    if labels.min() < 0:
        raise wrong(kind, "labels", "numbers >= 0", int(labels.min()))


def fitting(
    kind: str, vectors: NDArray[np.float32], labels: NDArray[np.int32], *, labels_of_plan: int, dimensions: int
) -> None:
    """Refuse rows whose dimension is not the agreed encoder's, and labels that the plan does not have."""
    if vectors.shape[1] != dimensions:
        raise wrong(kind, "vectors", f"{dimensions} dimensions", vectors.shape[1])
    if labels.max() >= labels_of_plan:
        raise wrong(kind, "labels", f"numbers below {labels_of_plan}", int(labels.max()))


def same_labels(name: str, labels: int, labels_of_plan: int) -> None:
    """Refuse the specification of the query with that name if its number of labels is not the plan's."""
    if labels != labels_of_plan:
        raise PlanError(f"labels of {name}", expected=labels_of_plan, got=labels)


def unit_rows(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Refuse anything but non-empty (rows, dim) float32 arrays of finite rows of norm 1."""
    for name, rows in arrays.items():
        if rows.ndim != 2 or rows.dtype != np.float32 or 0 in rows.shape:
            raise wrong(kind, name, "a non-empty (rows, dim) float32 array", shape_of(rows))
        norms = _squared_norms(rows)
        # NaN and infinity fail this comparison too.
        off = np.flatnonzero(~(np.abs(norms - 1) <= 2 * _NORM_TOLERANCE))
        if len(off):
            raise wrong(kind, f"{name}, row {off[0]}", "finite and of norm 1", f"squared norm {norms[off[0]]:.6g}")


def orthogonal_rows(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Refuse unit rows that are not orthogonal to each other.

    The cost is proportional to the square of the number of rows: call this only once both sizes are known to be right.
    """
    for name, rows in arrays.items():
        # More rows than dimensions cannot be orthogonal, and are not worth their products.
        if rows.shape[0] > rows.shape[1]:
            raise wrong(kind, name, f"at most {rows.shape[1]} rows, one a dimension", rows.shape[0])
        products = rows.astype(np.float64) @ rows.T.astype(np.float64)
        np.fill_diagonal(products, 0)
        if (largest := np.abs(products).max()) > _NORM_TOLERANCE:
            raise wrong(kind, name, "orthogonal rows", f"an inner product of {largest:.6g}")


def within_unit_ball(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Refuse rows that are not finite, or whose norm is above 1."""
    for name, rows in arrays.items():
        norms = _squared_norms(rows)
        # NaN and infinity fail this comparison too.
        off = np.flatnonzero(~(norms <= 1 + 2 * _NORM_TOLERANCE))
        if len(off):
            raise wrong(kind, f"{name}, row {off[0]}", "finite and of norm <= 1", f"squared norm {norms[off[0]]:.6g}")


def shaped(kind: str, name: str, array: NDArray[Any], dtype: type, shape: tuple[int, ...]) -> None:
    """Refuse an array with the wrong shape or dtype."""
    if array.shape != shape or array.dtype != dtype:
        raise wrong(kind, name, f"{shape} {np.dtype(dtype)}", shape_of(array))


def bounded(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Refuse NaN, infinities and entries too large to compute with."""
    for name, array in arrays.items():
        # NaN and infinity fail this comparison too.
        if not (np.abs(array) <= _LARGEST_ENTRY).all():
            raise wrong(kind, name, f"numbers within +-{_LARGEST_ENTRY:g}", "others")


def shape_of(array: NDArray[Any]) -> str:
    """Return the shape and dtype of an array as text, for an error message."""
    return f"{array.shape} {array.dtype}"


def _squared_norms(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
    return norms


def wrong(kind: str, name: str, expected: str, got: object) -> ProtocolError:
    """Make the error that refuses an array."""
    return ProtocolError(f"{name} of a {kind} query", expected=expected, got=got)
