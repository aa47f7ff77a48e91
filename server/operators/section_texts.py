"""Texts in sections: in which order sections follow one another, and texts that are written section by section.

A method asks once, before its first round, how many records begin with each section, have each section after each other
one, and end with each section (`common/queries/section_order.py`). For each text a sequence of headings is drawn from
these noised numbers:

1. its headings, each with the proportion of records that have it as its probability, and at most as many as a text may
   have;
2. their order, in proportion to the product of the Markov chain's chances from the beginning to the end, by importance
   sampling: of some orders that are drawn heading by heading, one is taken. A chain alone would end texts early, since
   it does not know which headings a text still lacks.

Numbers are shrunk towards those expected if each section were independent of the one before, by the fraction of their
scatter around the expected numbers that noise explains (empirical Bayes), as pairs of labels are (`label_sets.py`).
What is lost is which headings occur together, and ties between sections that do not follow one another.

A text is then written from its beginning, all texts of a round at once: one request per section, which shows what the
text has so far, cut to a stated number of words, so that the cost is linear in the number of sections. A section that
its model does not write is left out. It is all a function of public texts and of noised numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.planned import PlannedQuery
from common.queries.section_order import SectionOrderSpec
from common.sections import assembled, bodies, normal, sections
from server.domain import Candidate, Task
from server.llm.base import Request
from server.llm.generate import Generated, refuse_missing
from server.llm.orders import Order
from server.method import Tools
from server.metrics.orders import independent

NAME = "section order"

Floats = NDArray[np.float64]
_ORDERS = 16
"""Orders from which one is taken by its importance."""
_RARE = 1e-3
"""Chance of a step that no record takes, before the rest is shared out: any set of headings then has an order."""
SectionMaker = Callable[[Order, str, int, np.random.Generator], Request]
"""Makes the request for a section from its order, the text so far, the number of its sections, and a generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A Markov chain of headings, in JSON's types.

    Attributes:
        following: Relative number of texts in which a section (column; last: the end) comes after another (row; last:
            the beginning), at least 0.
        most: Largest number of sections of a text.
    """

    following: Sequence[Sequence[float]]
    most: int

    @classmethod
    def of_answer(cls, answer: Floats, spec: SectionOrderSpec, noise: float) -> "Chain":
        """Estimate the chain from a noised answer; `noise` is the standard deviation of each number."""
        possible = ~np.eye(spec.labels + 1, dtype=np.bool_)
        counted = np.zeros(possible.shape)
        counted[possible] = answer
        expected = independent(counted)
        scatter = float(((counted - expected)[possible] ** 2).mean())
        kept = max(0.0, 1 - noise**2 / scatter) if scatter else 0.0
        return cls(
            following=np.maximum(expected + kept * (counted - expected), 0).tolist(), most=spec.labels_per_record
        )

    def draw(self, count: int, generator: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw `count` sequences of different headings, each with at least one."""
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
    """Draw an order of these headings, one after the other; return it with its importance for the whole product."""
    before, left, order, weight = len(rows) - 1, chosen.tolist(), list[int](), 1.0
    while left:
        chances = rows[before, left]
        total = float(chances.sum())
        place = int(np.searchsorted(chances.cumsum(), generator.random() * total, side="right"))
        before = left.pop(min(place, len(left) - 1))
        order.append(before)
        weight *= total
    return tuple(order), weight * float(rows[before, -1])


def queries(task: Task, share: float, max_records: int) -> tuple[PlannedQuery, ...]:
    """Plan the question about the order of sections, with this fraction of epsilon."""
    spec = SectionOrderSpec(labels=len(task.labels), labels_per_record=task.labels_per_text, max_records=max_records)
    return (PlannedQuery(name=NAME, spec=spec, share=share),)


def asked(tools: Tools) -> dict[str, Any]:
    """Ask in which order sections follow one another, and return the chain as a memory stores it."""
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
        counts: (K,) texts of each model.
        known: The chain as `asked` returned it.
        write: Makes the requests.
        tools: Tools of the run.
        round_number: Number of the round, for candidates and random streams.
        shown: Largest number of words of the text so far in a request.

    Raises:
        ProviderError: No model wrote any section.
    """
    headings = list(tools.task.labels)
    stream = rng.experiment(tools.experiment_seed, "section order", round_number)
    sequences = [[headings[at] for at in sequence] for sequence in Chain(**known).draw(int(counts.sum()), stream)]
    models = [model for model, count in zip(tools.models, counts.tolist(), strict=True) for _ in range(count)]
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
        for place, reply in zip(places, written.texts, strict=True):
            heading = sequences[place][step]
            if body := own(reply[0], heading, headings) if reply else "":
                texts[place].append((heading, body))
    for model, parts in zip(models, texts, strict=True):
        if parts:
            text, placed = assembled(parts)
            made.candidates.append(Candidate.in_sections(text, placed, model=model, round_number=round_number))
        else:
            made.lost[model] += 1
    if texts and not made.candidates:
        refuse_missing(headings, (), passes=1)
    return made


def so_far(parts: Sequence[tuple[str, str]], words: int) -> str:
    """Return the sections that a text has so far, each cut to its first words, equally many, at most `words` in all."""
    each = words // len(parts) if parts else 0
    shown = [(heading, " ".join(body.split()[:each])) for heading, body in parts]
    return "\n".join(f"{heading}: {body}" for heading, body in shown) if each else ""


def own(reply: str, heading: str, headings: Sequence[str]) -> str:
    """Return the part of a reply for this heading, without the heading and up to the task's next heading.

    The sections of the assembled text are therefore those that were requested, whatever a model writes.
    """
    lines = reply.strip().splitlines()
    if lines and normal(lines[0].split(":", maxsplit=1)[0].strip("#* ")) == normal(heading):
        reply = "\n".join([lines[0].partition(":")[2], *lines[1:]])
    found = sections(f"{heading}\n{reply}", headings)
    return bodies(f"{heading}\n{reply}", found)[0] if found and found[0].heading == heading else ""


def row_texts(candidates: Sequence[Candidate]) -> list[str]:
    """Return the text of each row of `label_sets.label_rows`; for a text with sections, the section under the label."""
    return [
        text
        for candidate in candidates
        for text in (
            [candidate.text] * len(candidate.labels)
            if candidate.sections is None
            else bodies(candidate.text, candidate.sections)
        )
    ]


def under(candidate: Candidate, heading: str) -> str:
    """Return the part of a text that is an exemplar of a heading: its section, or all of a text without sections."""
    if candidate.sections is None:
        return candidate.text
    return next(candidate.text[part.start : part.end] for part in candidate.sections if part.heading == heading)


def of_own_heading(pools: Mapping[str, Sequence[int]], headings: NDArray[np.integer]) -> dict[str, list[int]]:
    """Return the pools of each heading, in the order of the plan, without rows (`row_texts`) under other headings."""
    return {
        heading: [row for row in pool if headings[row] == number]
        for number, (heading, pool) in enumerate(pools.items())
    }
