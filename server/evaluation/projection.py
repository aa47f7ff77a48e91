"""Coordinates of each text on a map, whose axes are the first two principal components of the synthetic embeddings.

The axes are computed only from the synthetic texts, so that the texts' map reveals nothing beyond the texts. A
simulation projects the private records onto the same axes; their coordinates are private and stored in a separate file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from server.documents.maps import TextMap
from server.metrics.fidelity import blocks, mean_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A plane through the embeddings.

    Attributes:
        mean: (dimensions,) the origin of the plane.
        axes: (2, dimensions) unit norm; the largest entry of each axis is positive, so that equal texts give equal
            maps.
        explained: Fraction of the embeddings' variance along each axis.
    """

    mean: NDArray[np.float64]
    axes: NDArray[np.float64]
    explained: tuple[float, float]

    @classmethod
    def fit(cls, vectors: NDArray[np.float32]) -> Self | None:
        """Return the plane of (n, dimensions) vectors' first two principal components; None if they span no plane."""
        if len(vectors) < 3 or vectors.shape[1] < 2:
            return None
        mean = mean_of(vectors)
        centred = (rows - mean for rows in blocks(vectors))
        products = sum(rows.T @ rows for rows in centred)
        variances, directions = np.linalg.eigh(products / (len(vectors) - 1))
        total = variances.sum()
        if not variances[-2] > 1e-12 * total:
            return None
        axes = directions[:, :-3:-1].T
        signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
        return cls(
            mean=mean,
            axes=axes * signs[:, None],
            explained=(float(variances[-1] / total), float(variances[-2] / total)),
        )

    @classmethod
    def of(cls, saved: TextMap) -> Self | None:
        """Return the plane of a stored map, up to rounding; None if the map has no plane."""
        if saved.explained is None:
            return None
        first, second = saved.explained
        return cls(mean=np.array(saved.mean), axes=np.array(saved.axes), explained=(first, second))

    def place(self, vectors: NDArray[np.float32]) -> list[list[float]]:
        """Return the coordinates on the plane, one pair for each row of (texts, dimensions) vectors."""
        return [point for rows in blocks(vectors) for point in ((rows - self.mean) @ self.axes.T).round(4).tolist()]


def synthetic_map(vectors: NDArray[np.float32]) -> TextMap:
    """Return a map with the axes and a point for each line of `synthetic.jsonl`; empty if the vectors span no plane."""
    projection = Projection.fit(vectors)
    if projection is None:
        return TextMap()
    return TextMap(
        explained=tuple(round(share, 4) for share in projection.explained),
        mean=tuple(projection.mean.round(6).tolist()),
        axes=tuple(map(tuple, projection.axes.round(6).tolist())),
        points=tuple(map(tuple, projection.place(vectors))),
    )


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """Return up to `most` of the items, evenly spaced and in their original order."""
    count = min(len(items), most)
    return [items[at * len(items) // count] for at in range(count)]
