"""Elites of a population: most votes first, skipping texts too similar to a better one (DPGA-TextSyn, section 3.3.2).

The choice is a function of synthetic texts and of votes that are already noised, so nothing here can cost privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK = 128
"""Number of rows of cosines computed at once: with fewer rows, the matrix product is slow; with more, many cosines are
never used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elites:
    """The candidates chosen as elites.

    Attributes:
        positions: Indices in the population, most votes first.
        tau: Final similarity threshold.
    """

    positions: NDArray[np.int64]
    tau: float


def suppress(
    votes: NDArray[np.float64], vectors: NDArray[np.float32], count: int, *, tau: float, step: float = 0.01
) -> Elites:
    """Choose elites by walking over candidates in order of votes, dropping any whose cosine to an elite exceeds tau.

    The walk stops at `count` elites. If it finds fewer, it is repeated with tau + step, tau + 2 step, and so on, up to
    1, where nothing is dropped. The number of elites is not monotone in tau, so no step can be skipped. However, a walk
    is abandoned as soon as the taken and the remaining candidates together are too few. The cosines of a taken
    candidate to all later candidates are computed when the first walk takes it, in float64 so that the order of
    summation has no effect, and are reused by later walks. There are at most n^2 / 2 cosines, 400 MB for 10,000
    candidates.

    Args:
        votes: (n,) noisy votes; ties go to the lower index.
        vectors: (n, dim) float32, unit norm.
        count: Number of elites.
        tau: Initial threshold.
        step: Increment of the threshold. With 0, tau stays the same, and there may be fewer than `count` elites.

    Returns:
        `count` elites, or all n candidates if n is smaller; with step 0, the elites that one walk finds.
    """
    order = np.argsort(-votes, kind="stable")
    rows = _Rows(vectors[order].astype(np.float64))
    count = min(count, len(order))
    steps = 0
    while True:
        threshold = min(1.0, tau + steps * step)
        chosen = _walk(rows, count, threshold, least=count if step else 0)
        if chosen is not None:
            return Elites(positions=order[chosen], tau=threshold)
        steps += 1


def self_similarity(vectors: NDArray[np.float32]) -> float | None:
    """Return the mean cosine of all pairs of (n, dim) unit vectors, the paper's diversity; None if n is below 2."""
    n = len(vectors)
    if n < 2:
        return None
    total = vectors.sum(axis=0, dtype=np.float64)
    diagonal = np.einsum("nd,nd->", vectors, vectors, dtype=np.float64)
    return float((total @ total - diagonal) / (n * (n - 1)))


class _Rows:
    """Cosines of each candidate to all later ones, computed on first use together with those likely to be used next."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        self._vectors = vectors
        self._cosines: dict[int, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    def behind(self, place: int, remaining: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the (n - place - 1,) cosines of `place` to all later candidates; `remaining` marks those left."""
        if place not in self._cosines:
            ahead = (place + np.flatnonzero(remaining[place:])[: 2 * _BLOCK]).tolist()
            block = [other for other in ahead if other not in self._cosines][:_BLOCK]
            cosines = self._vectors[block] @ self._vectors[place + 1 :].T
            self._cosines |= {other: row[other - place :] for other, row in zip(block, cosines, strict=True)}
        return self._cosines[place]


def _walk(rows: _Rows, count: int, tau: float, *, least: int) -> list[int] | None:
    """Return the indices of the first `count` elites at this threshold; None if there are fewer than `least`."""
    if tau >= 1:
        return list(range(count))
    remaining = np.ones(len(rows), dtype=bool)
    chosen: list[int] = []
    place = 0
    while len(chosen) < count and place < len(rows):
        chosen.append(place)
        remaining[place + 1 :] &= rows.behind(place, remaining) <= tau
        behind = remaining[place + 1 :]
        if len(chosen) + np.count_nonzero(behind) < least:
            return None
        place = place + 1 + int(behind.argmax()) if behind.any() else len(rows)
    return chosen
