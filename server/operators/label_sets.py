"""Texts with several labels: which labels occur together, which sets of labels are requested, and votes per label.

After its first round, a method sends one query for the number of records with each number of labels, with each label,
and with each pair of labels (`common/queries/label_sets.py`). For the texts of the later rounds, sets are drawn from
the noised answer:

1. the size k of a set, in proportion to the numbers of records with k labels;
2. its labels one after the other, each in proportion to the number of its records times its lift with every label
   already in the set. The lift of two labels states how much more often they occur together than they would in sets of
   these sizes if labels were independent.

Numbers of pairs are shrunk towards those expected of independent labels, by the fraction of their scatter around the
expected numbers that noise explains (empirical Bayes), and the standard deviation of the noise is added to the
denominator of a lift, so that a very noisy answer results in independent labels. Dependencies among three or more
labels are lost, as is the information on which labels form small sets. The first round has no answer yet, and draws
sizes and labels uniformly; later rounds compensate, so that the sets of all texts together are as close as possible to
the drawn sets.

In everything measured per label, a text with several labels counts once under each of them (`label_rows`). Everything
here is a function of public texts and of noised numbers, so nothing can cost privacy.
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
"""Lower bound on the number of records with a label when sets are drawn, as a fraction of the mean, so that noise
removes no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distribution of label sets, in JSON's types.

    Attributes:
        sizes: Relative number of texts with 1, 2, ... labels.
        labels: Relative number of texts with each label.
        lifts: For each pair of labels, how much more often they occur together than independent labels would, at least
            0.
    """

    sizes: Sequence[float]
    labels: Sequence[float]
    lifts: Sequence[Sequence[float]]

    @classmethod
    def uniform(cls, task: Task) -> "Distribution":
        """Return the distribution that is used before any answer: all sizes and all labels are equally frequent."""
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


def label_set_queries(task: Task, share: float, max_records: int) -> tuple[PlannedQuery, ...]:
    """Plan the query about which labels occur together, with this fraction of epsilon; none if texts have one label."""
    if not task.several:
        return ()
    spec = LabelSetsSpec(labels=len(task.labels), labels_per_record=task.labels_per_text, max_records=max_records)
    return (PlannedQuery(name=NAME, spec=spec, share=share),)


def ask_label_sets(tools: Tools) -> dict[str, Any]:
    """Ask which labels occur together; return the distribution as stored in a memory, empty if texts have one label."""
    if not tools.task.several:
        return {}
    spec = tools.spec(NAME)
    assert isinstance(spec, LabelSetsSpec), "as planned"
    return asdict(Distribution.of_answer(tools.ask(NAME, 0), spec, tools.noise(NAME, 0)))


def orders(
    counts: NDArray[np.int64], known: Mapping[str, Any], candidates: Sequence[Candidate], tools: Tools, *, total: int
) -> list[Order]:
    """Make the orders for a round of texts with several labels, `total` of them in all rounds.

    `counts` has the (K,) number of texts from each model, and `known` the distribution as `ask_label_sets` returned it,
    which is empty before the answer. The candidates are the texts of earlier rounds.
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


def pool_for_set(
    pools: Mapping[str, Sequence[int]], labels: Sequence[str], candidates: Sequence[Candidate]
) -> Sequence[int]:
    """Return exemplars for a set of labels: from the labels' pools, the texts with the most similar sets of labels.

    The pools have indices of candidates, best first, keyed by label.
    """
    exemplars = [pools.get(label, ()) for label in labels]
    if len(exemplars) == 1 and all(candidates[at].more is None for at in exemplars[0]):
        return exemplars[0]
    ranks: dict[int, int] = {}
    for pool in exemplars:
        for rank, place in enumerate(pool):
            ranks[place] = min(rank, ranks.get(place, rank))
    wanted = set(labels)
    similar = sorted(ranks, key=lambda place: (len(wanted ^ set(candidates[place].labels)), ranks[place]))
    return similar[: max(map(len, exemplars), default=0)]
