"""Which candidates live on, and how many variations each is worth (Aug-PE; PrE-Text), label by label.

Functions of votes that already carry their noise: nothing here can cost privacy. Only candidates whose votes exceed the
threshold are parents. Noise alone lifts half of all candidates without any vote above zero; a threshold of about the
noise's sigma leaves most of these out.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.domain import Task

WAYS = ("rank", "sample")

Parents = list[list[int]]
"""For each label, positions of the parents; one that was drawn several times stands there as often."""


def choose(
    votes: NDArray[np.float64],
    labels: NDArray[np.integer],
    counts: Sequence[int],
    *,
    select: str,
    threshold: float,
    rng: np.random.Generator,
    task: Task,
) -> tuple[Parents, list[str]]:
    """Parents of each label, and what a reader should know of how they were chosen.

    Args:
        votes: (n,) noisy votes.
        labels: (n,) in [0, C).
        counts: C numbers: how many parents of each label are wanted.
        select: "rank": those with the most votes, fewer where fewer exceed the threshold. "sample": so many draws, with
            replacement, in proportion to votes above the threshold. Where no votes exceed it, uniform draws without
            replacement, and a note says so.
        threshold: Votes that a parent exceeds.
        rng: Draws.
        task: Names the labels.
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
    """Deals `count` variations to one label's parents in turn, so that a parent drawn twice gets twice as many.

    Returns:
        (position, variations) of each different parent, in the parents' order; 0 for the last of more parents.
    """
    families = dict.fromkeys(parents, 0)
    for turn in range(count if parents else 0):
        families[parents[turn % len(parents)]] += 1
    return list(families.items())
