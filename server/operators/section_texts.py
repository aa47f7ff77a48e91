"""Texts in sections: the order of the sections, and texts that are written section by section.

Before its first round, a method sends one query for the number of records that begin with each section, that end with
each section, and in which a section directly follows another, for each pair (`common/queries/section_order.py`). For
each text a sequence of headings is drawn from these noised numbers:

1. its headings, each drawn with a probability equal to the proportion of records that have it, up to the maximum number
   per text;
2. their order, in proportion to the product of the Markov chain's transition probabilities from the beginning to the
   end, by importance sampling: several orders are drawn heading by heading, and one of them is selected. The chain
   alone would end texts early, since it does not take into account which headings a text still lacks.

Numbers are shrunk towards those expected if each section were independent of the preceding section, by the fraction of
their scatter around the expected numbers that noise explains (empirical Bayes), as the numbers of pairs of labels are
(`label_sets.py`). Information on which headings occur together, and on dependencies between sections that are not
adjacent, is lost.

Each text is then written from its beginning, in parallel with the other texts of its round. There is one request per
section, which shows the text so far, cut to a given number of words, so that the cost is linear in the number of
sections. A section that its model fails to write is left out. Everything here is a function of public texts and of
noised numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.planned import PlannedQuery
from common.queries.section_order import SectionOrderSpec
from common.sections import assemble_sections, bodies
from server.domain import Candidate, Task
from server.llm.base import Request
from server.llm.generate import Generated, refuse_missing
from server.llm.orders import Order
from server.method import Tools
from server.metrics.surface import independent_steps

NAME = "section order"

Floats = NDArray[np.float64]
_ORDERS = 16
"""Number of orders that are drawn, of which importance sampling selects one."""
_RARE = 1e-3
"""Amount added to each transition probability of the chain, so that every set of headings has a possible order."""
SectionMaker = Callable[[Order, str, int, np.random.Generator], Request]
"""Function that makes the request for a section from an order, the text so far, the number of its sections, and a
generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A Markov chain of headings, in JSON's types.

    Attributes:
        following: Relative number of texts in which a section (column; the last column is the end) follows another
            (row; the last row is the beginning), at least 0.
        most: Maximum number of sections per text.
    """

    following: Sequence[Sequence[float]]
    most: int

    @classmethod
    def of_answer(cls, answer: Floats, spec: SectionOrderSpec, noise: float) -> "Chain":
        """Estimate the chain from a noised answer; `noise` is the standard deviation of each number."""
        possible = ~np.eye(spec.labels + 1, dtype=np.bool_)
        counted = np.zeros(possible.shape)
        counted[possible] = answer
        expected = independent_steps(counted)
        scatter = float(((counted - expected)[possible] ** 2).mean())
        kept = max(0.0, 1 - noise**2 / scatter) if scatter else 0.0
        return cls(
            following=np.maximum(expected + kept * (counted - expected), 0).tolist(), most=spec.labels_per_record
        )

    def draw(self, count: int, generator: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw `count` non-empty sequences of different headings."""
        following = np.array(self.following)
        end = len(following) - 1
        beginnings = float(following[end].sum())
        shares = following[:, :end].sum(axis=0) / beginnings if beginnings else np.ones(end)
        rows = following / np.maximum(following.sum(axis=1, keepdims=True), 1e-12) + _RARE
        drawn = []
        for _ in range(count):
            chosen = np.flatnonzero(generator.random(end) < shares)
            if not len(chosen):
                chosen = np.array([shares.argmax()])
            chosen = generator.permutation(chosen)[: self.most]
            orders = [_ordered(rows, chosen, generator) for _ in range(_ORDERS)]
            weights = np.array([weight for _, weight in orders])
            drawn.append(orders[int(generator.choice(_ORDERS, p=weights / weights.sum()))][0])
        return drawn


def _ordered(rows: Floats, chosen: NDArray[np.int64], generator: np.random.Generator) -> tuple[tuple[int, ...], float]:
    """Draw an order of these headings, one after the other; return the order and its importance weight."""
    before, left, order, weight = len(rows) - 1, chosen.tolist(), list[int](), 1.0
    while left:
        chances = rows[before, left]
        total = float(chances.sum())
        place = int(np.searchsorted(chances.cumsum(), generator.random() * total, side="right"))
        before = left.pop(min(place, len(left) - 1))
        order.append(before)
        weight *= total
    return tuple(order), weight * float(rows[before, -1])


def section_queries(task: Task, share: float, max_records: int) -> tuple[PlannedQuery, ...]:
    """Plan the query about the order of sections, with this fraction of epsilon."""
    spec = SectionOrderSpec(labels=len(task.labels), labels_per_record=task.labels_per_text, max_records=max_records)
    return (PlannedQuery(name=NAME, spec=spec, share=share),)


def ask_section_order(tools: Tools) -> dict[str, Any]:
    """Ask in which order sections follow one another, and return the chain as stored in a memory."""
    spec = tools.spec(NAME)
    assert isinstance(spec, SectionOrderSpec), "as planned"
    return asdict(Chain.of_answer(tools.ask(NAME, 0), spec, tools.noise(NAME, 0)))


def generate(
    counts: NDArray[np.int64],
    known: Mapping[str, Any],
    write: SectionMaker,
    tools: Tools,
    *,
    round_number: int,
    shown: int,
) -> Generated:
    """Write a round's texts, section by section.

    Args:
        counts: (K,) number of texts from each model.
        known: The chain, as `ask_section_order` returned it.
        write: Makes the requests.
        tools: Tools of the run.
        round_number: Round number, for candidates and random streams.
        shown: Maximum number of words of the text so far to show in a request.

    Raises:
        ProviderError: No model wrote any section.
    """
    headings = list(tools.task.labels)
    stream = rng.experiment(tools.experiment_seed, "section order", round_number)
    sequences = [[headings[at] for at in sequence] for sequence in Chain(**known).draw(int(counts.sum()), stream)]
    ordered = [model for model, count in zip(tools.models, counts.tolist(), strict=True) for _ in range(count)]
    models = ordered.copy()
    generators = [rng.experiment(tools.experiment_seed, "section", round_number, at) for at in range(len(sequences))]
    texts: list[list[tuple[str, str]]] = [[] for _ in sequences]
    made = Generated()
    for step in range(max(map(len, sequences), default=0)):
        places = [place for place, sequence in enumerate(sequences) if step < len(sequence)]
        requests = []
        for place in places:
            order = Order(model=models[place], label=sequences[place][step], count=1)
            request = write(order, so_far(texts[place], shown), len(sequences[place]), generators[place])
            requests.append((order.model, request))
        written = tools.write(requests)
        made.use.merge(written.use)
        for place, reply, writers in zip(places, written.texts, written.models, strict=True):
            if reply:
                texts[place].append((sequences[place][step], reply[0]))
                models[place] = writers[0]
    for model, orderer, parts in zip(models, ordered, texts, strict=True):
        if parts:
            text, placed = assemble_sections(parts)
            made.candidates.append(Candidate.in_sections(text, placed, model=model, round_number=round_number))
        made.lost[orderer] += not parts or model != orderer
    if texts and not made.candidates:
        refuse_missing(headings, (), use=made.use)
    return made


def so_far(parts: Sequence[tuple[str, str]], words: int) -> str:
    """Return a text's sections so far, each cut to the same number of first words, at most `words` words in all."""
    each = words // len(parts) if parts else 0
    shown = [(heading, " ".join(body.split()[:each])) for heading, body in parts]
    return "\n".join(f"{heading}: {body}" for heading, body in shown) if each else ""


def row_texts(candidates: Sequence[Candidate]) -> list[str]:
    """Return the text for each row of `label_sets.label_rows`; for a text in sections, the section under that label."""
    return [
        text
        for candidate in candidates
        for text in (
            [candidate.text] * len(candidate.labels)
            if candidate.sections is None
            else bodies(candidate.text, candidate.sections)
        )
    ]


def section_exemplar(candidate: Candidate, heading: str) -> str:
    """Return a text's exemplar for a heading: the section under it or, if the text has no sections, all of the text."""
    if candidate.sections is None:
        return candidate.text
    return next(candidate.text[part.start : part.end] for part in candidate.sections if part.heading == heading)


def pools_by_heading(pools: Mapping[str, Sequence[int]], headings: NDArray[np.integer]) -> dict[str, list[int]]:
    """Return the pool of each heading, in the order of the plan, without rows (`row_texts`) under other headings."""
    return {
        heading: [row for row in pool if headings[row] == number]
        for number, (heading, pool) in enumerate(pools.items())
    }
