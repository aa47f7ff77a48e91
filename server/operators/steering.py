"""What estimates of the records are used for: models, exemplars, labels and weights of synthetic texts.

Everything here is a function of public texts and of noised numbers (`server/operators/census.py`), so nothing can cost
privacy. Nothing chooses the nearest few: on real models that picked one style, and lost diversity and accuracy.
Instead sets and weights are chosen whose mean meets the estimate, within quotas and with a floor on the effective
sample size, (sum of weights)^2 / sum of squares.
"""

import numpy as np
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from server.operators.census import Census, Estimates, Floats, Labels, Vectors

_LEAST_SLACK = 1e-3
"""Standard deviation: no mean of synthetic texts need be met more closely, with or without noise."""
_LEAST_DEVIATION = 1e-9
"""Squared radii: doubts of a census without noise are differences in this unit."""
_HALVINGS = 30


def exemplars(
    coordinates: Floats, models: Labels, target: Floats, size: int, *, nearer: float = 0.5
) -> NDArray[np.int64]:
    """A small set of one label's texts whose mean meets the target, from the nearer part of them (herding).

    One text after the other is taken: the one that brings the mean of those taken closest to the target. A model may
    give at most its equal part of the set, rounded up, as long as another model has texts left.

    Args:
        coordinates: (n, k) of the texts.
        models: (n,) number of the model that wrote each text.
        target: (k,) estimated mean of the records.
        size: Number of texts to take; all if there are no more.
        nearer: Share of the texts that is the nearer part; of fewer texts than `size`, the nearest are added.

    Returns:
        Positions in the order in which they were taken.
    """
    order = np.argsort(np.linalg.norm(coordinates - target, axis=1), kind="stable")
    part = order[: max(min(size, len(order)), round(nearer * len(order)))]
    writers, places = np.unique(models[part], return_inverse=True)
    quota = -(-size // max(1, len(writers)))
    taken: list[int] = []
    free = np.ones(len(part), dtype=bool)
    total = np.zeros(len(target))
    while free.any() and len(taken) < size:
        given = np.bincount(places[~free], minlength=len(writers))
        allowed = free & (given[places] < quota)
        allowed = allowed if allowed.any() else free
        distances = np.linalg.norm((total + coordinates[part]) / (len(taken) + 1) - target, axis=1)
        best = int(np.where(allowed, distances, np.inf).argmin())
        free[best] = False
        total += coordinates[part[best]]
        taken.append(int(part[best]))
    return np.array(taken, dtype=np.int64)


def doubts(
    vectors: Vectors, labels: Labels, census: Census, estimates: Estimates
) -> tuple[Floats, NDArray[np.int64]]:
    """Whether a text is of another label, by the released means, which are a private nearest-mean classifier.

    For a text at u and the means v of its own label and w of the nearest other one, with independent noise of standard
    deviations a and b in each direction, the noise in |u - v|^2 - |u - w|^2 has a standard deviation of about
    2 sqrt(|u - v|^2 a^2 + |u - w|^2 b^2).

    Args:
        vectors: (n, dim) of the texts.
        labels: (n,) their labels, of at least two.
        census: Where the means are.
        estimates: The means.

    Returns:
        (n,) that difference in standard deviations, above 0 if another label is nearer; (n,) the nearest other label.
    """
    means = census.subspace.absolute(census.subspace.centres) + estimates.means
    places = census.subspace.absolute(vectors)
    # |u - v|^2 without a large array of differences.
    squared = (places**2).sum(axis=1)[:, None] - 2 * places @ means.T + (means**2).sum(axis=1)
    squared = np.maximum(0.0, squared)
    rows = np.arange(len(places))
    others = squared.copy()
    others[rows, labels] = np.inf
    nearest = others.argmin(axis=1)
    own, other, noise = squared[rows, labels], squared[rows, nearest], estimates.mean_noise**2
    deviations = 2 * np.sqrt(own * noise[labels] + other * noise[nearest])
    return (own - other) / np.maximum(deviations, _LEAST_DEVIATION), nearest.astype(np.int64)


def doubtful(scores: Floats, labels: Labels, *, margin: float, most: float = 0.5) -> NDArray[np.bool_]:
    """(n,) texts whose doubt exceeds the margin: of each label at most the share `most`, those with the most doubt."""
    out = np.zeros(len(scores), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        order = members[np.argsort(-scores[members], kind="stable")]
        out[order[: int(most * len(order))]] = True
    return np.asarray(out & (scores > margin))


def model_weights(weights: Floats, models: Labels, model_count: int) -> Floats:
    """(K,) shares of the models, sum 1: the mean weight of each one's texts, if texts were weighed by the estimates.

    The more a model's texts lie where the records are, the larger their weights. A model without texts has the mean.

    Args:
        weights: (n,) of `text_weights`.
        models: (n,) number of the model that wrote each text.
        model_count: K.
    """
    sizes = np.bincount(models, minlength=model_count)
    sums = np.bincount(models, weights=weights, minlength=model_count)
    means = np.where(sizes > 0, sums / np.maximum(1, sizes), weights.mean())
    return np.asarray(means / means.sum())


def text_weights(coordinates: Floats, labels: Labels, estimates: Estimates, *, floor: float) -> Floats:
    """(n,) weights of texts, mean 1, whose shares of labels and means in each label meet the estimates (raking).

    Of all such weights these are the most equal ones (`tilted`), with an effective sample of at least `floor` times n.
    """
    label_count, directions = estimates.means.shape
    width = directions + 1
    # Each text has a 1 for its label, and its coordinates in the block of the label; all others are 0.
    blocks = np.concatenate([np.ones((len(labels), 1)), coordinates], axis=1)
    columns = (labels[:, None] * width + np.arange(width)).ravel()
    starts = np.arange(len(labels) + 1) * width
    features = scipy.sparse.csr_array((blocks.ravel(), columns, starts), shape=(len(labels), label_count * width))
    shares = estimates.shares[:, None]
    targets = shares * np.concatenate([np.ones((label_count, 1)), estimates.means], axis=1)
    noise = np.repeat(estimates.mean_noise[:, None], directions, axis=1)
    slack = np.concatenate([np.full((label_count, 1), estimates.share_noise), shares * noise], axis=1)
    return len(labels) * tilted(features, targets.ravel(), slack.ravel(), floor)


def tilted(
    features: Floats | scipy.sparse.csr_array, target: Floats, slack: Floats, floor: float
) -> Floats:
    """Weights with the least relative entropy to equal ones whose mean features meet a target, within a slack.

    They are w_i = exp(l . f_i) / sum, where l minimises log mean exp(l . (f_i - t)) + 1/2 sum_j v_j l_j^2 with the
    squared slacks v: a mean may miss its target by more, the more noise the target has. If the effective sample is
    below `floor`, l is scaled down until it is not; it shrinks as l grows, so bisection finds the scale.

    Args:
        features: (n, d).
        target: (d,).
        slack: (d,) standard deviations.
        floor: Least effective sample size, as a share of n, 0 to 1.

    Returns:
        (n,) weights above 0, sum 1.
    """
    variances = np.maximum(slack, _LEAST_SLACK) ** 2

    def dual(tilt: Floats) -> tuple[float, Floats]:
        exponents = features @ tilt
        met = features.T @ softmax(exponents)
        value = logsumexp(exponents) - float(target @ tilt) + 0.5 * float(variances @ tilt**2)
        return value, met - target + variances * tilt

    tilt = scipy.optimize.minimize(dual, np.zeros(len(target)), jac=True, method="L-BFGS-B").x
    exponents = features @ tilt
    low, high = 0.0, 1.0
    if effective_sample(softmax(exponents)) >= floor:
        low = 1.0
    else:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if effective_sample(softmax(middle * exponents)) >= floor else (low, middle)
    return np.asarray(softmax(low * exponents))


def effective_sample(weights: Floats) -> float:
    """Effective sample size as a share of the number of weights: 1 if they are equal."""
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))
