"""DPGA-TextSyn's genetic operators, as requests for new texts (section 3.4).

A child is written by the model of its only or first parent. The child has its parents' label and mean length.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from common import rng
from server.domain import Candidate
from server.llm.base import Request
from server.llm.requests import by_example, crossover, fill_in, paraphrase
from server.method import Tools
from server.operators.metadata import Metadata

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
