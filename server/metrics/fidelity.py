"""Distances between two sets of vectors: by Gaussians, nearest neighbours, clusters and optimal transport.

Gaussians: the Fréchet distance of embeddings (`fid`), with its standard error.

Neighbours (`overlap`): each vector of a set is the centre of a ball that reaches to its k-th nearest neighbour in that
set; the union of the balls estimates the support of the set. Precision is the fraction of synthetic vectors within the
real set's balls, recall is the fraction of real vectors within the synthetic set's balls (Kynkäänniemi et al. 2019,
equations 1 and 2). Density is based on the number of real balls that contain a synthetic vector, so that one outlier's
large ball cannot inflate it; coverage is the fraction of real balls that contain a synthetic vector (Naeem et al. 2020,
equations 3 and 4).

Clusters (`divergences`): all vectors are scaled to norm 1, projected onto the principal components that explain 90% of
their variance and clustered together by k-means; a set's histogram is the fraction of its vectors in each cluster.
MAUVE is the area under the curve of divergences of both histograms from their mixtures (Pillutla et al. 2021). KL and
total variation use the same histograms, as in Aug-PE's program; that program replaces fractions of 0 by 1e-8.

Transport: `wasserstein` and `sinkhorn`.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from common.errors import DataError
from common.system.extras import blocked_import, needs
from server.metrics.intervals import jackknife

DEFINITION = (
    "FID: squared Frechet distance of Gaussians in the encoder's space, biased upward for few texts. "
    "Of histograms over k-means clusters, one for ten vectors of the smaller set, at most 5,000 vectors of each set: "
    "MAUVE with scaling 5 (Pillutla et al. 2021; the best of five runs of k-means); KL of the synthetic from "
    "the real histogram in nats, after adding half a vector to each cluster; total variation, half the L1 distance. "
    "By k nearest neighbours, Euclidean, of at most 10,000 vectors of each set: precision and recall with k = 3 "
    "(Kynkäänniemi et al. 2019), F1 their harmonic mean; density and coverage with k = 5 (Naeem et al. 2020). "
    "Of at most 2,000 vectors of each set: Wasserstein-1 with Euclidean distances, exact (network simplex); Sinkhorn "
    "divergence with cost |x - y|^2 / 2 and entropy 0.05, debiased (Feydy et al. 2019)."
)
"""Text that defines the figures in reports."""
OVERLAP = ("precision", "recall", "f1", "density", "coverage")
DIVERGENCES = ("mauve", "kl", "total_variation")
"""Names of the figures of `overlap` and of `divergences`."""

Vectors = NDArray[np.floating]
_Gaussian = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Mean (d,), and a matrix R (min(n, d), d) such that RᵀR is the covariance."""

_GROUPS = 5
FREEDOM = _GROUPS - 1
"""Degrees of freedom of the squared `fid_error`."""

_NEIGHBOURS, _DENSITY_NEIGHBOURS = 3, 5
_ROWS = 1024
"""Number of rows of a distance matrix computed at once, which take 40 MB for 10,000 columns."""

_MOST_NEIGHBOURS, _MOST_CLUSTERED, _MOST_MOVED = 10_000, 5000, 2000
"""Largest numbers of vectors of each set in the figures of neighbours, of clusters and of transport."""

_ENTROPY = 0.05
_LARGEST_EXPONENT = 600
"""Largest exponent for which logarithms are not needed; a double can still represent exp(-600)."""


def fid(a: Vectors, b: Vectors) -> float:
    """Return the Fréchet distance between the Gaussians fitted to two sets of vectors (Heusel et al. 2017, equation 6).

        |μ_a − μ_b|² + tr(Σ_a) + tr(Σ_b) − 2 tr((Σ_a Σ_b)^½)

    With centred rows A and B scaled so that Σ_a = AᵀA and Σ_b = BᵀB, the eigenvalues of Σ_a Σ_b are the squared
    singular values of ABᵀ, so the last trace is the nuclear norm of ABᵀ. This method needs no matrix root, and is exact
    even for singular covariances, which occur with fewer rows than dimensions. A and B are replaced by their triangular
    factors, which are at most (d, d).

    Args:
        a: (n, d), n >= 2.
        b: (m, d), m >= 2.

    Returns:
        The squared distance, as FID is usually stated; 0 for equal sets. Covariances divide by n − 1. The figure is
        biased upward for small n and m: compare it only between sets of equal sizes.

    Raises:
        DataError: Shapes do not match, a set has fewer than 2 rows, or a value is not finite.
    """
    comparable("FID", a, b)
    return _frechet(_gaussian(a), _gaussian(b))


def fid_error(a: Vectors, b: Vectors) -> float | None:
    """Return the FID's standard error due to the choice of rows of `a`; None for fewer than ten rows.

    The estimate is a jackknife with five groups (Efron and Stein 1981). Rows are assigned by cycling through the
    groups, so that every label and model has about the same number of rows in each group. `b` is kept fixed, since sets
    that are compared with the same real texts share its error. For few texts a jackknife overestimates the error.

    Args:
        a: (n, d).
        b: (m, d), m >= 2.

    Raises:
        DataError: As in `fid`.
    """
    if len(a) < 2 * _GROUPS:
        return None
    group = np.arange(len(a)) % _GROUPS
    comparable("FID", a, b)
    fixed = _gaussian(b)
    without = [_frechet(_gaussian(a[group != left_out]), fixed) for left_out in range(_GROUPS)]
    return float(np.sqrt(jackknife(without)[0]))


def overlap(synthetic: Vectors, real: Vectors, *, seed: int = 0) -> dict[str, float]:
    """Return precision, recall, their harmonic mean F1, density and coverage of (n, d) and (m, d), n and m at least 6.

    All are from 0 to 1, except that density may exceed 1.

    Raises:
        DataError: Shapes do not match, there are too few rows, or a value is not finite.
    """
    comparable("precision, recall, density and coverage", synthetic, real, least=_DENSITY_NEIGHBOURS + 1)
    a, b = (_drawn(vectors, _MOST_NEIGHBOURS, seed).astype(np.float32) for vectors in (synthetic, real))
    (radii_a,) = _radii(a, [_NEIGHBOURS])
    radii_b, radii_density = _radii(b, [_NEIGHBOURS, _DENSITY_NEIGHBOURS])
    within_real = np.zeros(len(a), dtype=bool)
    within_synthetic, covered = np.zeros((2, len(b)), dtype=bool)
    balls = 0
    for first in range(0, len(a), _ROWS):
        rows = slice(first, first + _ROWS)
        distances = _squared(a[rows], b)
        within_real[rows] = (distances <= radii_b).any(axis=1)
        within_synthetic |= (distances <= radii_a[rows, None]).any(axis=0)
        near = distances <= radii_density
        balls += int(near.sum())
        covered |= near.any(axis=0)
    precision, recall = float(within_real.mean()), float(within_synthetic.mean())
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "density": balls / (_DENSITY_NEIGHBOURS * len(a)),
        "coverage": float(covered.mean()),
    }


def divergences(synthetic: Vectors, real: Vectors, *, seed: int = 0) -> dict[str, float]:
    """Return MAUVE, KL and total variation between (n, d) and (m, d) vectors, with n and m at least 20.

    Returns:
        MAUVE, from 0 to 1 for equal histograms; the smoothed KL(synthetic || real) in nats, at least 0; and the total
        variation distance, from 0 for equal histograms to 1.

    Raises:
        DataError: Shapes do not match, there are too few rows, a value is not finite, or all vectors are the same.
        ConfigError: mauve-text is not installed; it is an optional extra because its licence is GPLv3.
    """
    comparable("MAUVE", synthetic, real, least=20)
    # mauve-text's principal components divide by the variance.
    if not np.ptp(np.concatenate([synthetic, real]), axis=0).any():
        raise DataError("vectors for MAUVE", expected="different ones", got="one and the same")
    # On import faiss logs an error for each of its builds that this machine does not support.
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    needs("MAUVE, KL and total variation", "mauve", extra="mauve")
    with blocked_import("torch", "transformers"):  # for texts, of which it would make vectors
        from mauve import compute_mauve

    p, q = (_drawn(vectors, _MOST_CLUSTERED, seed) for vectors in (synthetic, real))
    with _without_advice():
        # One run of 50 iterations moves MAUVE of 100 texts between 0.3 and 0.86, five of 500 by a deviation of 0.08.
        result = compute_mauve(p, q, kmeans_num_redo=5, kmeans_max_iter=500, seed=seed + 1)
    smooth_p, smooth_q = _smoothed(result.p_hist, len(p)), _smoothed(result.q_hist, len(q))
    return {
        "mauve": float(result.mauve),
        "kl": float((smooth_p * np.log(smooth_p / smooth_q)).sum()),
        "total_variation": float(np.abs(result.p_hist - result.q_hist).sum() / 2),
    }


def wasserstein(a: Vectors, b: Vectors, *, seed: int = 0) -> float:
    """Return the Wasserstein-1 distance between the rows of (n, d) and (m, d).

    It is the least mean distance over which one set can be transported to the other.

    Raises:
        DataError: Shapes do not match, a set is empty, a value is not finite, or the solver does not converge.
    """
    comparable("the Wasserstein distance", a, b, least=1)
    costs = cdist(_drawn(a, _MOST_MOVED, seed), _drawn(b, _MOST_MOVED, seed))
    value, log = _transport().emd2([], [], costs, numItermax=10_000_000, log=True)
    if log["warning"]:
        raise DataError("Wasserstein distance", expected="an optimum", got="none", do="Use fewer vectors")
    return float(value)


def sinkhorn(a: Vectors, b: Vectors, *, seed: int = 0) -> float:
    """Return the Sinkhorn divergence S(a, b) = OT(a, b) - OT(a, a) / 2 - OT(b, b) / 2, 0 for equal sets.

    OT is the minimum, over all transport plans, of the mean cost |x - y|^2 / 2 plus 0.05 times the KL divergence of the
    plan from independence (Feydy et al. 2019, equations 1 and 3). This corresponds to a blur of sqrt(0.05).

    Raises:
        DataError: Shapes do not match, a set is empty, or a value is not finite.
    """
    comparable("the Sinkhorn divergence", a, b, least=1)
    x, y = (_drawn(vectors, _MOST_MOVED, seed).astype(np.float64) for vectors in (a, b))
    return max(0.0, _entropic(x, y) - _entropic(x, x) / 2 - _entropic(y, y) / 2)


def comparable(what: str, *sets: Vectors, least: int = 2) -> None:
    """Check that a metric can compare these sets of vectors.

    Raises:
        DataError: Shapes do not match, a set has fewer than `least` rows, or a value is not finite.
    """
    if any(vectors.ndim != 2 or vectors.shape[1:] != sets[0].shape[1:] for vectors in sets):
        raise DataError(f"vectors for {what}", expected="two matrices of one width", got="other shapes")
    if min(map(len, sets)) < least:
        do = "Give more test texts (task.test) or write more texts (method.samples), whichever are too few"
        raise DataError(what, expected=f"at least {least} texts in each set", got="fewer", do=do)
    if not all(np.isfinite(vectors).all() for vectors in sets):
        raise DataError(f"vectors for {what}", expected="finite values", got="a value that is not")


def _drawn(vectors: Vectors, most: int, seed: int) -> Vectors:
    """Return all rows, or a random sample of `most` rows without replacement, determined by the experiment seed."""
    if len(vectors) <= most:
        return vectors
    return vectors[np.sort(np.random.default_rng(seed).choice(len(vectors), most, replace=False))]


def _gaussian(vectors: Vectors) -> _Gaussian:
    mean = vectors.mean(axis=0, dtype=np.float64)
    return mean, np.asarray(np.linalg.qr((vectors - mean) / np.sqrt(len(vectors) - 1), mode="r"))


def _frechet(a: _Gaussian, b: _Gaussian) -> float:
    (mean_a, root_a), (mean_b, root_b) = a, b
    shared = np.linalg.svd(root_a @ root_b.T, compute_uv=False).sum()
    distance = ((mean_a - mean_b) ** 2).sum() + (root_a**2).sum() + (root_b**2).sum() - 2 * shared
    # Equal sets may come out below 0 by rounding.
    return max(0.0, float(distance))


def _radii(vectors: NDArray[np.float32], neighbours: list[int]) -> NDArray[np.float32]:
    """Return each vector's squared distance to its k-th nearest neighbour, (ks, n)."""
    radii = np.empty((len(neighbours), len(vectors)), dtype=np.float32)
    for first in range(0, len(vectors), _ROWS):
        rows = np.arange(first, min(first + _ROWS, len(vectors)))
        distances = _squared(vectors[rows], vectors)
        distances[np.arange(len(rows)), rows] = np.inf  # so that the nearest neighbour is at position 0
        places = [k - 1 for k in neighbours]
        radii[:, rows] = np.partition(distances, places, axis=1)[:, places].T
    return radii


def _squared(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, m) squared distances; values below the rounding error become 0, the distance of duplicates."""
    norms = np.einsum("nd,nd->n", a, a)[:, None] + np.einsum("nd,nd->n", b, b)
    distances: NDArray[np.float32] = a @ b.T
    distances *= -2
    distances += norms
    norms *= np.float32(1e-6)
    distances[distances < norms] = 0
    return distances


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Hide faiss's warnings about few points per cluster, which its C++ code prints directly."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _smoothed(shares: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Return the fractions, made positive by adding half a vector to each cluster (Krichevsky and Trofimov)."""
    counts = shares * rows + 0.5
    return np.asarray(counts / counts.sum())


def _transport() -> Any:
    """Return POT, imported in half the time with numpy as its only backend and without graphs."""
    with blocked_import("torch", "networkx"):
        import ot

    return ot


def _entropic(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    costs = cdist(x, y, "sqeuclidean") / 2
    method = "sinkhorn" if costs.max() < _LARGEST_EXPONENT * _ENTROPY else "sinkhorn_log"
    options = {"method": method, "numItermax": 2000, "stopThr": 1e-5, "warn": False}
    plan = _transport().sinkhorn([], [], costs, _ENTROPY, **options)
    return float((plan * costs).sum() + _ENTROPY * xlogy(plan, plan * plan.size).sum())
