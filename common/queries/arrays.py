"""Checks of a query's arrays: dtype, shape and range; the error names the query and the array."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from common.errors import ProtocolError
from common.queries.page import Query, Spec

_NORM_TOLERANCE = 1e-3
_LARGEST_ENTRY = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledCandidates(Query):
    """A query with candidates, each of one label.

    Attributes:
        spec: The planned specification.
        vectors: (candidates, dim) float32, unit norm: the candidates under the agreed encoder.
        labels: (candidates,) int32, index of each candidate's label among the plan's labels.

    Raises:
        ProtocolError: An array has the wrong dtype, shape or range.
    """

    dtypes: ClassVar[Mapping[str, str]] = {"vectors": "<f4", "labels": "<i4"}
    spec: Spec
    vectors: NDArray[np.float32]
    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        unit_rows(self.spec.kind, vectors=self.vectors)
        check_shape(self.spec.kind, "labels", self.labels, np.int32, (len(self.vectors),))
        if self.labels.min() < 0:
            raise wrong(self.spec.kind, "labels", "numbers >= 0", int(self.labels.min()))

    def check(self, labels: int, dimensions: int) -> None:
        """Check that the candidates are for the plan's labels and the agreed encoder, as `Query.check` requires."""
        if self.vectors.shape[1] != dimensions:
            raise wrong(self.spec.kind, "vectors", f"{dimensions} dimensions", self.vectors.shape[1])
        if self.labels.max() >= labels:
            raise wrong(self.spec.kind, "labels", f"numbers below {labels}", int(self.labels.max()))


def unit_rows(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Check that arrays are non-empty, (rows, dim) float32, with finite rows of norm 1."""
    for name, rows in arrays.items():
        if rows.ndim != 2 or rows.dtype != np.float32 or 0 in rows.shape:
            raise wrong(kind, name, "a non-empty (rows, dim) float32 array", shape_of(rows))
        norms = _squared_norms(rows)
        # NaN and infinity fail this comparison too.
        off = np.flatnonzero(~(np.abs(norms - 1) <= 2 * _NORM_TOLERANCE))
        if len(off):
            raise wrong(kind, f"{name}, row {off[0]}", "finite and of norm 1", f"squared norm {norms[off[0]]:.6g}")


def orthogonal_rows(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Check that unit rows are orthogonal to each other.

    The cost is proportional to the square of the number of rows: call this only after both sizes have been checked.
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
    """Check that rows are finite and of norm at most 1."""
    for name, rows in arrays.items():
        norms = _squared_norms(rows)
        # NaN and infinity fail this comparison too.
        off = np.flatnonzero(~(norms <= 1 + 2 * _NORM_TOLERANCE))
        if len(off):
            raise wrong(kind, f"{name}, row {off[0]}", "finite and of norm <= 1", f"squared norm {norms[off[0]]:.6g}")


def check_shape(kind: str, name: str, array: NDArray[Any], dtype: type, shape: tuple[int, ...]) -> None:
    """Check the shape and dtype of an array."""
    if array.shape != shape or array.dtype != dtype:
        raise wrong(kind, name, f"{shape} {np.dtype(dtype)}", shape_of(array))


def check_entries(kind: str, **arrays: NDArray[np.float32]) -> None:
    """Check that no entry is NaN, infinite or too large to compute with."""
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
    """Return the error for an invalid array."""
    return ProtocolError(f"{name} of a {kind} query", expected=expected, got=got)
