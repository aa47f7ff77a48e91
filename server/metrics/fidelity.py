"""Fréchet distance of two sets of embeddings, with checks and sampling for all metrics that compare two sets."""

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from server.metrics.intervals import jackknife

_Gaussian = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Mean (d,), and a matrix R (min(n, d), d) such that RᵀR is the covariance."""
_GROUPS = 5
FREEDOM = _GROUPS - 1
"""Degrees of freedom of the squared `fid_error`."""
_BLOCK = 16_384
"""Number of rows converted to float64 at once, which take 50 MB at 384 dimensions."""


def fid(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
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
    return _distance(_gaussian(a), _gaussian(b))


def _distance(a: _Gaussian, b: _Gaussian) -> float:
    (mean_a, root_a), (mean_b, root_b) = a, b
    shared = np.linalg.svd(root_a @ root_b.T, compute_uv=False).sum()
    distance = ((mean_a - mean_b) ** 2).sum() + (root_a**2).sum() + (root_b**2).sum() - 2 * shared
    # Equal sets may come out below 0 by rounding.
    return max(0.0, float(distance))


def fid_error(a: NDArray[np.floating], b: NDArray[np.floating]) -> float | None:
    """Return the FID's standard error due to the choice of rows of `a`.

    The estimate is a jackknife with five groups (Efron and Stein 1981). Rows are assigned by cycling through the
    groups, so that every label and model has about the same number of rows in each group. `b` is kept fixed, since sets
    that are compared with the same real texts share its error. For few texts a jackknife overestimates the error.

    Args:
        a: (n, d).
        b: (m, d), m >= 2.

    Returns:
        The standard error; None for fewer than ten rows of `a`.

    Raises:
        DataError: As in `fid`.
    """
    if len(a) < 2 * _GROUPS:
        return None
    group = np.arange(len(a)) % _GROUPS
    comparable("FID", a, b)
    fixed = _gaussian(b)
    without = [_distance(_gaussian(a[group != left_out]), fixed) for left_out in range(_GROUPS)]
    return float(np.sqrt(jackknife(without)[0]))


def comparable(what: str, *sets: NDArray[np.floating], least: int = 2) -> None:
    """Check that a metric can compare these sets of vectors.

    Raises:
        DataError: Shapes do not match, a set has fewer than `least` rows, or a value is not finite.
    """
    if any(vectors.ndim != 2 or vectors.shape[1:] != sets[0].shape[1:] for vectors in sets):
        raise DataError(f"vectors for {what}", expected="two matrices of one width", got="other shapes")
    if min(map(len, sets)) < least:
        raise DataError(f"vectors for {what}", expected=f"at least {least} rows in each set", got="fewer")
    if not all(np.isfinite(vectors).all() for vectors in sets):
        raise DataError(f"vectors for {what}", expected="finite values", got="a value that is not")


def sample_rows(vectors: NDArray[np.floating], most: int, *, seed: int = 0) -> NDArray[np.floating]:
    """Return all rows, or a random sample of `most` rows without replacement, determined by the experiment seed."""
    if len(vectors) <= most:
        return vectors
    return vectors[np.sort(np.random.default_rng(seed).choice(len(vectors), most, replace=False))]


def _gaussian(vectors: NDArray[np.floating]) -> _Gaussian:
    mean, scale = vectors.mean(axis=0, dtype=np.float64), np.sqrt(len(vectors) - 1)
    blocks = (vectors[first : first + _BLOCK] for first in range(0, len(vectors), _BLOCK))
    factors = [np.linalg.qr((rows - mean) / scale, mode="r") for rows in blocks]
    # The factor of the stacked factors of the blocks is the factor of all rows.
    return mean, np.asarray(factors[0] if len(factors) == 1 else np.linalg.qr(np.concatenate(factors), mode="r"))
