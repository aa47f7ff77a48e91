"""Two numbers for each text, for a map: principal components of the synthetic texts' embeddings.

The axes come from the synthetic texts alone, so that a map of them holds nothing that the texts do not. In a simulation
the private records are laid on the same axes; where they fall is private, and goes into a file of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

SYNTHETIC, PRIVATE = "map.json", "map_private.json"
"""Files of a run folder; only a simulation writes the second (`simulations/private_evaluation/compare.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A plane through the embeddings.

    Attributes:
        mean: (dimensions,) its origin.
        axes: (2, dimensions) unit norm, the largest entry of each positive, so that equal texts give equal maps.
        explained: The share of the embeddings' variance along each axis.
    """

    mean: NDArray[np.float64]
    axes: NDArray[np.float64]
    explained: tuple[float, float]

    @classmethod
    def fit(cls, vectors: NDArray[np.float32]) -> Self | None:
        """The two principal components of (texts, dimensions) vectors; None where they do not span a plane."""
        if len(vectors) < 3 or vectors.shape[1] < 2:
            return None
        exact = vectors.astype(np.float64)
        mean = exact.mean(axis=0)
        variances, directions = np.linalg.eigh(np.cov(exact - mean, rowvar=False))
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
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`, but for rounding."""
        return cls(mean=np.array(saved["mean"]), axes=np.array(saved["axes"]), explained=tuple(saved["explained"]))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "explained": [round(share, 4) for share in self.explained],
            "mean": self.mean.round(6).tolist(),
            "axes": self.axes.round(6).tolist(),
        }

    def place(self, vectors: NDArray[np.float32]) -> list[list[float]]:
        """Where (texts, dimensions) vectors lie on the plane: two numbers for each."""
        points: list[list[float]] = ((vectors - self.mean) @ self.axes.T).round(4).tolist()
        return points


def synthetic_map(vectors: NDArray[np.float32]) -> dict[str, Any]:
    """`map.json`: the axes, and a point for each line of `synthetic.jsonl`; without any if they span no plane."""
    projection = Projection.fit(vectors)
    return {"points": []} if projection is None else projection.to_dict() | {"points": projection.place(vectors)}


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many items, evenly taken."""
    taken = min(len(items), most)
    return [items[at * len(items) // taken] for at in range(taken)]
