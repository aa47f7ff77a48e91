"""FuseGen: models learn from one another's synthetic texts, without any query to private data (Zou et al. 2024).

Round t of T, with N/T texts spread evenly over K models and C labels:
1. Prompt zero-shot at t = 0; later with S exemplars of the label, drawn from its pool.
2. Add the new texts to all earlier ones, D.
3. Train a small model on each language model's own texts in D; measure how well each small model learns each text of D.
4. A label's next pool consists of the R/2 texts on which the small models differ least (easy ones) and the R/2 texts on
   which they differ most (ambiguous ones), whichever language model wrote them.

After T rounds D is the synthetic data set, with each text weighted by how well it is learned (self-boosting weight
adjustment). Selection and weights are functions of synthetic texts alone: no party is queried, and epsilon is 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated
from server.llm.orders import Order, allocate, make_orders, per_label
from server.llm.requests import by_example
from server.method import PlainMemory, State, Tools
from server.metrics.dynamics import Dynamics, cross_model_dynamics, self_boosted_weights
from server.operators import selection
from server.operators.round_report import make_report
from server.settings.methods import FuseGenSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGenMemory(PlainMemory):
    """FuseGen's memory from round to round.

    Attributes:
        pool: Indices in D of the next round's exemplars, keyed by label.
    """

    pool: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGen(FuseGenSettings):
    """The FuseGen method; `server.settings.methods.FuseGenSettings` documents its settings."""

    memory: ClassVar[type[FuseGenMemory]] = FuseGenMemory
    modes: ClassVar[Mapping[str, str | None]] = {}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Return an empty plan, since the method asks no queries about private records."""
        del target, membership
        task.check_labelled(
            "method fusegen", "which its small models learn", "Choose method=class_sums, wasp or aug_pe"
        )
        task.check_samples(self.samples, self.rounds)
        return ()

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return N, the number of texts of the run."""
        del task, models
        return self.samples

    def compared(self, task: Task) -> dict[str, int]:
        """Return an empty mapping, since the method asks no queries."""
        del task
        return {}

    def start(self, tools: Tools) -> State[FuseGenMemory]:
        """Return a state without texts or exemplars."""
        return State(memory=FuseGenMemory(pool={label: [] for label in tools.task.labels}))

    def step(self, state: State[FuseGenMemory], tools: Tools) -> State[FuseGenMemory]:
        """Run one round."""
        before, after = (self.samples * done // self.rounds for done in (state.round, state.round + 1))
        even = allocate(after - before, np.ones(len(tools.models)))
        shares = per_label(even, len(tools.task.labels), before)
        harvest = self._generate(state, make_orders(shares, tools.task, tools.models), tools)
        candidates = (*state.candidates, *harvest.candidates)
        labels = selection.label_numbers(candidates, tools.task)
        vectors = tools.embed([candidate.text for candidate in candidates])
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(candidates),
            work=[harvest],
        )
        following = replace(state, round=state.round + 1, rounds=(*state.rounds, report))
        if following.round == self.rounds:
            return replace(following, candidates=self._weighed(candidates, vectors, labels), memory=FuseGenMemory())
        models = np.array([tools.models.index(candidate.model) for candidate in candidates])
        learned = cross_model_dynamics(vectors, labels, models, epochs=self.epochs)
        return replace(
            following, candidates=candidates, memory=FuseGenMemory(pool=self._pool(learned, labels, tools.task))
        )

    def _generate(self, state: State[FuseGenMemory], orders: Sequence[Order], tools: Tools) -> Generated:
        """Have the models write a round's texts; a prompt shows some exemplars of its label's pool."""

        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            shown = selection.draw_members(state.memory.pool[order.label], self.shots, generator)
            request = by_example(
                tools.task,
                order.label,
                texts=texts,
                rng=generator,
                good=[state.candidates[i].text for i in shown],
                temperature=self.temperature,
                words=self.words,
            )
            return replace(request, showable=True)

        return tools.generate(orders, write, round_number=state.round)

    def _pool(self, learned: Dynamics, labels: NDArray[np.integer], task: Task) -> dict[str, list[int]]:
        """Select R/2 easy and R - R/2 ambiguous texts of each label; if a label has at most R texts, select all."""
        pools: dict[str, list[int]] = {}
        for number, label in enumerate(task.labels):
            members = np.flatnonzero(labels == number)
            # lexsort's last key leads; of texts that vary equally the surer is the easier.
            order = members[np.lexsort((-learned.confidence[members], learned.variability[members]))]
            easy, ambiguous = order[: self.pool // 2], order[self.pool // 2 :][-(self.pool - self.pool // 2) :]
            pools[label] = [int(i) for i in (*easy, *ambiguous)]
        return pools

    def _weighed(
        self, candidates: Sequence[Candidate], vectors: NDArray[np.float32], labels: NDArray[np.integer]
    ) -> tuple[Candidate, ...]:
        weights = self_boosted_weights(vectors, labels, rounds=self.boosts, epochs=self.epochs)
        return tuple(
            replace(candidate, weight=float(weight)) for candidate, weight in zip(candidates, weights, strict=True)
        )
