"""Aug-PE: augmented private evolution (Xie et al. 2024).

Aug-PE+ is the same method without classes in prompts (DP-KPS, section 3).

Round t of T, on a population of N candidates, N/C for each of C labels:
1. At t = 0 write the population: texts about the label and a random public attribute or, in Aug-PE+, texts written from
   random words of the private records' noised vocabulary, without a class.
2. Look ahead: in the votes, the mean embedding of k variations represents a candidate; if k = 0, its own embedding
   does.
3. Ask for Top-1 nearest votes.
4. N/(C L) candidates of each label survive, for an expansion L: either those with the most votes, or candidates drawn
   in proportion to their votes.
5. Survivors and their variations, again N/C for each label, are the next population.

The population after T rounds, and T private queries, is the synthetic data set. In Aug-PE+ each initial text is given a
label that no prompt ever mentions. A record votes only among the candidates of its own label, so that selection alone
gives the labels their meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from common import rng
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.histograms import VocabularySpec
from common.queries.terms import encode_terms
from common.queries.votes import VotesSpec
from server.domain import Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated
from server.llm.orders import Order, even_orders, per_label
from server.llm.requests import by_example, request_from_words
from server.method import PlainMemory, State, Tools
from server.operators import keyphrases, selection
from server.operators.round_report import make_report
from server.operators.smoothing import smooth_votes
from server.operators.variation import Ahead, look_ahead, make_children, modes, vary, voting_vectors
from server.settings.voting import AugPeSettings

VOTES = "nearest votes"
VOCABULARY = "vocabulary"


@dataclass(frozen=True, slots=True, kw_only=True)
class AugPeMemory(PlainMemory):
    """Aug-PE's memory from round to round.

    Attributes:
        ahead: Variations that represent each survivor in the votes, keyed by the survivor's text.
    """

    ahead: Ahead = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AugPe(AugPeSettings):
    """The Aug-PE method; `server.settings.voting.AugPeSettings` documents its settings."""

    memory: ClassVar[type[AugPeMemory]] = AugPeMemory

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        return modes(self.variation) | ({"keyphrases": "method=aug_pe"} if self.vocabulary else {})

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan T queries for votes; Aug-PE+ first asks for the vocabulary histogram."""
        del membership
        if self.samples < self.expansion * len(task.labels):
            raise ConfigError(
                "method.samples",
                expected=f"{self.expansion} (the expansion) for each of {len(task.labels)} labels",
                got=self.samples,
            )
        spec = VotesSpec(top=1, furthest=False, fine=self.fine, max_records=target.max_records)
        if self.vocabulary is None:
            return (PlannedQuery(name=VOTES, spec=spec, times=self.rounds),)
        self._terms()
        terms = VocabularySpec(first=self.first_terms, max_records=target.max_records)
        return (
            PlannedQuery(name=VOCABULARY, spec=terms, mechanism="laplace", share=self.vocabulary_share),
            PlannedQuery(name=VOTES, spec=spec, times=self.rounds, share=1 - self.vocabulary_share),
        )

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Count the first population, at most N variations in each round, and k variations of each new candidate."""
        del task, models
        return self.samples * (1 + self.rounds * (1 + self.look_ahead))

    def compared(self, task: Task) -> dict[str, int]:
        """Return the size of the population, and the number of selected terms of the vocabulary, keyed by query."""
        del task
        return {VOTES: self.samples} | ({VOCABULARY: self.kept_terms} if self.vocabulary else {})

    def start(self, tools: Tools) -> State[AugPeMemory]:
        """Return a state without texts."""
        del tools
        return State(memory=AugPeMemory())

    def step(self, state: State[AugPeMemory], tools: Tools) -> State[AugPeMemory]:
        """Run one round of Augmented Private Evolution and return the new state."""
        first = self._first(tools) if state.round == 0 else Generated()
        population = (*state.candidates, *first.candidates)
        with_label = self.vocabulary is None
        ahead, looking = look_ahead(
            population,
            tools,
            degree=self.look_ahead,
            known=state.memory.ahead,
            variation=self.variation,
            round_number=state.round,
            texts_per_request=self.texts_per_request,
            temperature=self.temperature,
            with_label=with_label,
        )
        labels = selection.label_numbers(population, tools.task)
        embedded = voting_vectors(population, tools, ahead)
        votes = tools.ask(VOTES, state.round, vectors=embedded, labels=labels)
        if self.smoothing:
            votes = smooth_votes(votes, embedded, labels, noise=tools.noise(VOTES, state.round))

        sizes = per_label(np.array([self.samples]), len(tools.task.labels))[0].tolist()
        survivors_per_label = [size // self.expansion for size in sizes]
        generator = rng.experiment(tools.experiment_seed, "survivors", state.round)
        parents, notes = selection.choose_parents(
            votes,
            labels,
            survivors_per_label,
            select=self.select,
            threshold=self.threshold,
            rng=generator,
            task=tools.task,
        )
        families = [
            (population[i], count)
            for label_parents, size in zip(parents, sizes, strict=True)
            for i, count in selection.offspring(label_parents, size - len(set(label_parents)))
        ]
        varied = vary(
            self.variation,
            families,
            tools,
            "variation",
            state.round,
            texts_per_request=self.texts_per_request,
            temperature=self.temperature,
            with_label=with_label,
        )
        kept, new = [parent for parent, _ in families], make_children(families, varied, state.round + 1)
        report = make_report(
            state.round,
            tools.models,
            requested=first.requested + varied.requested,
            generated=[*first.candidates, *new],
            candidates=len(kept) + len(new),
            work=[first, looking, varied],
            notes=notes,
        )
        return State(
            round=state.round + 1,
            candidates=(*kept, *new),
            rounds=(*state.rounds, report),
            memory=AugPeMemory(ahead={parent.text: ahead[parent.text] for parent in kept} if ahead else {}),
        )

    def _first(self, tools: Tools) -> Generated:
        """Return the population of round 0."""
        words: tuple[str, ...] = ()
        if self.vocabulary:
            terms = self._terms()
            counts = tools.ask(VOCABULARY, 0, terms=encode_terms(terms))
            words = keyphrases.private_vocabulary(terms, counts, self.kept_terms)
        form: dict[str, Any] = {"temperature": self.temperature, "words": self.words}

        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            if not words:
                return by_example(tools.task, order.label, texts=texts, rng=generator, **form)
            request = request_from_words(tools.task, words, count=self.terms, texts=texts, rng=generator, **form)
            return replace(request, showable=True)

        return tools.generate(even_orders(self.samples, tools.task, tools.models), write, round_number=0)

    def _terms(self) -> tuple[str, ...]:
        return keyphrases.public_vocabulary(self.vocabulary or "", at_least=self.kept_terms)
