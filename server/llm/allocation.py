"""Allocation of a round's texts to the models and labels, in whole numbers and without loss by rounding."""

import numpy as np
from numpy.typing import NDArray

from common.errors import InternalError


def allocate(total: int, weights: NDArray[np.floating]) -> NDArray[np.int64]:
    """Split a round's texts over models, N_k = [(N/T) w_k] (equation 2), without loss by rounding.

    By the largest-remainder method, each model gets the integer part of its quota (N/T) w_k. The remaining texts go,
    one each, to the models with the largest remainders; ties go to the lower index. Each N_k is then within 1 of its
    quota.

    Args:
        total: N/T, the number of texts in this round.
        weights: (K,) values of at least 0, not all 0.

    Returns:
        (K,) counts with sum `total`.

    Raises:
        InternalError: A weight is negative or not finite, or all are 0.
    """
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InternalError("weights", expected="at least 0, finite and not all 0", got=weights)
    shares = total * weights / weights.sum()
    counts: NDArray[np.int64] = np.floor(shares).astype(np.int64)
    # Rounded, so that equal shares stay equal in any order of the preceding arithmetic.
    fractions = np.round(shares - counts, 9)
    counts[np.argsort(-fractions, kind="stable")[: total - counts.sum()]] += 1
    return counts


def dealt(counts: NDArray[np.integer], label_counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Split each model's texts over labels that need different numbers of texts.

    All texts are put in one row, with the texts of each label spread evenly over it. The first model takes its number
    of texts from the beginning of the row, and each further model takes the texts that follow.

    Args:
        counts: (K,) number of texts of each model.
        label_counts: (C,) number of texts of each label, with the same total.

    Returns:
        (K, C): rows sum to `counts`, columns to `label_counts`.
    """
    labels = np.repeat(np.arange(len(label_counts)), label_counts)
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in label_counts if count] or [np.zeros(0)])
    row = labels[np.lexsort((labels, places))]
    parts = np.split(row, np.cumsum(counts)[:-1])
    return np.stack([np.bincount(part, minlength=len(label_counts)) for part in parts]).astype(np.int64)


def per_label(counts: NDArray[np.integer], label_count: int, dealt_before: int = 0) -> NDArray[np.int64]:
    """Split each model's texts over labels, as evenly as integers allow for each model and for each label.

    Each model deals its texts out by cycling through the labels, starting after the last label of the model before it.

    Args:
        counts: (K,) number of texts of each model.
        label_count: C, the number of labels.
        dealt_before: Number of texts of earlier rounds; it determines the first label of this round.

    Returns:
        (K, C): rows sum to `counts`; entries of a row, and sums of columns, differ by at most 1.
    """
    dealt = dealt_before + np.concatenate([[0], np.cumsum(counts)])
    # Label c gets ceil((e - c) / C) of the first e texts, which are dealt in turn.
    received: NDArray[np.int64] = -((np.arange(label_count) - dealt[:, None]) // label_count)
    return np.diff(received, axis=0)
