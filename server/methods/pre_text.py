"""PrE-Text: private evolution over many parties with a few texts each (Hou et al. 2024).

Round t of T, on a population of a fixed number of seeds, spread evenly over the labels:
1. At t = 0 write the population, zero-shot.
2. Look ahead: in the votes, the mean embedding of k variations represents a candidate.
3. Ask for Top-1 nearest votes; with `privacy.unit=user` the noise hides all records of a party.
4. For each label draw as many survivors as it has seeds, with replacement, in proportion to votes above the threshold.
5. The variations of the drawn texts are the next population; in the last round the survivors are the DP seeds.

Finally the seeds are expanded: prompts that show some seeds of a label request more texts of the same kind. These N
texts are the synthetic data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from common import rng
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.votes import VotesSpec
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated, Written
from server.llm.orders import Order, even_orders, per_label
from server.llm.requests import by_example
from server.method import NoMemory, State, Tools
from server.operators import selection
from server.operators.round_report import make_report
from server.operators.smoothing import smooth_votes
from server.operators.variation import look_ahead, make_children, modes, vary, voting_vectors
from server.settings.voting import PreTextSettings

VOTES = "nearest votes"

_MOST_SEEDS = 400
"""Maximum number of seeds chosen by default: the votes of a few hundred records cannot distinguish between more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreText(PreTextSettings):
    """The PrE-Text method; `server.settings.voting.PreTextSettings` documents its settings."""

    memory: ClassVar[type[NoMemory]] = NoMemory

    def population(self, task: Task) -> int:
        """Return the number of seeds: a fifth of N, at most 400, at least `shots` per label, and never more than N.

        The last prompts show `shots` different seeds of a label. More seeds would split the same votes among them, and
        each seed costs 1 + k texts in every round, which is not worthwhile for few samples.
        """
        if self.seeds is not None:
            return self.seeds
        return min(self.samples, max(self.shots * len(task.labels), min(_MOST_SEEDS, self.samples // 5)))

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        return modes(self.variation) if self.rounds > 1 or self.look_ahead else {}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan votes in each of the T rounds."""
        del membership
        for name, value in (("samples", self.samples), ("seeds", self.population(task))):
            if value < len(task.labels):
                raise ConfigError(f"method.{name}", expected=f"one for each of {len(task.labels)} labels", got=value)
        spec = VotesSpec(top=1, furthest=False, fine=self.fine, max_records=target.max_records)
        return (PlannedQuery(name=VOTES, spec=spec, times=self.rounds),)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Count T populations, k look-ahead variations of each of their texts, and N final texts."""
        del models
        return self.population(task) * self.rounds * (1 + self.look_ahead) + self.samples

    def resized(self, share: float, task: Task) -> "PreText":
        """Return the method scaled to this fraction of its texts (`server.method.Resizable`)."""
        seeds, fewest = self.population(task), len(task.labels)
        return replace(self, samples=max(fewest, round(share * self.samples)), seeds=max(fewest, round(share * seeds)))

    def compared(self, task: Task) -> dict[str, int]:
        """Return the size of the population, keyed by query."""
        return {VOTES: self.population(task)}

    def start(self, tools: Tools) -> State[NoMemory]:
        """Return a state without texts."""
        del tools
        return State(memory=NoMemory())

    def step(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        """Run one round."""
        size = self.population(tools.task)
        first = self._write(size, [], tools, 0) if state.round == 0 else Generated()
        population, following = (*state.candidates, *first.candidates), state.round + 1
        ahead, looking = look_ahead(
            population,
            tools,
            degree=self.look_ahead,
            known={},
            variation=self.variation,
            round_number=state.round,
            texts_per_request=self.texts_per_request,
            temperature=self.temperature,
        )
        labels = selection.label_numbers(population, tools.task)
        embedded = voting_vectors(population, tools, ahead)
        votes = tools.ask(VOTES, state.round, vectors=embedded, labels=labels)
        if self.smoothing:
            votes = smooth_votes(votes, embedded, labels, noise=tools.noise(VOTES, state.round))

        sizes = per_label(np.array([size]), len(tools.task.labels))[0].tolist()
        generator = rng.experiment(tools.experiment_seed, "survivors", state.round)
        parents, notes = selection.choose_parents(
            votes, labels, sizes, select="sample", threshold=self.threshold, rng=generator, task=tools.task
        )
        families = [
            (population[i], count)
            for label_parents, size_of_label in zip(parents, sizes, strict=True)
            for i, count in selection.offspring(label_parents, size_of_label)
        ]
        written: Generated | Written
        if following == self.rounds:
            seeds = [parent for parent, _ in families]
            written = last = self._write(self.samples, seeds, tools, following)
            new, kept = last.candidates, []
        else:
            written = varied = vary(
                self.variation,
                families,
                tools,
                "variation",
                state.round,
                texts_per_request=self.texts_per_request,
                temperature=self.temperature,
            )
            new = make_children(families, varied, following)
            # A parent whose variations were all lost stays, so that no label dies out.
            kept = [parent for (parent, _), texts in zip(families, varied.texts, strict=True) if not texts]
        report = make_report(
            state.round,
            tools.models,
            requested=first.requested + written.requested,
            generated=[*first.candidates, *new],
            candidates=len(kept) + len(new),
            work=[first, looking, written],
            notes=notes,
        )
        return State(round=following, candidates=(*kept, *new), rounds=(*state.rounds, report), memory=state.memory)

    def _write(self, samples: int, seeds: Sequence[Candidate], tools: Tools, round_number: int) -> Generated:
        """Write texts evenly over labels and models; each prompt shows some seeds of its label, if there are any."""

        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            label_seeds = [seed.text for seed in seeds if seed.label == order.label]
            request = by_example(
                tools.task,
                order.label,
                texts=texts,
                rng=generator,
                good=selection.draw_members(label_seeds, self.shots, generator),
                temperature=self.temperature,
                words=self.words,
            )
            return replace(request, showable=True)

        orders = even_orders(samples, tools.task, tools.models)
        return tools.generate(orders, write, round_number=round_number)
