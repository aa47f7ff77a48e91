"""Elites of a population: the most voted, less those too similar to a better one (DPGA-TextSyn, section 3.3.2).

A function of synthetic texts and of votes that already carry their noise: nothing here can cost privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK = 128
"""Rows of cosines computed at once: fewer leave the matrix product slow, more compute rows that no walk looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elites:
    """Who was chosen.

    Attributes:
        positions: In the population, most votes first.
        tau: The threshold at which they were found.
    """

    positions: NDArray[np.int64]
    tau: float


def suppress(
    votes: NDArray[np.float64], vectors: NDArray[np.float32], count: int, *, tau: float, step: float = 0.01
) -> Elites:
    """Walk candidates by votes, highest first: take one, drop every other whose cosine to it exceeds tau.

    The walk ends with `count` elites. If it ends with fewer, it is done again with tau + step, tau + 2 step, and so on,
    up to 1, where nothing is dropped. How many are found does not always grow with tau, so no step can be skipped. What
    can be shared are the cosines of a taken candidate to those behind it, computed once, when the first walk takes it,
    and in float64, so that no order of summation shows: at most n^2 / 2 of them, 400 MB for 10,000 candidates.

    Args:
        votes: (n,) noisy votes; of equals the first comes first.
        vectors: (n, dim) float32, unit norm.
        count: How many are wanted.
        tau: Where the threshold starts.
        step: What it grows by; 0: it does not, and there may be fewer elites.

    Returns:
        `count` elites, or all n if these are fewer; with step 0 those that one walk finds.
    """
    order = np.argsort(-votes, kind="stable")
    rows = _Rows(vectors[order].astype(np.float64))
    steps = 0
    while True:
        threshold = min(1.0, tau + steps * step)
        chosen = _walk(rows, count, threshold)
        if len(chosen) >= min(count, len(order)) or not step or threshold == 1:
            return Elites(positions=order[chosen], tau=threshold)
        steps += 1


def self_similarity(vectors: NDArray[np.float32]) -> float | None:
    """Mean cosine of all pairs of (n, dim) unit vectors: the paper's measure of diversity. None for fewer than two."""
    n = len(vectors)
    if n < 2:
        return None
    total = vectors.sum(axis=0, dtype=np.float64)
    own = np.einsum("nd,nd->", vectors, vectors, dtype=np.float64)
    return float((total @ total - own) / (n * (n - 1)))


class _Rows:
    """Cosines of each candidate to all behind it, computed when first asked for, with those likely to be next."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        self._vectors = vectors
        self._known: dict[int, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    def behind(self, place: int, left: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n - place - 1,) cosines; `left` are the candidates that are not dropped."""
        if place not in self._known:
            ahead = (place + np.flatnonzero(left[place:])[: 2 * _BLOCK]).tolist()
            block = [other for other in ahead if other not in self._known][:_BLOCK]
            cosines = self._vectors[block] @ self._vectors[place + 1 :].T
            self._known |= {other: row[other - place :] for other, row in zip(block, cosines, strict=True)}
        return self._known[place]


def _walk(rows: _Rows, count: int, tau: float) -> list[int]:
    """Places of the first `count` elites at this threshold."""
    if tau >= 1:
        return list(range(min(count, len(rows))))
    left = np.ones(len(rows), dtype=bool)
    chosen: list[int] = []
    place = 0
    while len(chosen) < count and place < len(rows):
        if left[place]:
            chosen.append(place)
            left[place + 1 :] &= rows.behind(place, left) <= tau
            place += 1
        else:
            skip = int(left[place:].argmax())
            place = place + skip if skip else len(rows)
    return chosen
