"""Uses of a census: the texts' labels, exemplars for prompts, and weights of models and texts.

Everything here is a function of public texts and of noised numbers (`server/operators/census.py`), so nothing can cost
privacy. A text's posterior is the probability of each label according to the records' means, which form a private
classifier. Within a label, texts are neither weighted nor chosen by their nearness to the records: with texts from real
models, such a choice selected a single style, at the cost of diversity and accuracy.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from server.operators.census import Floats, Labels

_MOST_OF_A_MODEL = 0.6
_HALVINGS = 30


def exemplars(posterior: Floats, models: Labels, size: int) -> list[list[int]]:
    """Return the texts with the highest posterior for each label, regardless of the requested label.

    The exemplars of a label are chosen among the texts that have it as their most probable label, if there are at least
    `size` of them, and otherwise among all texts. At most 60 % (rounded up) come from one model, as long as there are
    texts from other models.

    Args:
        posterior: (n, C) probability of each label for each text.
        models: (n,) index of the model that wrote each text.
        size: Number of texts per label; fewer are returned if there are not enough.

    Returns:
        For each label, the indices of the chosen texts, best first.
    """
    likeliest, most = posterior.argmax(axis=1), int(np.ceil(_MOST_OF_A_MODEL * size))
    chosen = []
    for label, scores in enumerate(posterior.T):
        order = np.argsort(-scores, kind="stable")
        of_label = order[likeliest[order] == label]
        pool = of_label if len(of_label) >= size else order[:size]
        written: Counter[int] = Counter()
        within: list[int] = []
        beyond: list[int] = []
        for place in pool.tolist():
            written[int(models[place])] += 1
            (within if written[int(models[place])] <= most else beyond).append(place)
        chosen.append((within + beyond)[:size])
    return chosen


def needs(posterior: Floats, shares: Floats, coming: int) -> Floats:
    """Return the (C,) relative numbers of the next round's texts that the labels need, above 0.

    The target for a label is the average of two numbers of texts: an equal part of all texts, including those to come,
    and the label's estimated proportion of all these texts. The label needs the difference between this target and its
    current number of texts, counted by most probable label, but at least a quarter of an equal part of the coming
    texts.

    Args:
        posterior: (n, C) probability of each label for each text so far.
        shares: (C,) estimated proportions of the labels.
        coming: Number of texts to come, at least 1.
    """
    labels = len(shares)
    aims = (len(posterior) + coming) * (0.5 / labels + 0.5 * shares)
    there = np.bincount(posterior.argmax(axis=1), minlength=labels)
    return np.asarray(np.maximum(aims - there, 0.25 * coming / labels))


def model_weights(posterior: Floats, requested: Labels, models: Labels, model_count: int) -> Floats:
    """Return the models' (K,) weights, which sum to 1: the squared mean posterior of the requested labels, normalised.

    A model without texts gets the mean over all models.
    """
    right = posterior[np.arange(len(requested)), requested]
    sizes = np.bincount(models, minlength=model_count)
    sums = np.bincount(models, weights=right, minlength=model_count)
    squares = np.where(sizes > 0, sums / np.maximum(1, sizes), right.mean()) ** 2
    return np.asarray(squares / squares.sum())


def most_probable_labels(posterior: Floats) -> NDArray[np.int64]:
    """Return each text's most probable label, (n,); a label without texts gets the text most probable for it.

    That text is never taken from a label that has only one text.
    """
    labels = posterior.argmax(axis=1)
    for label in np.flatnonzero(np.bincount(labels, minlength=posterior.shape[1]) == 0):
        sizes = np.bincount(labels, minlength=posterior.shape[1])
        free = np.where(sizes[labels] > 1, posterior[:, label], -1.0)
        if free.max() >= 0:
            labels[free.argmax()] = label
    return np.asarray(labels)


def kept_by_gate(posterior: Floats, labels: Labels) -> NDArray[np.int64]:
    """Return the indices of texts whose most probable label is the requested one; at least one for each label."""
    kept = posterior.argmax(axis=1) == labels
    for label in np.unique(labels):
        of_label = labels == label
        if not kept[of_label].any():
            kept[np.where(of_label, posterior[:, label], -1.0).argmax()] = True
    return np.flatnonzero(kept)


def text_weights(labels: Labels, shares: Floats, *, floor: float) -> Floats:
    """Return (n,) text weights with mean 1 that give the labels these proportions, as nearly as `floor` allows.

    The weight of a label is its proportion in `shares` divided by its proportion of the texts. If the effective sample
    is below `floor`, the weights are raised to the largest power below 1 at which the effective sample reaches `floor`;
    at power 0 all weights are equal.
    """
    exact = shares[labels] / np.bincount(labels, minlength=len(shares))[labels]
    low, high = 0.0, 1.0
    if effective_sample(exact) >= floor:
        low = 1.0
    else:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if effective_sample(exact**middle) >= floor else (low, middle)
    weights = exact**low
    return np.asarray(weights / weights.mean())


def effective_sample(weights: Floats) -> float:
    """Return the effective sample size, (sum)^2 / sum of squares, as a fraction of the number of weights."""
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))
