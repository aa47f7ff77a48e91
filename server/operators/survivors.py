"""Choice of surviving candidates for each label, and of the number of variations of each (Aug-PE; PrE-Text).

Both choices are functions of votes that are already noised, so nothing here can cost privacy. Only candidates with
votes above the threshold become parents. Noise alone gives a score above zero to half of the candidates that have no
votes; a threshold of about the noise's sigma excludes most of them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.domain import Task

Parents = list[list[int]]
"""Indices of the parents of each label; a parent drawn several times is repeated."""


def choose_parents(
    votes: NDArray[np.float64],
    labels: NDArray[np.integer],
    counts: Sequence[int],
    *,
    select: str,
    threshold: float,
    rng: np.random.Generator,
    task: Task,
) -> tuple[Parents, list[str]]:
    """Return the parents of each label, and notes for the report.

    Args:
        votes: (n,) noisy votes.
        labels: (n,) in [0, C).
        counts: Number of parents to choose for each of C labels.
        select: "rank": the candidates with the most votes, among those whose votes exceed the threshold. "sample":
            `counts` draws with replacement, in proportion to the votes above the threshold. In either case, if no votes
            exceed the threshold, parents are drawn uniformly without replacement, with a note.
        threshold: Number of votes that a parent must exceed.
        rng: Source of randomness.
        task: Task, which provides the names of the labels.
    """
    parents: Parents = []
    notes = []
    for number, (label, count) in enumerate(zip(task.labels, counts, strict=True)):
        members = np.flatnonzero(labels == number)
        above = members[votes[members] > threshold]
        if not len(above):
            parents.append(sorted(rng.choice(members, min(count, len(members)), replace=False).tolist()))
            notes.append(f"{label}: no votes above {threshold:g}, so survivors are drawn uniformly")
        elif select == "rank":
            parents.append(above[np.argsort(-votes[above], kind="stable")[:count]].tolist())
        else:
            weights = votes[above] - threshold
            parents.append(sorted(rng.choice(above, count, p=weights / weights.sum()).tolist()))
    return parents, notes


def offspring(parents: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Assign `count` variations by cycling through one label's parents; a parent drawn twice gets twice as many.

    Returns:
        Index and number of variations of each distinct parent, in the order of `parents`; the number is 0 for the last
        parents if there are more parents than `count`.
    """
    families = dict.fromkeys(parents, 0)
    for turn in range(count if parents else 0):
        families[parents[turn % len(parents)]] += 1
    return list(families.items())
