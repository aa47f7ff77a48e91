"""Census: the answer to one noised question on where the records' vectors lie steers all rounds (our own method).

Round t of T:
1. Order N/T texts, split over models by weight, and over labels evenly until there is an answer, later by need
   (`server/operators/census_texts.py`).
2. Prompt zero-shot until there is an answer, later with S exemplars of the label, drawn from its pool; a model that
   writes what is requested is always prompted zero-shot (`server/operators/reliability.py`).
3. Add the new texts to all earlier ones, D.
4. After the first round ask once, with all of epsilon, for class sums: for each label, the sum of its records'
   coordinates in a public subspace, and the number of these records. With `questionnaire`, the same answer contains the
   number of records with each form of text; from then on texts of these forms are requested, shown and chosen
   (`server/operators/questionnaire.py`). The queries are defined in `server/operators/census_question.py`.
5. Estimate each label's proportion of the records, and the mean of its records (`server/operators/census.py`). The
   means define a classifier, which gives the probability of each label for each text of D, regardless of the requested
   label.
6. The 2 S texts with the highest probability of a label are its next pool. A model's weight is the squared mean
   probability that its texts have the labels requested of it. A label needs more texts the larger its proportion is,
   and the fewer texts of D have it as their most probable label.
7. After the last round each text gets the probability of each label, softened to the degree from which a model learns
   most, and corrected to the labels' proportions (`server/operators/distillation.py`); the label that was requested of
   a reliable model also counts as evidence. The texts are weighted so that the labels have these proportions.

Texts with several labels (`server/operators/label_sets.py`): one more query asks which labels occur together, and sets
of labels are requested according to its answer. In steps 4 and 5 a text counts under each of its labels. In step 6 a
label's probability is the probability of being a record with this label rather than a first-round text. Step 7 leaves
the texts as they are.

Texts in sections (`server/operators/section_texts.py`): the labels are headings, and in steps 3, 4 and 5 each section
of a text counts under its heading. One more query, before the first round, asks in which order sections follow one
another; sequences of headings are drawn from its answer, and texts are written section by section. Steps 6 and 7 are
the same as for texts with several labels.

A task without labels is treated as one label: the probability in step 6 is the probability of being a record rather
than a first-round text (`server/operators/population.py`), and step 7 leaves the texts as they are.

After T rounds, and one private query, D is the synthetic data set. The answer is stored in `census.json` in the run
folder: another run, possibly with other models, can begin with this answer (setting `census`), and then asks no query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from server.documents.census import CensusNumbers, Released
from server.domain import Candidate, Earlier, Membership, PrivacyTarget, Task
from server.method import State, Tools
from server.metrics.linear import LinearClassifier, by_label
from server.operators import (
    census_file,
    census_question,
    census_texts,
    distillation,
    label_sets,
    section_texts,
    steering,
)
from server.operators.census import Census, Estimates, Floats, classifier, estimates, figures, posteriors
from server.operators.census_texts import CensusMemory, texts_of_round
from server.operators.population import under_label
from server.operators.questionnaire import Aims, aims_of, nearest, nearest_by_label
from server.operators.reliability import ZERO_SHOT, Written, reliabilities, with_evidence
from server.operators.round_report import make_report
from server.operators.steering import effective_sample
from server.settings.methods import CensusSettings

_SOFTNESS = "softness"
WIDER = 4
"""Factor by which a questionnaire enlarges the pools of exemplars, so that those closest in form can be chosen."""
FLOOR = 0.5
"""Smallest effective sample size of the weighted released texts, as a fraction of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusMethod(CensusSettings):
    """The census method; `server.settings.methods.CensusSettings` documents its settings."""

    memory: ClassVar[type[CensusMemory]] = CensusMemory

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        return {}

    def earlier(self) -> Earlier | None:
        """Return the run whose census is used; None if this run asks its own query (`server.method.Reusing`)."""
        return None if self.census is None else census_file.read(Path(self.census))[1]

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan no queries if a finished run's census is used; otherwise one, or two for several labels or sections."""
        del membership
        census_question.check(self, task)
        return census_question.queries(self, task, target.max_records)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return N, the run's number of texts; with a questionnaire, return the number from which N are chosen."""
        del task, models
        return sum(texts_of_round(self, number) for number in range(self.rounds))

    def compared(self, task: Task) -> dict[str, int]:
        """Return an empty mapping, since records are summed instead of choosing among candidates."""
        del task
        return {}

    def start(self, tools: Tools) -> State[CensusMemory]:
        """Return a state without texts, with equal weights and, if the settings name a finished run, its census."""
        weights = {model: 1 / len(tools.models) for model in tools.models}
        memory = CensusMemory(weights=weights)
        if self.census is None:
            return State(memory=memory)
        census, _ = census_file.read(Path(self.census))
        return State(released=_released(census), memory=memory)

    def step(self, state: State[CensusMemory], tools: Tools) -> State[CensusMemory]:
        """Run one round."""
        known = self._aims(state.released) if state.round else None
        sets, harvest = census_texts.harvest(self, state, tools, aimed=known)
        candidates = (*state.candidates, *harvest.candidates)
        written = section_texts.row_texts(candidates)
        vectors = tools.embed(written)
        places, requested = label_sets.label_rows(candidates, tools.task)
        texts_so_far = Written(
            vectors=vectors,
            requested=requested,
            models=np.array([tools.models.index(candidate.model) for candidate in candidates])[places],
        )

        released = state.released or _released(census_question.ask(self, texts_so_far, written, tools))
        census, aimed = _census(released), self._aims(released)
        estimated = estimates(census, shrinkage=self.shrinkage)
        labelled = census_question.distinct(tools.task)
        if labelled:
            posterior = posteriors(vectors, estimated.means, census.softness)
        else:
            posterior = under_label(texts_so_far.vectors, requested, estimated.means, census.subspace.centres)
        reliability = self._reliability(census, estimated, texts_so_far, tools)
        if aimed and state.round + 1 == self.rounds:
            labels = steering.most_probable_labels(posterior)
            kept = nearest_by_label(aimed, written, labels, self.samples)
            candidates, vectors = tuple(candidates[place] for place in kept), vectors[kept]
            posterior, texts_so_far = posterior[kept], texts_so_far.chosen(kept)
        memory, texts, soft = state.memory, candidates, census.softness
        if state.round + 1 < self.rounds:
            memory = self._remember(
                state.round + 1, texts_so_far, posterior, shares=estimated.shares, reliability=reliability, tools=tools
            )
            if aimed:
                memory = replace(memory, pool=self._nearest_in_pools(memory.pool, candidates, aimed))
            pool = memory.pool
            if tools.task.sectioned:
                pool = section_texts.of_own_heading(pool, requested)
            pool = {label: [int(places[row]) for row in chosen] for label, chosen in pool.items()}
            memory = replace(memory, sets=sets, pool=pool)
        else:
            if labelled and self.labels == "probabilities":
                soft = distillation.student_softness(vectors, estimated.means)
                posterior = with_evidence(
                    posteriors(vectors, estimated.means, soft),
                    texts_so_far,
                    reliability,
                    sharpness=min(1.0, census.softness / soft),
                )
            if labelled:
                texts = self._final(candidates, posterior, census.labels, estimated.shares)
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(texts),
            work=[harvest],
            figures={
                "weights": dict(state.memory.weights),
                **figures(census, estimated, texts_so_far.requested, posterior),
                "reliability": dict(zip(tools.models, reliability.tolist(), strict=True)),
                _SOFTNESS: soft,
                "effective_sample": effective_sample(np.array([text.weight for text in texts])),
            },
        )
        return State(
            round=state.round + 1,
            candidates=texts,
            rounds=(*state.rounds, report),
            released=released,
            memory=memory,
        )

    def classifier(self, state: State[CensusMemory]) -> LinearClassifier:
        """Return the classifier defined by the estimated means after the last step (`server.method.Labelling`)."""
        census = _census(state.released)
        return classifier(census, estimates(census, shrinkage=self.shrinkage), _softness(state, census))

    def training_labels(self, state: State[CensusMemory], vectors: NDArray[np.float32]) -> Floats:
        """Return the (n, C) label probabilities for training on (n, dim) vectors (`server.method.Labelling`)."""
        census = _census(state.released)
        estimated = estimates(census, shrinkage=self.shrinkage)
        posterior = posteriors(vectors, estimated.means, _softness(state, census))
        return distillation.with_shares(posterior, estimated.shares, np.ones(len(vectors)))

    def _aims(self, released: Mapping[str, Mapping[str, Any]]) -> Aims | None:
        """Return the records' estimated proportions as targets for the texts; None if not asked for or not used."""
        numbers = CensusNumbers.from_json(released[Released.FILE])
        return None if self.questionnaire == "none" or numbers.questionnaire is None else aims_of(numbers)

    def _nearest_in_pools(
        self, pools: Mapping[str, Sequence[int]], candidates: Sequence[Candidate], aimed: Aims
    ) -> dict[str, list[int]]:
        """Return the indices of 2 S exemplars from each label's pool that resemble records in form, keyed by label."""
        near = {}
        for label, pool in pools.items():
            rows = aimed.features([candidates[place].text for place in pool])
            near[label] = [pool[place] for place in nearest(rows, aimed.shares, aimed.variances, 2 * self.shots)]
        return near

    def _remember(
        self, coming: int, texts: Written, posterior: Floats, *, shares: Floats, reliability: Floats, tools: Tools
    ) -> CensusMemory:
        """Return the memory for the coming round, with its weights, needs and pools."""
        labels = list(tools.task.labels)
        weights = np.full(len(tools.models), 1 / len(tools.models))
        if self.model_weighting:
            weights = steering.model_weights(posterior, texts.requested, texts.models, len(tools.models))
        reliable = [model for model, share in zip(tools.models, reliability, strict=True) if share >= ZERO_SHOT]
        memory = CensusMemory(weights=dict(zip(tools.models, weights.tolist(), strict=True)), reliable=reliable)
        if self.need:
            needs = steering.needs(posterior, shares, texts_of_round(self, coming)).tolist()
            memory = replace(memory, needs=dict(zip(labels, needs, strict=True)))
        if self.steering:
            wider = WIDER if self.questionnaire != "none" else 1
            pools = steering.exemplars(posterior, texts.models, wider * 2 * self.shots)
            memory = replace(memory, pool=dict(zip(labels, pools, strict=True)))
        return memory

    def _reliability(self, census: Census, estimated: Estimates, texts: Written, tools: Tools) -> Floats:
        """Estimate the proportion of each model's texts with the requested label, (K,); zeros without `evidence`."""
        models = len(tools.models)
        evidence = self.evidence and census_question.distinct(tools.task)
        return reliabilities(census, estimated, texts, models) if evidence else np.zeros(models)

    def _final(
        self, candidates: Sequence[Candidate], posterior: Floats, names: tuple[str, ...], shares: Floats
    ) -> tuple[Candidate, ...]:
        """Return D with its final labels and weights."""
        labels = np.array([names.index(candidate.label) for candidate in candidates])
        kept = np.arange(len(candidates))
        if self.labels == "probabilities":
            weights = self._weights(steering.most_probable_labels(posterior), shares)
            posterior = distillation.with_shares(posterior, shares, weights)
        if self.labels == "gate":
            kept = steering.kept_by_gate(posterior, labels)
        elif self.labels != "requested":
            labels = steering.most_probable_labels(posterior)
        texts = [replace(candidates[place], label=names[labels[place]]) for place in kept.tolist()]
        if self.labels == "probabilities":
            rows = zip(texts, by_label(names, posterior), strict=True)
            texts = [replace(text, probabilities=row) for text, row in rows]
        weights = self._weights(labels[kept], shares)
        return tuple(replace(text, weight=float(weight)) for text, weight in zip(texts, weights, strict=True))

    def _weights(self, labels: NDArray[np.int64], shares: Floats) -> Floats:
        """Return the weights of texts with these labels, (n,)."""
        return steering.text_weights(labels, shares, floor=FLOOR) if self.share_weights else np.ones(len(labels))


def _softness(state: State[CensusMemory], census: Census) -> float:
    """Return the softness of the released probabilities; if an earlier version recorded none, the census's."""
    return float(state.rounds[-1].figures.get(_SOFTNESS, census.softness))


def _census(released: Mapping[str, Mapping[str, Any]]) -> Census:
    return census_file.census_of(CensusNumbers.from_json(released[Released.FILE]))


def _released(census: Census) -> dict[str, dict[str, Any]]:
    """Return the numbers that the run releases in addition to its texts."""
    return {Released.FILE: census_file.numbers_of(census).to_json()}
