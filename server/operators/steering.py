"""Uses of a census for the next round: exemplars for prompts, needs of labels, and weights of models.

Everything here is a function of public texts and of noised numbers (`server/operators/census.py`), so nothing can cost
privacy. A text's posterior is the probability of each label according to the records' means, which form a private
classifier. Within a label, texts are neither weighted nor chosen by their nearness to the records: with texts from real
models, such a choice selected a single style, at the cost of diversity and accuracy.
"""

from collections import Counter

import numpy as np

from server.operators.census import Floats, Labels

_MOST_OF_A_MODEL = 0.6


def most_probable_texts(posterior: Floats, models: Labels, size: int) -> list[list[int]]:
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
