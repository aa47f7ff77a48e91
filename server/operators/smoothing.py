"""Smoothed votes: ridge regression of noised votes on the candidates' public embeddings, separately for each label.

Noise is independent from one candidate to the next. Votes are not independent, since records near a candidate are also
near similar candidates. A regression on the embeddings therefore keeps most of the votes and little of the noise. The
regression is a function of public texts and of votes that are already noised, so it costs no privacy.

Let u_i be the principal directions of the centred embeddings of a label's n candidates, and l_i the squares of their
singular values, scaled to mean 1 over the at most n - 1 directions. The label's votes, minus their mean, are modelled
as

    votes = sum_i u_i z_i + e,    z_i ~ N(0, s l_i),    e ~ N(0, v)

The best prediction of the sum is obtained by ridge regression with penalty v / s. Neither v nor s is a setting; both
are common to all labels. v is at least the variance of the noise, and exceeds it by the part of the votes that
embeddings do not explain, such as the random selection of the few records that voted. Predictions are averaged over a
grid of s and v, up to the scores' own variance, weighted by their marginal likelihood. Laplace noise is treated as
Gaussian noise of the same variance.

A regression makes similar errors for similar candidates. If votes are nearly all noise, the candidates of a label that
it rates best all lie in one random region, which is worse than random candidates. Half of the prior is therefore on the
absence of a signal, s = 0, for which scores are unchanged: votes are smoothed only to the extent that they contain a
signal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

_NO_SPREAD = 1e-4
"""Singular value below which a direction of unit vectors is a rounding error."""

_SIGNALS = np.array([0.0, *2.0 ** -np.arange(13)])
"""Values of s, as multiples of the scores' variance."""

_PRIOR = np.log([1.0, *[1 / 13] * 13])
"""Log of the prior on the values of s, up to a constant: half of the prior is on 0 (no signal)."""

_NOISES = 9
"""Number of values of v, in a geometric series from the noise's variance to the scores' variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    """The candidates of one label, and the principal directions in which their vectors differ.

    Attributes:
        members: (n,) indices of the label's candidates among all candidates.
        directions: (n, r) principal directions u_i, orthonormal.
        spread: (r,) l_i.
    """

    members: NDArray[np.int64]
    directions: NDArray[np.float64]
    spread: NDArray[np.float64]


def smooth_votes(
    scores: NDArray[np.float64], vectors: NDArray[np.floating], labels: NDArray[np.integer], *, noise: float
) -> NDArray[np.float64]:
    """Predict each candidate's votes from the votes for all candidates of its label, as far as embeddings explain them.

    Args:
        scores: (n,) noised votes; or (k, n) for k kinds of votes on the same candidates, each smoothed separately.
        vectors: (n, dim) unit norm: the vectors that represented the candidates in the votes.
        labels: (n,) in [0, C).
        noise: Standard deviation of the noise in a score (`Tools.noise`), in votes.

    Returns:
        Smoothed scores in votes, in the shape of `scores`. Scores are returned unchanged if there is no noise or all
        are equal; the scores of a label are returned unchanged if the label has a single candidate or identical
        vectors. The predicted mean of a label is the mean of its scores, but at least 0, as votes are counts.
    """
    if noise == 0:
        return scores
    groups = [
        _principal(members, vectors[members].astype(np.float64))
        for members in (np.flatnonzero(labels == label) for label in np.unique(labels))
    ]
    return np.apply_along_axis(_smoothed, -1, scores, groups, noise**2) if len(labels) else scores


def _principal(members: NDArray[np.int64], vectors: NDArray[np.float64]) -> _Label:
    directions, singular, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    kept = singular > _NO_SPREAD
    spread = singular[kept] ** 2
    return _Label(members=members, directions=directions[:, kept], spread=spread * (len(members) - 1) / spread.sum())


def _smoothed(scores: NDArray[np.float64], groups: list[_Label], noise: float) -> NDArray[np.float64]:
    """Smooth scores of one kind, (n,); `noise` is a variance."""
    groups = [label for label in groups if len(label.spread)]
    deviations = [scores[label.members] - scores[label.members].mean() for label in groups]
    variance = float(sum(group @ group for group in deviations)) / max(1, sum(len(group) - 1 for group in deviations))
    if variance == 0:
        return scores
    s, v = variance * _SIGNALS[:, None, None], np.geomspace(noise, max(noise, variance), _NOISES)[:, None]
    fits = [_fit(deviation, label, s, v) for deviation, label in zip(deviations, groups, strict=True)]
    weights = softmax(_PRIOR[:, None] + sum(likelihood for likelihood, _ in fits))
    result = scores.copy()
    for label, (_, along) in zip(groups, fits, strict=True):
        signal = s[1:] * label.spread
        shrinkage = np.einsum("svi,sv->i", signal / (signal + v), weights[1:])
        label_scores, unchanged = scores[label.members], weights[0].sum()
        level = (1 - unchanged) * max(0.0, label_scores.mean())
        result[label.members] = unchanged * label_scores + level + label.directions @ (shrinkage * along)
    return result


def _fit(
    deviations: NDArray[np.float64], label: _Label, s: NDArray[np.float64], v: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one label's log-likelihood of the scores for all s and v, and the scores along its directions, (r,)."""
    along = label.directions.T @ deviations
    explained = s * label.spread + v
    # The directions that embeddings do not span have noise alone.
    others, residual = len(deviations) - 1 - len(along), max(0.0, float(deviations @ deviations - along @ along))
    twice = (np.log(explained) + along**2 / explained).sum(axis=-1) + (others * np.log(v) + residual / v)[:, 0]
    return -twice / 2, along
