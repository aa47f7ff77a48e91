"""Requests for language models: what each mode puts into a `Request`.

Wording is the providers' (`common/llm/render.py`).

Exemplars are synthetic texts; private text cannot get here, because no answer of a party contains any.
"""

from collections.abc import Sequence

import numpy as np

from common.domain import Task
from common.llm.base import Request


def zero_shot(
    task: Task, label: str, *, texts: int, temperature: float, words: int | None, rng: np.random.Generator
) -> Request:
    """Task, label and, if the task has any, one public attribute drawn at random (WASP, section 4.3)."""
    attribute = str(rng.choice(np.array(task.attributes))) if task.attributes else None
    return Request(
        task_kind=task.kind,
        labels=tuple(task.labels.items()),
        label=label,
        n=texts,
        attribute=attribute,
        temperature=temperature,
        words=words,
        seed=int(rng.integers(2**63)),
    )


def contrastive(
    task: Task,
    label: str,
    *,
    good: Sequence[str],
    bad: Sequence[str],
    texts: int,
    temperature: float,
    words: int | None,
    rng: np.random.Generator,
) -> Request:
    """Good exemplars to surpass and, with contrast, bad ones to move away from (WASP, section 4.6)."""
    attribute = str(rng.choice(np.array(task.attributes))) if task.attributes else None
    return Request(
        task_kind=task.kind,
        labels=tuple(task.labels.items()),
        label=label,
        n=texts,
        attribute=attribute,
        good=tuple(good),
        bad=tuple(bad),
        temperature=temperature,
        words=words,
        seed=int(rng.integers(2**63)),
    )
