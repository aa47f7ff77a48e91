"""WASP: contrastive private data synthesis by weighted multi-model fusion (Zou et al. 2025, Algorithms 1 and 2).

Round t of T:
1. Order N/T texts, split over models by weight (eq. 2) and evenly over labels.
2. Prompt zero-shot at t = 0, later by contrast between good and bad exemplars of any model (section 4.6).
3. Add the new texts to all earlier ones, D.
4. Unless this was the last round, ask for Top-Q nearest and furthest votes on all of D (section 4.4, eqs. 3-6).
5. For each label, the S texts with the most nearest votes are the next good set, and the S texts with the most furthest
   votes are the next bad set (section 4.5). Neither has more than half of the label's texts, and no text is in both.
6. Weight each model by the votes for its texts (eq. 8).

After T rounds, and T - 1 private queries, D is the synthetic data set.

Texts with several labels (`server/operators/label_sets.py`): one more query, before the first votes, asks which labels
occur together, and sets of labels are requested according to its answer. A text is a candidate under each of its
labels, and can be in each label's pool.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from common.queries.votes import VotesSpec
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.orders import Order, RequestMaker, allocate, make_orders, per_label
from server.llm.requests import by_example
from server.method import PlainMemory, State, Tools
from server.operators import label_sets, selection
from server.operators.round_report import make_report
from server.operators.smoothing import smooth_votes
from server.operators.variation import Ahead, look_ahead, voting_vectors
from server.settings.voting import RANKING, Variation, WaspSettings

VOTES = "nearest and furthest votes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaspMemory(PlainMemory):
    """WASP's memory from round to round.

    Attributes:
        weights: Each model's proportion of the next round's texts; the proportions sum to 1.
        good: Indices in D of the texts with the most nearest votes, best first, keyed by label.
        bad: Indices in D of the texts with the most furthest votes, best first, keyed by label.
        ahead: Paraphrases that represented each candidate in the votes, keyed by the candidate's text.
        sets: Which labels occur together, if texts have several (`server/operators/label_sets.py`).
    """

    weights: Mapping[str, float]
    good: Mapping[str, Sequence[int]] = field(default_factory=dict)
    bad: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ahead: Ahead = field(default_factory=dict)
    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wasp(WaspSettings):
    """The WASP method; `server.settings.voting.WaspSettings` documents its settings."""

    memory: ClassVar[type[WaspMemory]] = WaspMemory

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        modes: dict[str, str | None] = {"contrast": "method.contrast=false"} if self.contrast else {}
        return modes | ({"rewriting": "method.look_ahead=0"} if self.look_ahead else {})

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan T - 1 queries; the last round's texts are released without a vote."""
        del membership
        task.check_samples(self.samples, self.rounds)
        # On a grid of 128 to a vote, as at Q = 8, so that shares of noise are whole numbers' worth for a small Q too.
        fine = max(1, 128 >> (self.top - 1))
        # Furthest votes serve the bad exemplars alone; without them the same ε has less noise.
        spec = VotesSpec(
            top=self.top,
            furthest=self.contrast,
            fine=fine,
            max_records=target.max_records,
            labels_per_record=task.labels_per_text,
        )
        sets = label_sets.label_set_queries(task, self.label_sets_share, target.max_records)
        share = 1 - self.label_sets_share if sets else 1.0
        return (*sets, PlannedQuery(name=VOTES, spec=spec, times=self.rounds - 1, share=share))

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Count N texts with their paraphrases, and the texts that rounding up may add for each model and label."""
        return max(self.samples * (1 + self.look_ahead), self.rounds * len(task.labels) * len(models))

    def compared(self, task: Task) -> dict[str, int]:
        """Return the largest number of texts that the last vote compares: all texts written before the last round.

        A text with several labels is counted under each of them.
        """
        return {VOTES: self.samples * (self.rounds - 1) // self.rounds * task.labels_per_text}

    def start(self, tools: Tools) -> State[WaspMemory]:
        """Return a state without texts and with equal weights."""
        weights = {model: 1 / len(tools.models) for model in tools.models}
        return State(memory=WaspMemory(weights=weights))

    def step(self, state: State[WaspMemory], tools: Tools) -> State[WaspMemory]:
        """Run one round."""
        harvest = tools.generate(self._order(state, tools), self._writer(state, tools), round_number=state.round)
        candidates = (*state.candidates, *harvest.candidates)
        last = state.round + 1 == self.rounds
        ahead, looking = look_ahead(
            candidates,
            tools,
            degree=0 if last else self.look_ahead,
            known=state.memory.ahead,
            variation=Variation(),
            round_number=state.round,
            temperature=self.temperature,
        )
        sets = state.memory.sets or label_sets.ask_label_sets(tools)
        votes = None if last else self._vote(state.round, candidates, ahead, tools)
        memory, more = self._remember(state.memory, candidates, votes, tools)
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(candidates),
            work=[harvest, looking],
            notes=[*([] if last else self._notes(candidates, tools.task)), *more],
            figures={"weights": dict(state.memory.weights)},
        )
        return State(
            round=state.round + 1,
            candidates=candidates,
            rounds=(*state.rounds, report),
            memory=replace(memory, ahead=ahead, sets=sets),
        )

    def _order(self, state: State[WaspMemory], tools: Tools) -> list[Order]:
        before, after = (self.samples * done // self.rounds for done in (state.round, state.round + 1))
        weights = np.array([state.memory.weights[model] for model in tools.models])
        counts = allocate(after - before, weights)
        if tools.task.several:
            return label_sets.orders(counts, state.memory.sets, state.candidates, tools, total=self.samples)
        shares = per_label(counts, len(tools.task.labels), before)
        return make_orders(shares, tools.task, tools.models)

    def _writer(self, state: State[WaspMemory], tools: Tools) -> RequestMaker:
        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            good_texts, bad_texts = (
                [state.candidates[i].text for i in label_sets.pool_for_set(pool, order.labels, state.candidates)]
                for pool in (state.memory.good, state.memory.bad)
            )
            good, bad = selection.draw_exemplars(good_texts, bad_texts, self.shots, generator)
            request = by_example(
                tools.task,
                order.label,
                texts=texts,
                rng=generator,
                good=good,
                bad=bad,
                temperature=self.temperature,
                words=self.words,
                more=order.more or (),
            )
            return replace(request, showable=True)

        return write

    def _vote(self, nth: int, candidates: Sequence[Candidate], ahead: Ahead, tools: Tools) -> NDArray[np.float64]:
        """Return the nearest and, for contrast, furthest votes: (1 or 2, number of rows of `label_sets.label_rows`)."""
        places, numbers = label_sets.label_rows(candidates, tools.task)
        embedded = voting_vectors(candidates, tools, ahead)[places]
        votes = tools.ask(VOTES, nth, vectors=embedded, labels=numbers).reshape(-1, len(places))
        return smooth_votes(votes, embedded, numbers, noise=tools.noise(VOTES, nth)) if self.smoothing else votes

    def _remember(
        self,
        memory: WaspMemory,
        candidates: Sequence[Candidate],
        votes: NDArray[np.float64] | None,
        tools: Tools,
    ) -> tuple[WaspMemory, list[str]]:
        """Return the memory, with exemplars and weights from the votes if there are any, and notes."""
        if votes is None:
            return memory, []
        labels, (places, numbers) = list(tools.task.labels), label_sets.label_rows(candidates, tools.task)
        good, bad = (
            {label: places[members].tolist() for label, members in zip(labels, pools, strict=True)}
            for pools in selection.good_and_bad(list(votes), numbers, self.shots, len(labels))
        )
        memory = replace(memory, good=good, bad=bad)
        if not self.weighting:
            return memory, []
        models = np.array([tools.models.index(candidate.model) for candidate in candidates])[places]
        weights, notes = selection.model_weights(votes[0], models, len(tools.models)), []
        if weights is None:
            notes.append("no votes above zero for any model: equal weights in the next round")
            weights = np.full(len(tools.models), 1 / len(tools.models))
        return replace(memory, weights=dict(zip(tools.models, weights.tolist(), strict=True))), notes

    def _notes(self, candidates: Sequence[Candidate], task: Task) -> list[str]:
        """Return a note on the labels whose candidates are too few to choose from, if there are any."""
        sizes = Counter(label for candidate in candidates for label in candidate.labels)
        enough = 2 * max(self.top, self.shots)
        few = [f"{label} has {sizes[label]}" for label in task.labels if sizes[label] < enough]
        note = (
            f"fewer than {enough} candidates, twice method.top or method.shots, are too few to choose from: "
            f"{', '.join(few)}; write more texts (method.samples); votes still differ: {RANKING}"
        )
        return [note] if few else []
