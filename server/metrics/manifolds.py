"""Fidelity and diversity by nearest neighbours: precision and recall, density and coverage.

Each vector of a set is the centre of a ball that reaches to its k-th nearest neighbour in that set; the union of the
balls estimates the support of the set. Precision is the fraction of synthetic vectors within the real set's balls,
recall is the fraction of real vectors within the synthetic set's balls (Kynkäänniemi et al. 2019, equations 1 and 2).
Density is based on the number of real balls that contain a synthetic vector, so that one outlier's large ball cannot
inflate it; coverage is the fraction of real balls that contain a synthetic vector (Naeem et al. 2020, equations 3 and
4).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.validate import integers
from server.metrics.fidelity import comparable, sample_rows

LARGEST = 10_000
DEFINITION = (
    "By k nearest neighbours, Euclidean, of at most 10,000 vectors of each set: precision and recall with k = 3 "
    "(Kynkäänniemi et al. 2019), F1 their harmonic mean; density and coverage with k = 5 (Naeem et al. 2020)."
)
"""Text that defines the figures in reports."""

_ROWS = 1024
"""Number of rows of a distance matrix computed at once, which take 40 MB for 10,000 columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Overlap of two sets of vectors.

    Attributes:
        precision: Fraction of synthetic vectors within the real set's balls, 0 to 1.
        recall: Fraction of real vectors within the synthetic set's balls, 0 to 1.
        density: Mean number of the real set's balls that contain a synthetic vector, divided by k; may exceed 1.
        coverage: Fraction of the real set's balls that contain a synthetic vector, 0 to 1.
    """

    precision: float
    recall: float
    density: float
    coverage: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def overlap(
    synthetic: NDArray[np.floating], real: NDArray[np.floating], *, k: int = 3, k_density: int = 5, seed: int = 0
) -> Overlap:
    """Return precision, recall, density and coverage.

    Args:
        synthetic: (n, d), n above `k` and `k_density`.
        real: (m, d), m above `k` and `k_density`.
        k: Number of neighbours for precision and recall.
        k_density: Number of neighbours for density and coverage.
        seed: Experiment seed of the samples from larger sets.

    Raises:
        DataError: Shapes do not match, there are fewer rows than neighbours, or a value is not finite.
    """
    integers(1, k=k, k_density=k_density)
    comparable("precision, recall, density and coverage", synthetic, real, least=max(k, k_density) + 1)
    a, b = (sample_rows(vectors, LARGEST, seed=seed).astype(np.float32) for vectors in (synthetic, real))
    radii_a = _radii(a, (k,))[0]
    radii_b, radii_density = _radii(b, (k, k_density))
    within_real = np.zeros(len(a), dtype=bool)
    within_synthetic = np.zeros(len(b), dtype=bool)
    covered = np.zeros(len(b), dtype=bool)
    balls = 0
    for first in range(0, len(a), _ROWS):
        rows = slice(first, first + _ROWS)
        distances = _squared(a[rows], b)
        within_real[rows] = (distances <= radii_b).any(axis=1)
        within_synthetic |= (distances <= radii_a[rows, None]).any(axis=0)
        near = distances <= radii_density
        balls += int(near.sum())
        covered |= near.any(axis=0)
    return Overlap(
        precision=float(within_real.mean()),
        recall=float(within_synthetic.mean()),
        density=balls / (k_density * len(a)),
        coverage=float(covered.mean()),
    )


def _radii(vectors: NDArray[np.float32], neighbours: tuple[int, ...]) -> list[NDArray[np.float32]]:
    """Return each vector's squared distance to its k-th nearest neighbour, one (n,) array for each k."""
    radii = np.empty((len(neighbours), len(vectors)), dtype=np.float32)
    for first in range(0, len(vectors), _ROWS):
        rows = np.arange(first, min(first + _ROWS, len(vectors)))
        distances = _squared(vectors[rows], vectors)
        distances[np.arange(len(rows)), rows] = np.inf
        # The nearest is at position 0, as the distance to itself is infinite.
        radii[:, rows] = np.partition(distances, [k - 1 for k in neighbours], axis=1)[:, [k - 1 for k in neighbours]].T
    return list(radii)


def _squared(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, m) squared distances; values below the rounding error become 0, the distance of duplicates."""
    norms = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("nd,nd->n", b, b)
    distances: NDArray[np.float32] = a @ b.T
    distances *= -2
    distances += norms
    norms *= np.float32(1e-6)
    distances[distances < norms] = 0
    return distances
