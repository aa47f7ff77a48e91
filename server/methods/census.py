"""Census: one noised question about where the records lie, whose answer steers all rounds (a method of our own).

One round t of T:
1. Order the round's texts, split over models by weight and evenly over labels.
2. Prompt zero-shot until there is an answer, later with S exemplars of the label, drawn from its pool.
3. Add the new texts to all earlier ones, D.
4. After the first round ask once, with all of epsilon, for class sums: for each label the sum of its records'
   coordinates in a public subspace, and their number (`server/operators/census.py`).
5. Estimate the label's share and the mean of its records; weigh D so that it meets the estimates.
6. Weigh each model by the weights of its texts. The next pool of a label is a small set of its texts whose mean meets
   the estimate. A text that is nearer to the mean of another label is in no pool.
7. After the last round such texts leave D or change their label, and the others have the weights of step 5.

After T rounds, and one private query, D is the synthetic data set. The answer is in `census.json` of the run folder:
another run can begin with it (`census`), with other models, and asks nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from common import rng, validate
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from server.domain import Candidate, Earlier, Membership, PrivacyTarget, Task
from server.llm import prompts
from server.llm.base import Request
from server.llm.orders import Order, RequestMaker, allocate, make_orders, per_label
from server.method import State, Tools
from server.operators import census_file, selection, steering
from server.operators.census import Census, Estimates, Floats, estimates, subspace
from server.operators.round_report import make_report

CLASS_SUMS = "class sums"
GATES = ("drop", "relabel", "off")
GRID = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusMemory:
    """What the method remembers from round to round.

    Attributes:
        weights: By model, its share of the next round's texts, sum 1.
        pool: By label, positions in D of the exemplars of the next round.
        census: The released numbers as `census.json` has them; None before they are asked for.
    """

    weights: Mapping[str, float]
    pool: Mapping[str, Sequence[int]] = field(default_factory=dict)
    census: Mapping[str, Any] | None = None

    @property
    def released(self) -> dict[str, Mapping[str, Any]]:
        """See `server.method.Releasing`."""
        return {} if self.census is None else {census_file.FILE: self.census}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "CensusMemory":
        """The inverse of `to_dict` after a trip through JSON."""
        return cls(**saved)


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusMethod:
    """Settings.

    Attributes:
        samples: N, synthetic texts in all.
        rounds: T, generation rounds.
        surplus: Texts written for each of N; the gate lets N of them through.
        directions: k, directions of the subspace.
        count: What a record adds to its label's count, in radii: a larger one takes precision from the means.
        reach: Share of the first round's texts that the radius reaches; what lies beyond it is shortened.
        shots: S, exemplars in a prompt.
        pool: Exemplars to draw from, of each label.
        nearer: Share of a label's texts, the nearer part, that exemplars come from.
        effective: Least effective sample size of the weights, as a share of the number of texts.
        margin: Standard deviations of the noise by which another label must be nearer to a text than its own.
        shrinkage: Estimates shrunk by what is known of their noise; off for the ablation.
        model_weighting: Weigh models by the weights of their texts; off for the ablation.
        steering: Exemplars by the estimates; off for the ablation: all rounds are zero-shot.
        gate: What happens to texts that are nearer to another label: "drop", "relabel" or "off".
        text_weights: Weigh the released texts by the estimates; off for the ablation.
        texts_per_request: Texts that one prompt asks for.
        temperature: Temperature of the language models.
        words: Length of a text to ask for; None leaves it open.
        census: `census.json` of a finished run, to be used instead of asking.
    """

    memory: ClassVar[type[CensusMemory]] = CensusMemory

    samples: int = 2000
    rounds: int = 5
    surplus: float = 1.0
    directions: int = 16
    count: float = 0.5
    reach: float = 0.9
    shots: int = 4
    pool: int = 16
    nearer: float = 0.5
    effective: float = 0.5
    margin: float = 1.0
    shrinkage: bool = True
    model_weighting: bool = True
    steering: bool = True
    gate: str = "drop"
    text_weights: bool = True
    texts_per_request: int = 5
    temperature: float = 1.0
    words: int | None = None
    census: str | None = None
    name: str = "census"

    def __post_init__(self) -> None:
        section = "method"
        validate.integers(1, section=section, samples=self.samples, rounds=self.rounds, directions=self.directions)
        validate.integers(1, section=section, shots=self.shots, texts_per_request=self.texts_per_request)
        validate.integers(self.shots, section=section, pool=self.pool)
        validate.at_least(1, section=section, surplus=self.surplus)
        validate.at_least(0, section=section, margin=self.margin)
        validate.in_range(1 / GRID, 1, section=section, count=self.count)
        validate.in_range(0, 1, section=section, reach=self.reach, nearer=self.nearer, effective=self.effective)
        validate.one_of("method.gate", self.gate, among=GATES)

    @property
    def modes(self) -> dict[str, str | None]:
        """See `server.method.Method`."""
        return {}

    @property
    def written(self) -> int:
        """Texts that are ordered in all."""
        return round(self.samples * self.surplus)

    @property
    def earlier(self) -> Earlier | None:
        """See `server.method.Reusing`."""
        return None if self.census is None else census_file.read(Path(self.census))[1]

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """One query; none with the census of a finished run."""
        del membership
        if min(self.samples, self.written // self.rounds) < len(task.labels):
            raise ConfigError(
                "method.samples",
                expected=f"one text for each of {len(task.labels)} labels in each of {self.rounds} rounds",
                got=self.samples,
            )
        if self.census is not None:
            census_file.check_labels(self._earlier_census(), tuple(task.labels), Path(self.census))
            return ()
        spec = ClassSumsSpec(
            labels=len(task.labels),
            directions=self.directions,
            count=round(self.count * GRID),
            grid=GRID,
            max_records=target.max_records,
        )
        return (PlannedQuery(name=CLASS_SUMS, spec=spec),)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """What is ordered, and what rounding to whole texts for each model and label may add."""
        return max(self.written, self.rounds * len(task.labels) * len(models))

    def start(self, tools: Tools) -> State[CensusMemory]:
        """No texts, equal weights; the census of a finished run, if there is one."""
        weights = {model: 1 / len(tools.models) for model in tools.models}
        known = None if self.census is None else census_file.to_dict(self._earlier_census())
        return State(memory=CensusMemory(weights=weights, census=known))

    def step(self, state: State[CensusMemory], tools: Tools) -> State[CensusMemory]:
        """One round, top to bottom."""
        harvest = tools.generate(self._order(state, tools), self._writer(state, tools), round_number=state.round)
        candidates = (*state.candidates, *harvest.candidates)
        vectors = tools.embed([candidate.text for candidate in candidates])
        labels = selection.label_numbers(candidates, tools.task)
        models = np.array([tools.models.index(candidate.model) for candidate in candidates])

        known = state.memory.census
        census = census_file.from_dict(known) if known else self._ask(vectors, labels, tools)
        found = estimates(census, shrinkage=self.shrinkage)
        coordinates = census.subspace.coordinates(vectors, labels)
        raked = steering.text_weights(coordinates, labels, found, floor=self.effective)
        out, nearest = self._gated(vectors, labels, census, found)
        memory = CensusMemory(
            weights=self._weights(raked, models, tools),
            pool=self._pool(coordinates, labels, models, out, found, tools.task) if self.steering else {},
            census=known or census_file.to_dict(census),
        )
        last = state.round + 1 == self.rounds
        released = self._released(candidates, vectors, out, nearest, census, found, tools) if last else candidates
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(released),
            work=[harvest],
            figures=self._figures(census, found, raked, candidates, out) | {"weights": dict(state.memory.weights)},
        )
        return State(round=state.round + 1, candidates=released, rounds=(*state.rounds, report), memory=memory)

    def _order(self, state: State[CensusMemory], tools: Tools) -> list[Order]:
        before, after = (self.written * done // self.rounds for done in (state.round, state.round + 1))
        weights = np.array([state.memory.weights[model] for model in tools.models])
        shares = per_label(allocate(after - before, weights), len(tools.task.labels), before)
        return make_orders(shares, tools.task, tools.models)

    def _writer(self, state: State[CensusMemory], tools: Tools) -> RequestMaker:
        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            pool = state.memory.pool.get(order.label, ())
            shown = [pool[place] for place in generator.permutation(len(pool))[: self.shots]]
            return prompts.by_example(
                tools.task,
                order.label,
                texts=texts,
                rng=generator,
                good=[state.candidates[i].text for i in shown],
                temperature=self.temperature,
                words=self.words,
            )

        return write

    def _ask(self, vectors: NDArray[np.float32], labels: NDArray[np.int32], tools: Tools) -> Census:
        names = tuple(tools.task.labels)
        space = subspace(vectors, labels, len(names), directions=self.directions, quantile=self.reach)
        radius = np.array([space.radius], dtype=np.float32)
        answer = tools.ask(CLASS_SUMS, 0, basis=space.basis, centres=space.centres, radius=radius)
        count = round(self.count * GRID) / GRID
        return Census.of(answer, names, space, count=count, noise=tools.noise(CLASS_SUMS, 0))

    def _gated(
        self, vectors: NDArray[np.float32], labels: NDArray[np.int32], census: Census, found: Estimates
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """(n,) texts that are nearer to another label, and (n,) that label."""
        if self.gate == "off" or len(census.labels) == 1:
            return np.zeros(len(labels), dtype=bool), labels.astype(np.int64)
        scores, nearest = steering.doubts(vectors, labels, census, found)
        return steering.doubtful(scores, labels, margin=self.margin), nearest

    def _weights(self, raked: Floats, models: NDArray[np.int_], tools: Tools) -> dict[str, float]:
        count = len(tools.models)
        shares = steering.model_weights(raked, models, count) if self.model_weighting else np.full(count, 1 / count)
        return dict(zip(tools.models, shares.tolist(), strict=True))

    def _pool(
        self,
        coordinates: Floats,
        labels: NDArray[np.int32],
        models: NDArray[np.int_],
        out: NDArray[np.bool_],
        found: Estimates,
        task: Task,
    ) -> dict[str, list[int]]:
        pools = {}
        for number, label in enumerate(task.labels):
            members = np.flatnonzero((labels == number) & ~out)
            taken = steering.exemplars(
                coordinates[members], models[members], found.means[number], self.pool, nearer=self.nearer
            )
            pools[label] = members[taken].tolist()
        return pools

    def _released(
        self,
        candidates: Sequence[Candidate],
        vectors: NDArray[np.float32],
        out: NDArray[np.bool_],
        nearest: NDArray[np.int64],
        census: Census,
        found: Estimates,
        tools: Tools,
    ) -> tuple[Candidate, ...]:
        """Of each label at most its part of N, without those that the gate stops, weighed."""
        names = census.labels
        labels = selection.label_numbers(candidates, tools.task).astype(np.int64)
        if self.gate == "relabel":
            labels, out = np.where(out, nearest, labels), np.zeros_like(out)
        sizes = per_label(np.array([self.samples]), len(names))[0]
        kept: list[int] = []
        for number, name in enumerate(names):
            members = np.flatnonzero((labels == number) & ~out)
            if self.written > self.samples:
                draw = rng.experiment(tools.experiment_seed, "released", name).permutation(len(members))
                members = members[draw[: sizes[number]]]
            kept += members.tolist()
        kept.sort()
        chosen = [replace(candidates[i], label=names[labels[i]]) for i in kept]
        if not self.text_weights:
            return tuple(chosen)
        coordinates = census.subspace.coordinates(vectors[kept], labels[kept])
        weights = steering.text_weights(coordinates, labels[kept], found, floor=self.effective)
        return tuple(replace(text, weight=float(weight)) for text, weight in zip(chosen, weights, strict=True))

    def _figures(
        self,
        census: Census,
        found: Estimates,
        raked: Floats,
        candidates: Sequence[Candidate],
        out: NDArray[np.bool_],
    ) -> dict[str, Any]:
        stopped = Counter(candidate.label for candidate, gone in zip(candidates, out, strict=True) if gone)
        return {
            "signal_to_noise": census.signal_to_noise,
            "shares": dict(zip(census.labels, found.shares.tolist(), strict=True)),
            "shrinkage": dict(zip(census.labels, found.kept.tolist(), strict=True)),
            "mislabelled": {label: stopped[label] for label in census.labels},
            "effective_sample": steering.effective_sample(raked),
        }

    def _earlier_census(self) -> Census:
        assert self.census is not None
        return census_file.read(Path(self.census))[0]
