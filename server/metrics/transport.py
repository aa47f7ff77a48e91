"""Optimal transport between two sets of vectors: Wasserstein distance and Sinkhorn divergence."""

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from common.errors import DataError
from common.system.extras import blocked_import
from common.validate import positive
from server.metrics.fidelity import comparable, sample_rows

LARGEST = 2000
DEFINITION = (
    "Of at most 2,000 vectors of each set: Wasserstein-1 with Euclidean distances, exact (network simplex); Sinkhorn "
    "divergence with cost |x - y|^2 / 2 and entropy 0.05, debiased (Feydy et al. 2019)."
)
"""Text that defines the figures in reports."""

_ITERATIONS = 2000
_LARGEST_EXPONENT = 600
"""Largest exponent for which logarithms are not needed; a double can still represent exp(-600)."""


def wasserstein(a: NDArray[np.floating], b: NDArray[np.floating], *, seed: int = 0) -> float:
    """Return the Wasserstein-1 distance between the rows of (n, d) and (m, d).

    It is the least mean distance over which one set can be transported to the other.

    Raises:
        DataError: Shapes do not match, a set is empty, a value is not finite, or the solver does not converge.
    """
    comparable("the Wasserstein distance", a, b, least=1)
    with _numpy_alone():
        import ot

    costs = cdist(sample_rows(a, LARGEST, seed=seed), sample_rows(b, LARGEST, seed=seed))
    value, log = ot.emd2(_uniform(costs.shape[0]), _uniform(costs.shape[1]), costs, numItermax=10_000_000, log=True)
    if log["warning"]:
        raise DataError("Wasserstein distance", expected="an optimum", got="none", do="Use fewer vectors")
    return float(value)


def sinkhorn(a: NDArray[np.floating], b: NDArray[np.floating], *, entropy: float = 0.05, seed: int = 0) -> float:
    """Return the Sinkhorn divergence S(a, b) = OT(a, b) - OT(a, a) / 2 - OT(b, b) / 2, 0 for equal sets.

    OT is the minimum, over all transport plans, of the mean cost |x - y|^2 / 2 plus `entropy` times the KL divergence
    of the plan from independence (Feydy et al. 2019, equations 1 and 3). This corresponds to a blur of sqrt(entropy).

    Raises:
        DataError: Shapes do not match, a set is empty, or a value is not finite.
    """
    positive(entropy=entropy)
    comparable("the Sinkhorn divergence", a, b, least=1)
    x, y = sample_rows(a, LARGEST, seed=seed), sample_rows(b, LARGEST, seed=seed)
    return max(0.0, _entropic(x, y, entropy) - _entropic(x, x, entropy) / 2 - _entropic(y, y, entropy) / 2)


def _entropic(x: NDArray[np.floating], y: NDArray[np.floating], entropy: float) -> float:
    with _numpy_alone():
        import ot

    costs = _half_squared(x.astype(np.float64), y.astype(np.float64))
    fits_double = costs.max() < _LARGEST_EXPONENT * entropy
    plan = ot.sinkhorn(
        _uniform(len(x)),
        _uniform(len(y)),
        costs,
        entropy,
        method="sinkhorn" if fits_double else "sinkhorn_log",
        numItermax=_ITERATIONS,
        stopThr=1e-5,
        warn=False,
    )
    return float((plan * costs).sum() + entropy * xlogy(plan, plan * plan.size).sum())


def _half_squared(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |x - y|^2 / 2 for all (n, m) pairs by one matrix product, since `cdist` takes ten times as long."""
    costs = -(x @ y.T)
    costs += np.einsum("nd,nd->n", x, x)[:, None] / 2
    costs += np.einsum("nd,nd->n", y, y) / 2
    return np.maximum(costs, 0, out=costs)


def _numpy_alone() -> AbstractContextManager[None]:
    """Return a context in which POT is imported in half the time, with numpy as its only backend and without graphs."""
    return blocked_import("torch", "networkx")


def _uniform(count: int) -> NDArray[np.float64]:
    return np.full(count, 1 / count)
