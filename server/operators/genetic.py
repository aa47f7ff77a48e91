"""A generation of DPGA-TextSyn: its elites (section 3.3.2), and the genetic operators as requests for texts (3.4).

Elites have the most votes; texts too similar to a better one are skipped. The choice is a function of synthetic texts
and of votes that are already noised, so nothing here can cost privacy. A child is written by the model of its only or
first parent. The child has its parents' label and mean length.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from common import rng
from server.domain import Candidate
from server.llm.base import Request
from server.llm.requests import by_example, crossover, fill_in, paraphrase
from server.method import Tools
from server.operators.metadata import Metadata

_BLOCK = 128
"""Number of rows of cosines computed at once: with fewer rows, the matrix product is slow; with more, many cosines are
never used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elites:
    """The candidates chosen as elites.

    Attributes:
        positions: Indices in the population, most votes first.
        tau: Final similarity threshold.
    """

    positions: NDArray[np.int64]
    tau: float


def suppress(
    votes: NDArray[np.float64], vectors: NDArray[np.float32], count: int, *, tau: float, step: float = 0.01
) -> Elites:
    """Choose elites by walking over candidates in order of votes, dropping any whose cosine to an elite exceeds tau.

    The walk stops at `count` elites. If it finds fewer, it is repeated with tau + step, tau + 2 step, and so on, up to
    1, where nothing is dropped. The number of elites is not monotone in tau, so no step can be skipped. However, a walk
    is abandoned as soon as the taken and the remaining candidates together are too few. The cosines of a taken
    candidate to all later candidates are computed when the first walk takes it, in float64 so that the order of
    summation has no effect, and are reused by later walks. There are at most n^2 / 2 cosines, 400 MB for 10,000
    candidates.

    Args:
        votes: (n,) noisy votes; ties go to the lower index.
        vectors: (n, dim) float32, unit norm.
        count: Number of elites.
        tau: Initial threshold.
        step: Increment of the threshold. With 0, tau stays the same, and there may be fewer than `count` elites.

    Returns:
        `count` elites, or all n candidates if n is smaller; with step 0, the elites that one walk finds.
    """
    order = np.argsort(-votes, kind="stable")
    rows = _Rows(vectors[order].astype(np.float64))
    count = min(count, len(order))
    steps = 0
    while True:
        threshold = min(1.0, tau + steps * step)
        chosen = _walk(rows, count, threshold, least=count if step else 0)
        if chosen is not None:
            return Elites(positions=order[chosen], tau=threshold)
        steps += 1


class _Rows:
    """Cosines of each candidate to all later ones, computed on first use together with those likely to be used next."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        self._vectors = vectors
        self._cosines: dict[int, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    def behind(self, place: int, remaining: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the (n - place - 1,) cosines of `place` to all later candidates; `remaining` marks those left."""
        if place not in self._cosines:
            ahead = (place + np.flatnonzero(remaining[place:])[: 2 * _BLOCK]).tolist()
            block = [other for other in ahead if other not in self._cosines][:_BLOCK]
            cosines = self._vectors[block] @ self._vectors[place + 1 :].T
            self._cosines |= {other: row[other - place :] for other, row in zip(block, cosines, strict=True)}
        return self._cosines[place]


def _walk(rows: _Rows, count: int, tau: float, *, least: int) -> list[int] | None:
    """Return the indices of the first `count` elites at this threshold; None if there are fewer than `least`."""
    if tau >= 1:
        return list(range(count))
    remaining = np.ones(len(rows), dtype=bool)
    chosen: list[int] = []
    place = 0
    while len(chosen) < count and place < len(rows):
        chosen.append(place)
        remaining[place + 1 :] &= rows.behind(place, remaining) <= tau
        behind = remaining[place + 1 :]
        if len(chosen) + np.count_nonzero(behind) < least:
            return None
        place = place + 1 + int(behind.argmax()) if behind.any() else len(rows)
    return chosen


Birth = tuple[Candidate, Request]
"""A candidate that has no text yet, only label, model and round, and the request for its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Births:
    """Requests for the new texts of one generation.

    Attributes:
        tools: Task, models and experiment seed.
        genes: Labels, lengths and keywords from which prompts are drawn.
        number: Index of the generation.
        temperature: Sampling temperature of the language models.
    """

    tools: Tools
    genes: Metadata
    number: int
    temperature: float

    def new(self, count: int) -> Iterator[Birth]:
        """Request `count` texts from the metadata alone, cycling through the models."""
        for place, label in enumerate(self.genes.deal(count)):
            generator = self._generator("new", place)
            model = self.tools.models[place % len(self.tools.models)]
            request = by_example(
                self.tools.task,
                label,
                texts=1,
                rng=generator,
                attribute=self.genes.draw_keyword(label, generator),
                temperature=self.temperature,
                words=self.genes.draw_length(generator),
            )
            yield Candidate(text="", label=label, model=model, round=self.number), request

    def crossed(self, elites: Sequence[Candidate], count: int) -> Iterator[Birth]:
        """Request `count` crossovers of two random elites of one label, with a keyword; none if no label has two."""
        for place, (first, second) in enumerate(_pairs(elites, count, self._generator("pairs", 0))):
            generator = self._generator("crossed", place)
            request = crossover(
                self.tools.task,
                first.label,
                (first.text, second.text),
                texts=1,
                rng=generator,
                attribute=self.genes.draw_keyword(first.label, generator),
                temperature=self.temperature,
                words=round((_words(first) + _words(second)) / 2),
            )
            yield self._child(first), replace(request, showable=True)

    def varied(self, operator: str, elites: Sequence[Candidate], count: int, *, mask: float = 0.0) -> Iterator[Birth]:
        """Request `count` paraphrases of elites in turn, or copies with a fraction `mask` of their words replaced."""
        ask: Callable[..., Request] = partial(fill_in, blanks=mask) if mask else paraphrase
        for place in range(count):
            parent = elites[place % len(elites)]
            request = ask(
                self.tools.task,
                parent.label,
                parent.text,
                texts=1,
                rng=self._generator(operator, place),
                temperature=self.temperature,
                words=_words(parent),
            )
            yield self._child(parent), replace(request, showable=True)

    def _child(self, parent: Candidate) -> Candidate:
        return replace(parent, text="", round=self.number)

    def _generator(self, operator: str, place: int) -> np.random.Generator:
        return rng.experiment(self.tools.experiment_seed, operator, self.number, place)


def _words(parent: Candidate) -> int:
    return len(parent.text.split())


def _pairs(elites: Sequence[Candidate], count: int, generator: np.random.Generator) -> Iterator[Sequence[Candidate]]:
    """Draw `count` pairs of different elites of one label."""
    by_label: dict[str, list[Candidate]] = {}
    for elite in elites:
        by_label.setdefault(elite.label, []).append(elite)
    firsts = [elite for group in by_label.values() for elite in group if len(group) > 1]
    for _ in range(count if firsts else 0):
        first = firsts[generator.integers(len(firsts))]
        mates = by_label[first.label]
        second = first
        while second is first:
            second = mates[generator.integers(len(mates))]
        yield first, second
