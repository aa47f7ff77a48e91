"""Selection by votes: exemplars and weights of models (WASP, Zou et al. 2025), and survivors (Aug-PE; PrE-Text).

Everything here is a function of public texts and of votes that are already noised, so nothing can cost privacy.

Only candidates with votes above the threshold become parents. Noise alone gives a score above zero to half of the
candidates that have no votes; a threshold of about the noise's sigma excludes most of them.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from server.domain import Candidate, Task

T = TypeVar("T")
Votes = NDArray[np.integer] | NDArray[np.floating]
"""A noisy score for each candidate, in any unit; scores may be negative."""
Parents = list[list[int]]
"""Indices of the parents of each label; a parent drawn several times is repeated."""


def label_numbers(candidates: Sequence[Candidate], task: Task) -> NDArray[np.int32]:
    """Return the index in the plan of each candidate's label, (candidates,)."""
    labels = list(task.labels)
    return np.array([labels.index(candidate.label) for candidate in candidates], dtype=np.int32)


def top_per_label(scores: Votes, labels: NDArray[np.integer], k: int, label_count: int) -> list[NDArray[np.int64]]:
    """Return the k candidates of each label with the highest scores (section 4.4: the good and the bad set).

    Args:
        scores: (n,) votes.
        labels: (n,) in [0, label_count).
        k: Number of candidates to keep per label.
        label_count: C, the number of labels.

    Returns:
        For each label, up to k indices in `scores`, best first; ties go to the lower index.
    """
    chosen = []
    for label in range(label_count):
        members = np.flatnonzero(labels == label)
        # lexsort's last key leads; the position makes the order total.
        order = np.lexsort((members, -scores[members].astype(np.float64)))
        chosen.append(members[order[:k]])
    return chosen


def good_and_bad(
    votes: Sequence[Votes], labels: NDArray[np.integer], size: int, label_count: int
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Return the pools of good and bad exemplars of each label (section 4.5), which share no candidate.

    The good pool has the most nearest votes; the bad pool has the most furthest votes of the other candidates. Each has
    at most half of the label's candidates, or the only one is good: in Algorithm 1, which sets no such limit, a label
    with few candidates would have the same texts in both pools. Where that cannot happen, the pools are those of
    Algorithm 1.

    Args:
        votes: (n,) nearest votes and, if bad exemplars are wanted, (n,) furthest votes.
        labels: (n,) in [0, label_count).
        size: S, the largest size of a pool.
        label_count: C, the number of labels.

    Returns:
        For each label, indices of the good pool and of the bad pool, best first; the latter are empty without furthest
        votes.
    """
    nearest, *furthest = votes
    halves = np.bincount(labels, minlength=label_count) // 2

    def best(scores: Votes, most: NDArray[np.integer]) -> list[NDArray[np.int64]]:
        ranked = top_per_label(scores, labels, size, label_count)
        return [members[:number] for members, number in zip(ranked, most, strict=True)]

    good = best(nearest, np.maximum(1, halves))
    if not furthest:
        return good, [members[:0] for members in good]
    others = np.array(furthest[0], dtype=np.float64)
    others[np.concatenate(good)] = -np.inf
    return good, best(others, halves)


def model_weights(nearest_scores: Votes, model_ids: NDArray[np.integer], models: int) -> NDArray[np.float64] | None:
    """Compute the models' weights from the nearest votes for their texts (WASP paper, equation 8), and normalise them.

        s_i = H[i] / Σ H,    w_k = (Σ over D_k of s_i) / (|D_k| / |D|)

    A negative sum, which noise may cause, counts as zero. ΣH is left out: if it is positive, the normalisation cancels
    it; if it is negative, it would reverse the order. A model without candidates is weighted as if its texts had the
    average number of votes.

    Args:
        nearest_scores: (n,) noisy votes H.
        model_ids: (n,) in [0, models): the model that wrote each candidate.
        models: K, the number of models.

    Returns:
        (K,) weights, at least 0, which sum to 1. None if no model has a positive sum: the caller then uses equal
        weights and adds a note.
    """
    sums = np.bincount(model_ids, weights=nearest_scores, minlength=models)
    sizes = np.bincount(model_ids, minlength=models)
    average = nearest_scores.sum() / max(1, len(nearest_scores))
    per_text = np.where(sizes > 0, sums / np.maximum(1, sizes), average)
    if not (sums > 0).any():
        return None
    clipped = np.maximum(0.0, per_text)
    return np.asarray(clipped / clipped.sum())


def draw_exemplars(
    good_pool: Sequence[T], bad_pool: Sequence[T], size: int, rng: np.random.Generator
) -> tuple[list[T], list[T]]:
    """Draw a prompt's exemplars without replacement: S − ⌊S/2⌋ good and ⌊S/2⌋ bad (Algorithm 1).

    Args:
        good_pool: Up to S candidates of one label; they may come from any model.
        bad_pool: Up to S candidates of the same label that serve as bad exemplars, without those in `good_pool`: equal
            texts, and texts with several labels, may be in the pools of both. Without contrast this pool is empty, and
            the prompt has only S − ⌊S/2⌋ good exemplars.
        size: S, the number of exemplars.
        rng: Source of randomness. The exemplars are also in random order, as models are sensitive to an exemplar's
            position.

    Returns:
        Good and bad exemplars; a pool with too few candidates is used in full.
    """
    good = draw_members(good_pool, size - size // 2, rng)
    return good, draw_members([member for member in bad_pool if member not in good_pool], size // 2, rng)


def draw_members(pool: Sequence[T], count: int, rng: np.random.Generator) -> list[T]:
    """Draw up to `count` members of a pool without replacement, in random order."""
    return [pool[position] for position in rng.permutation(len(pool))[:count]]


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
