"""Orders: the number of texts that each model writes for each label."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.domain import Labelled, Task
from server.llm.allocation import allocate, per_label
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
