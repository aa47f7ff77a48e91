"""Requests for language models: what each mode puts into a `Request`.

Wording is the providers' (`common/llm/render.py`). Exemplars are synthetic texts; private text cannot get here, because
no answer of a party contains any.
"""

from collections.abc import Sequence

import numpy as np

from common.domain import Task
from common.llm.base import Request


def by_example(
    task: Task,
    label: str,
    *,
    texts: int,
    rng: np.random.Generator,
    good: Sequence[str] = (),
    bad: Sequence[str] = (),
    temperature: float = 1.0,
    words: int | None = None,
) -> Request:
    """Task, label, one public attribute drawn at random if the task has any, and exemplars.

    Without exemplars the prompt is zero-shot (WASP, section 4.3); with good ones alone it asks for more of the kind;
    with both it is contrastive: surpass the good ones, away from the bad ones (section 4.6).

    Args:
        task: What is public about the data.
        label: The label to write for.
        texts: How many texts to ask for.
        rng: Draws the attribute and names the request.
        good: Exemplars to follow and to surpass.
        bad: Exemplars to move away from.
        temperature: Of the language model.
        words: Length to ask for; None leaves it open.
    """
    return Request(
        task_kind=task.kind,
        labels=tuple(task.labels.items()),
        label=label,
        n=texts,
        attribute=str(rng.choice(np.array(task.attributes))) if task.attributes else None,
        good=tuple(good),
        bad=tuple(bad),
        temperature=temperature,
        words=words,
        seed=int(rng.integers(2**63)),
    )
