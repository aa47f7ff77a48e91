"""Orders: the number of texts that each model writes for each label, in whole numbers that add up to the total."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import InternalError
from server.domain import Labelled, Task
from server.llm.base import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Labelled):
    """The number of texts that one model writes in one round for one label, or for one set of labels.

    Attributes:
        model: Name of the model.
        label: The label, or the first of several.
        count: Number of texts.
        more: Further labels of the texts; None if texts have one label each.
    """

    model: str
    label: str
    count: int
    more: tuple[str, ...] | None = None


RequestMaker = Callable[[Order, int, np.random.Generator], Request]
"""Function that makes a request from an order, the number of texts to request, and a random generator."""


def even_orders(samples: int, task: Task, models: Sequence[str]) -> list[Order]:
    """Make orders for `samples` texts in total, balanced across models and labels (±1).

    Labels are balanced because the number of records with a label is private.
    """
    return make_orders(per_label(allocate(samples, np.ones(len(models))), len(task.labels)), task, models)


def make_orders(shares: NDArray[np.integer], task: Task, models: Sequence[str]) -> list[Order]:
    """Make one order for each positive number of texts in `shares`, (models, labels)."""
    return [
        Order(model=model, label=label, count=int(shares[k, c]))
        for k, model in enumerate(models)
        for c, label in enumerate(task.labels)
        if shares[k, c]
    ]


def allocate(total: int, weights: NDArray[np.floating]) -> NDArray[np.int64]:
    """Split a round's texts among the models in proportion to their weights, so that the counts add up exactly.

    The quota of model k is (N/T) w_k, and the counts are N_k = [(N/T) w_k] (WASP, equation 2). By the largest-remainder
    method, each model first gets the integer part of its quota. The remaining texts go, one each, to the models with
    the largest remainders; ties go to the lower index. Each N_k is then within 1 of its quota.

    Args:
        total: N/T, the number of texts in this round.
        weights: (K,) weights w_k of at least 0, not all 0.

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
    """Distribute each model's texts among labels that need different numbers of texts.

    All texts are arranged in one sequence, over which the texts for each label are spread evenly. The first model takes
    its number of texts from the beginning of the sequence, and each further model takes the texts that follow.

    Args:
        counts: (K,) number of texts per model.
        label_counts: (C,) number of texts per label, with the same total.

    Returns:
        (K, C) numbers of texts; rows sum to `counts`, and columns to `label_counts`.
    """
    labels = np.repeat(np.arange(len(label_counts)), label_counts)
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in label_counts if count] or [np.zeros(0)])
    row = labels[np.lexsort((labels, places))]
    parts = np.split(row, np.cumsum(counts)[:-1])
    return np.stack([np.bincount(part, minlength=len(label_counts)) for part in parts]).astype(np.int64)


def per_label(counts: NDArray[np.integer], label_count: int, dealt_before: int = 0) -> NDArray[np.int64]:
    """Distribute each model's texts among labels, as evenly as whole numbers allow for each model and each label.

    Each model deals its texts out by cycling through the labels, starting after the last label of the model before it.

    Args:
        counts: (K,) number of texts per model.
        label_count: C, the number of labels.
        dealt_before: Number of texts distributed in earlier rounds; it determines the first label of this round.

    Returns:
        (K, C) numbers of texts; rows sum to `counts`. The entries of a row differ by at most 1, and so do the column
        sums.
    """
    dealt = dealt_before + np.concatenate([[0], np.cumsum(counts)])
    # Label c gets ceil((e - c) / C) of the first e texts, which are dealt in turn.
    received: NDArray[np.int64] = -((np.arange(label_count) - dealt[:, None]) // label_count)
    return np.diff(received, axis=0)
