"""Coordinates of each text on a map, whose axes are the first two principal components of the synthetic embeddings.

The axes are computed only from the synthetic texts, so that the texts' map reveals nothing beyond the texts. A
simulation projects the private records onto the same axes; their coordinates are private and stored in a separate file.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.documents.maps import Point, TextMap

_FLAT = 1e-12
"""Fraction of the variance along the second axis up to which the embeddings span no plane."""


def synthetic_map(vectors: NDArray[np.float32]) -> TextMap:
    """Return a map with the axes and a point for each line of `synthetic.jsonl`; empty if the vectors span no plane.

    The largest entry of each axis is positive, so that equal texts give equal maps.
    """
    from sklearn.decomposition import PCA

    if len(vectors) < 3 or vectors.shape[1] < 2 or not np.ptp(vectors, axis=0).any():
        return TextMap()
    components = PCA(2, svd_solver="covariance_eigh").fit(vectors.astype(np.float64))
    if not components.explained_variance_ratio_[1] > _FLAT:
        return TextMap()
    plane = TextMap(
        explained=tuple(components.explained_variance_ratio_.round(4).tolist()),
        mean=tuple(components.mean_.round(6).tolist()),
        axes=tuple(map(tuple, components.components_.round(6).tolist())),
    )
    return replace(plane, points=tuple(place_on_map(plane, vectors)))


def place_on_map(plane: TextMap, vectors: NDArray[np.float32]) -> list[Point]:
    """Return the coordinates of (texts, dimensions) vectors on the axes of a map, which must have axes."""
    return list(map(tuple, ((vectors - np.array(plane.mean)) @ np.array(plane.axes).T).round(4).tolist()))


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """Return up to `most` of the items, evenly spaced and in their original order."""
    count = min(len(items), most)
    return [items[at * len(items) // count] for at in range(count)]
