"""Comparison of two sets of vectors by histograms over clusters: MAUVE, Kullback-Leibler divergence, total variation.

All vectors are scaled to norm 1, projected onto the principal components that explain 90 % of their variance and
clustered together by k-means; a set's histogram is the fraction of its vectors in each cluster. MAUVE is the area under
the curve of divergences of both histograms from their mixtures (Pillutla et al. 2021). KL and total variation use the
same histograms, as in Aug-PE's program; that program replaces fractions of 0 by 1e-8.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.system.extras import blocked_import, needs
from server.metrics.fidelity import comparable, sample_rows

LARGEST = 5000
DEFINITION = (
    "Of histograms over k-means clusters, one for ten vectors of the smaller set, at most 5,000 vectors of each set: "
    "MAUVE with scaling 5 (Pillutla et al. 2021; the best of five runs of k-means); KL of the synthetic from "
    "the real histogram in nats, after adding half a vector to each cluster; total variation, half the L1 distance."
)
"""Text that defines the figures in reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergences:
    """Divergences of two histograms.

    Attributes:
        mauve: MAUVE, 0 to 1, 1 for equal histograms.
        kl: KL(synthetic || real) in nats, smoothed, at least 0.
        total_variation: Total variation distance, 0 to 1, 0 for equal histograms.
        clusters: Number of clusters.
    """

    mauve: float
    kl: float
    total_variation: float
    clusters: int


def divergences(synthetic: NDArray[np.floating], real: NDArray[np.floating], *, seed: int = 0) -> Divergences:
    """Return MAUVE, KL and total variation between (n, d) and (m, d) vectors, with n and m at least 20.

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
    needs("MAUVE, KL and total variation", "mauve", extra="mauve")  # GPLv3
    with blocked_import("torch", "transformers"):  # for texts, of which it would make vectors
        from mauve import compute_mauve

    p, q = sample_rows(synthetic, LARGEST, seed=seed), sample_rows(real, LARGEST, seed=seed)
    with _without_advice():
        # One run of 50 iterations moves MAUVE of 100 texts between .3 and .86, five of 500 by a deviation of .08.
        result = compute_mauve(p, q, kmeans_num_redo=5, kmeans_max_iter=500, seed=seed + 1)
    smooth_p, smooth_q = (_smoothed(shares, len(rows)) for shares, rows in ((result.p_hist, p), (result.q_hist, q)))
    return Divergences(
        mauve=float(result.mauve),
        kl=float((smooth_p * np.log(smooth_p / smooth_q)).sum()),
        total_variation=float(np.abs(result.p_hist - result.q_hist).sum() / 2),
        clusters=len(result.p_hist),
    )


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
