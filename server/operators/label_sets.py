"""Texts with several labels: which labels occur together, which sets are requested, and votes for each label.

A method asks once, after its first round, how many records have how many labels, each label, and each two labels
together (`common/queries/label_sets.py`). From the noised answer sets are drawn for the texts of the later rounds:

1. the size k of a set, in proportion to the numbers of records with k labels;
2. its labels one after the other, each in proportion to the number of its records times its lift with every label that
   the set already has: how much more often than independent labels of sets of these sizes the two occur together.

Numbers of pairs are shrunk towards those expected of independent labels, by the fraction of their scatter around the
expected numbers that noise explains (empirical Bayes), and a lift is computed from at least as many records as the
noise is: a noisy answer leaves independent labels. What is lost are dependencies among three or more labels at once,
and which labels make small sets. The first round asks nothing, and has sets of any size and labels alike: the later
rounds make up for them, so that all texts together have the drawn sets as nearly as possible.

In everything that is measured label by label, a text with several labels stands once under each of them (`label_rows`).
It is all a function of public texts and of noised numbers: nothing here can cost privacy.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.planned import PlannedQuery
from common.queries.label_sets import LabelSetsSpec
from server.domain import Candidate, Task
from server.llm.orders import Order
from server.method import Tools

NAME = "label sets"

Floats = NDArray[np.float64]
_LEAST = 0.05
"""Smallest number of records with a label that sets are drawn by, as a share of the mean: none disappears for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distribution of label sets, in JSON's types.

    Attributes:
        sizes: Relative number of texts with 1, 2, ... labels.
        labels: Relative number of texts with each label.
        lifts: For each two labels, how much more often they occur together than independent labels, at least 0.
    """

    sizes: Sequence[float]
    labels: Sequence[float]
    lifts: Sequence[Sequence[float]]

    @classmethod
    def uniform(cls, task: Task) -> "Distribution":
        """Return the distribution that is used before any answer: all sizes and labels alike."""
        labels = len(task.labels)
        return cls(sizes=[1.0] * task.labels_per_text, labels=[1.0] * labels, lifts=np.ones((labels, labels)).tolist())

    @classmethod
    def of_answer(cls, answer: Floats, spec: LabelSetsSpec, noise: float) -> "Distribution":
        """Estimate the distribution from a noised answer; `noise` is the standard deviation of each number."""
        sizes, labels, counted = np.split(answer, [spec.labels_per_record, spec.labels_per_record + spec.labels])
        sizes = np.maximum(sizes, 0)
        labels = np.maximum(labels, _LEAST * max(labels.mean(), 1))
        upper = np.triu_indices(spec.labels, 1)
        shares = labels / labels.sum()
        independent = np.outer(shares, shares)[upper]
        pairs_by_size = np.arange(len(sizes)) * np.arange(1, len(sizes) + 1) / 2  # pairs in a set of each size
        independent *= max(float(sizes @ pairs_by_size), 1) / max(float(independent.sum()), 1e-12)
        scatter = float(((counted - independent) ** 2).mean()) if len(counted) else 0.0
        kept = max(0.0, 1 - noise**2 / scatter) if scatter else 0.0
        lifts = np.ones((spec.labels, spec.labels))
        lifts[upper] = np.maximum(1 + kept * (counted - independent) / (independent + noise), 0)
        lifts.T[upper] = lifts[upper]
        return cls(
            sizes=sizes.tolist() if sizes.sum() else [1.0] * len(sizes),
            labels=labels.tolist(),
            lifts=lifts.tolist(),
        )

    def draw(self, count: int, generator: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw `count` sets, each as ascending indices of labels."""
        sizes, labels, lifts = np.array(self.sizes), np.array(self.labels), np.array(self.lifts)
        drawn = []
        for size in 1 + generator.choice(len(sizes), count, p=sizes / sizes.sum()):
            chances, chosen = labels.copy(), list[int]()
            while len(chosen) < size and chances.sum() > 0:
                chosen.append(int(generator.choice(len(labels), p=chances / chances.sum())))
                chances = np.where(np.isin(np.arange(len(labels)), chosen), 0, chances * lifts[chosen[-1]])
            drawn.append(tuple(sorted(chosen)))
        return drawn


def queries(task: Task, share: float, max_records: int) -> tuple[PlannedQuery, ...]:
    """Plan the question which labels occur together, with this fraction of epsilon; none for texts with one label."""
    if not task.several:
        return ()
    spec = LabelSetsSpec(labels=len(task.labels), labels_per_record=task.labels_per_text, max_records=max_records)
    return (PlannedQuery(name=NAME, spec=spec, share=share),)


def asked(tools: Tools) -> dict[str, Any]:
    """Ask which labels occur together; return the distribution as a memory stores it, empty for one label per text."""
    if not tools.task.several:
        return {}
    spec = tools.spec(NAME)
    assert isinstance(spec, LabelSetsSpec), "as planned"
    return asdict(Distribution.of_answer(tools.ask(NAME, 0), spec, tools.noise(NAME, 0)))


def orders(
    counts: NDArray[np.int64], known: Mapping[str, Any], candidates: Sequence[Candidate], tools: Tools, *, total: int
) -> list[Order]:
    """Make a round's orders of texts with several labels.

    Args:
        counts: (K,) texts of each model.
        known: The distribution as `asked` returned it; empty before the answer.
        candidates: Texts of earlier rounds.
        tools: Tools of the run.
        total: N, texts of all rounds.
    """
    names = list(tools.task.labels)
    distribution = Distribution(**known) if known else Distribution.uniform(tools.task)
    stream = rng.experiment(tools.experiment_seed, "label sets", *(["answered"] if known else []))
    there = Counter(tuple(sorted(map(names.index, candidate.labels))) for candidate in candidates)
    wanted = []
    for one in distribution.draw(total, stream):  # the same sets in each round after the answer
        there[one] -= 1
        if there[one] < 0:
            wanted.append(one)
    ends = np.cumsum(counts).tolist()
    parts = [wanted[end - size : end] for end, size in zip(ends, counts.tolist(), strict=True)]
    return [
        Order(model=model, label=names[first], count=number, more=tuple(names[label] for label in more))
        for model, part in zip(tools.models, parts, strict=True)
        for (first, *more), number in Counter(part).items()
    ]


def label_rows(candidates: Sequence[Candidate], task: Task) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return a row for each label of each text: the text's index, ascending, and the label's index in the plan."""
    names = {label: number for number, label in enumerate(task.labels)}
    rows = [(place, names[label]) for place, candidate in enumerate(candidates) for label in candidate.labels]
    places, labels = zip(*rows, strict=True) if rows else ((), ())
    return np.array(places, dtype=np.int64), np.array(labels, dtype=np.int32)


def pooled(pools: Mapping[str, Sequence[int]], labels: Sequence[str], candidates: Sequence[Candidate]) -> Sequence[int]:
    """Return the exemplars of a set of labels: from its labels' pools, the texts with the most similar sets of labels.

    Args:
        pools: Exemplars of each label, best first, as indices.
        labels: The set.
        candidates: The texts to which the indices refer.
    """
    own = [pools.get(label, ()) for label in labels]
    if len(own) == 1 and all(candidates[at].more is None for at in own[0]):
        return own[0]
    ranks: dict[int, int] = {}
    for pool in own:
        for rank, place in enumerate(pool):
            ranks[place] = min(rank, ranks.get(place, rank))
    wanted = set(labels)

    def order(place: int) -> tuple[int, int]:
        return len(wanted ^ set(candidates[place].labels)), ranks[place]

    return sorted(ranks, key=order)[: max(map(len, own), default=0)]
