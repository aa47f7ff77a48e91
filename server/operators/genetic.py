"""Texts that are to be written: DPGA-TextSyn's genetic operators as requests (section 3.4).

Each parent's own model writes its children, those of two parents the first one's. A child has the label of its parents
and their length, of two the mean.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from common import rng
from server.domain import Candidate
from server.llm import prompts
from server.llm.base import Request
from server.method import Tools
from server.operators.metadata import Metadata

Birth = tuple[Candidate, Request]
"""A text without its words yet: label, model and round, and what to ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Births:
    """Those of one generation.

    Attributes:
        tools: Task, models and experiment seed.
        genes: What new texts are drawn from.
        number: Of the generation.
        temperature: Of the language models.
    """

    tools: Tools
    genes: Metadata
    number: int
    temperature: float

    def new(self, count: int) -> Iterator[Birth]:
        """From the metadata alone, the models in turn."""
        for place, label in enumerate(self.genes.deal(count)):
            generator = self._generator("new", place)
            model = self.tools.models[place % len(self.tools.models)]
            request = prompts.by_example(
                self.tools.task, label, texts=1, rng=generator, attribute=self.genes.draw_keyword(label, generator),
                temperature=self.temperature, words=self.genes.draw_length(generator),
            )  # fmt: skip
            yield Candidate(text="", label=label, model=model, round=self.number), request

    def rewritten(self, elites: Sequence[Candidate], count: int) -> Iterator[Birth]:
        """Elites in other words, one after the other."""
        return self._varied("rewritten", prompts.paraphrase, elites, count)

    def filled(self, elites: Sequence[Candidate], count: int, *, mask: float) -> Iterator[Birth]:
        """Elites with a share `mask` of their words filled in afresh, one after the other."""
        return self._varied("filled in", partial(prompts.fill_in, blanks=mask), elites, count)

    def crossed(self, elites: Sequence[Candidate], count: int) -> Iterator[Birth]:
        """Out of two elites of one label, drawn at random, and a keyword; none if no label has two."""
        for place, (first, second) in enumerate(_pairs(elites, count, self._generator("pairs", 0))):
            generator = self._generator("crossed", place)
            request = prompts.crossover(
                self.tools.task, first.label, (first.text, second.text), texts=1, rng=generator,
                attribute=self.genes.draw_keyword(first.label, generator), temperature=self.temperature,
                words=round((_words(first) + _words(second)) / 2),
            )  # fmt: skip
            yield self._child(first), request

    def _varied(
        self, operator: str, ask: Callable[..., Request], elites: Sequence[Candidate], count: int
    ) -> Iterator[Birth]:
        for place in range(count):
            parent = elites[place % len(elites)]
            request = ask(
                self.tools.task, parent.label, parent.text, texts=1, rng=self._generator(operator, place),
                temperature=self.temperature, words=_words(parent),
            )  # fmt: skip
            yield self._child(parent), request

    def _child(self, parent: Candidate) -> Candidate:
        return replace(parent, text="", round=self.number)

    def _generator(self, operator: str, place: int) -> np.random.Generator:
        return rng.experiment(self.tools.experiment_seed, operator, self.number, place)


def _words(parent: Candidate) -> int:
    return len(parent.text.split())


def _pairs(elites: Sequence[Candidate], count: int, generator: np.random.Generator) -> Iterator[Sequence[Candidate]]:
    """Two different elites of one label: a child of two labels would have neither."""
    by_label: dict[str, list[Candidate]] = {}
    for elite in elites:
        by_label.setdefault(elite.label, []).append(elite)
    firsts = [elite for some in by_label.values() for elite in some if len(some) > 1]
    for _ in range(count if firsts else 0):
        first = firsts[generator.integers(len(firsts))]
        mates = by_label[first.label]
        second = first
        while second is first:
            second = mates[generator.integers(len(mates))]
        yield first, second
