"""Smoothed votes: ridge regression of noised votes on the candidates' public embeddings, label by label.

Noise is independent from one candidate to the next; votes are not, since records near a candidate are also near those
like it. So a regression on the embeddings keeps most of the votes and little of the noise. It is a function of public
texts and of votes that already carry their noise: it costs no privacy.

The model of a label's n votes, less their mean, with u_i the principal directions of its centred embeddings and l_i the
squares of their singular values, scaled to mean 1 over the n - 1 directions that there are at most:

    votes = sum_i u_i z_i + e,    z_i ~ N(0, s l_i),    e ~ N(0, v)

The best prediction of the sum is ridge regression with penalty v / s. Neither is a setting. v is at least the variance
of the planned noise; it is larger by what embeddings do not explain, such as which few records voted, and by noise of
more parties than planned. Predictions are averaged over a grid of s and v, up to the scores' own variance, by their
marginal likelihood. Laplace noise counts as Gaussian of its variance.
"""

import numpy as np
from numpy.typing import NDArray

_NO_SPREAD = 1e-4
"""Singular value below which a direction of unit vectors is rounding error."""

_SIGNALS = 2.0 ** -np.arange(13)
"""s, in variances of the scores. Never 0: however little there is to see, the order of candidates comes from it."""

_NOISES = 9
"""Number of values of v, from the planned noise to the scores' variance in equal ratios."""


def smoothed(
    scores: NDArray[np.float64], vectors: NDArray[np.floating], labels: NDArray[np.integer], *, noise: float
) -> NDArray[np.float64]:
    """Predicted votes, from the votes of all candidates of the same label.

    Args:
        scores: (n,) noised votes; or (k, n): k kinds of votes for the same candidates, each smoothed by itself.
        vectors: (n, dim) unit norm: what the candidates were voted on by.
        labels: (n,) in [0, C).
        noise: Standard deviation of the planned noise of a vote (`Tools.noise`), in votes.

    Returns:
        Of the shape of `scores`, in votes. Without noise the scores themselves. A label's mean stays, but is at least
        0, as votes are counts; all its candidates have the mean if there is one alone, or if all vectors are equal.
    """
    if noise == 0:
        return scores
    predicted = np.empty_like(scores)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        directions, spread = _principal(vectors[members].astype(np.float64))
        predicted[..., members] = np.apply_along_axis(_ridge, -1, scores[..., members], directions, spread, noise**2)
    return predicted


def _principal(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, r) orthonormal principal directions of the candidates, and (r,) their l_i."""
    directions, singular, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    kept = singular > _NO_SPREAD
    spread = singular[kept] ** 2
    return directions[:, kept], spread * (len(vectors) - 1) / spread.sum()


def _ridge(
    scores: NDArray[np.float64], directions: NDArray[np.float64], spread: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """(n,) prediction of one label's scores; `noise` is a variance."""
    level, variance = max(0.0, float(scores.mean())), float(scores.var(ddof=1)) if len(spread) else 0.0
    if variance == 0:
        return np.full(len(scores), level)
    deviations = scores - scores.mean()
    along = directions.T @ deviations
    signal = variance * _SIGNALS[:, None, None] * spread
    v = np.geomspace(noise, max(noise, variance), _NOISES)[None, :, None]
    # The directions that embeddings do not span have noise alone.
    others = len(scores) - 1 - len(along)
    residual = max(0.0, deviations @ deviations - along @ along)
    evidence = (np.log(signal + v) + along**2 / (signal + v)).sum(axis=-1) + (others * np.log(v) + residual / v)[..., 0]
    weights = np.exp((evidence.min() - evidence) / 2)
    shrinkage = np.einsum("svi,sv->i", signal / (signal + v), weights / weights.sum())
    return np.asarray(level + directions @ (shrinkage * along))
