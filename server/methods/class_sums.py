"""Class sums: the answer to one noised query on where the records' vectors lie steers all rounds (our own).

Round t of T:
1. Order N/T texts, split over models by weight, and over labels evenly until there is an answer, later by need
   (`server/operators/class_sums_round.py`).
2. Prompt zero-shot until there is an answer, later with S exemplars of the label, drawn from its pool; a model that
   writes what is requested is always prompted zero-shot (`server/operators/steering.py`).
3. Add the new texts to all earlier ones, D.
4. After the first round ask once, with all of epsilon, for class sums: for each label, the sum of its records'
   coordinates in a public subspace, and the number of these records. With `questionnaire`, the same answer contains the
   number of records with each form of text; from then on texts of these forms are requested, shown and chosen
   (`server/operators/questionnaire.py`). The queries are defined in `server/operators/class_sums_round.py`.
5. Estimate each label's proportion of the records, and the mean of its records (`server/operators/class_sums.py`). The
   means define a classifier, which gives the probability of each label for each text of D, regardless of the requested
   label.
6. The 2 S texts with the highest probability of a label are its next pool. A model's weight is the squared mean
   probability that its texts have the labels requested of it. A label needs more texts the larger its proportion is,
   and the fewer texts of D have it as their most probable label.
7. After the last round each text gets the probability of each label, softened to the degree from which a model learns
   most, and corrected to the labels' proportions (`server/operators/final_labels.py`); the label that was requested of
   a reliable model also counts as evidence. Or the texts nearest to each label's records keep their requested labels
   (`labels="nearest"`). The texts are weighted so that the labels have these proportions.

Texts with several labels (`server/operators/label_sets.py`): one more query asks which labels occur together, and sets
of labels are requested according to its answer. In steps 4 and 5 a text counts under each of its labels. In step 6 a
label's probability is the probability of being a record with this label rather than a first-round text. Step 7 leaves
the texts as they are.

Texts in sections (`server/operators/section_texts.py`): the labels are headings, and in steps 3, 4 and 5 each section
of a text counts under its heading. One more query, before the first round, asks in which order sections follow one
another; sequences of headings are drawn from its answer, and texts are written section by section. Steps 6 and 7 are
the same as for texts with several labels.

A task without labels is treated as one label: the probability in step 6 is the probability of being a record rather
than a first-round text (`server.operators.class_sums.likeness`), and step 7 leaves the texts as they are.

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
from server.documents.class_sums import ClassSumsNumbers, Released
from server.documents.privacy import Earlier
from server.domain import Membership, PrivacyTarget, Task
from server.method import State, Tools
from server.metrics.linear import LinearClassifier
from server.operators import class_sums_file, class_sums_round, label_sets, section_texts, steering
from server.operators.class_sums import (
    Estimates,
    Floats,
    NoisySums,
    class_sums_figures,
    classifier,
    estimates,
    likeness,
    posteriors,
)
from server.operators.class_sums_round import ClassSumsMemory, texts_of_round
from server.operators.final_labels import (
    effective_sample,
    label_texts,
    most_probable_labels,
    student_softness,
    texts_near_records,
    with_shares,
)
from server.operators.questionnaire import WIDER, Aims, aims_of, nearest_by_label, nearest_in_pools
from server.operators.round_report import make_report
from server.operators.steering import ZERO_SHOT, TextRows, reliabilities, with_evidence
from server.settings.methods import ClassSumsSettings

_SOFTNESS = "softness"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSumsMethod(ClassSumsSettings):
    """The method `class_sums`; `server.settings.methods.ClassSumsSettings` documents its settings."""

    memory: ClassVar[type[ClassSumsMemory]] = ClassSumsMemory
    modes: ClassVar[Mapping[str, str | None]] = {}

    def earlier(self) -> Earlier | None:
        """Return the run whose class sums are used; None if this run asks its own query (`server.method.Reusing`)."""
        return None if self.census is None else class_sums_file.read_noisy_sums(Path(self.census))[1]

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan no queries if a finished run's sums are used; otherwise one, or two for several labels or sections."""
        del membership
        class_sums_round.check_class_sums(self, task)
        return class_sums_round.class_sums_queries(self, task, target.max_records)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return N, the run's number of texts; with a questionnaire, return the number from which N are chosen."""
        del task, models
        return sum(texts_of_round(self, number) for number in range(self.rounds))

    def compared(self, task: Task) -> dict[str, int]:
        """Return an empty mapping, since records are summed instead of choosing among candidates."""
        del task
        return {}

    def start(self, tools: Tools) -> State[ClassSumsMemory]:
        """Return a state without texts, with equal weights and, if the settings name a finished run, its sums."""
        memory = ClassSumsMemory(weights={model: 1 / len(tools.models) for model in tools.models})
        if self.census is None:
            return State(memory=memory)
        noisy, _ = class_sums_file.read_noisy_sums(Path(self.census))
        return State(released=_released(noisy), memory=memory)

    def step(self, state: State[ClassSumsMemory], tools: Tools) -> State[ClassSumsMemory]:
        """Run one round."""
        noisy = _class_sums(state.released) if state.released else None
        known = self._aims(noisy) if noisy and state.round else None
        sets, harvest = class_sums_round.harvest(self, state, tools, aimed=known)
        candidates = (*state.candidates, *harvest.candidates)
        written = section_texts.row_texts(candidates)
        places, requested = label_sets.label_rows(candidates, tools.task)
        models = np.array([tools.models.index(candidate.model) for candidate in candidates])[places]
        texts = TextRows(vectors=tools.embed(written), requested=requested, models=models)

        noisy = noisy or class_sums_round.ask(self, texts, written, tools)
        aimed = self._aims(noisy)
        estimated = estimates(noisy, shrinkage=self.shrinkage)
        labelled = tools.task.one_label
        if labelled:
            posterior = posteriors(texts.vectors, estimated.means, noisy.softness)
        else:
            posterior = likeness(texts.vectors, requested, estimated.means, noisy.subspace.centres)
        reliability = self._reliability(noisy, estimated, texts, tools)
        memory, soft = state.memory, noisy.softness
        if state.round + 1 < self.rounds:
            memory = self._remember(
                state.round + 1, texts, posterior, shares=estimated.shares, reliability=reliability, tools=tools
            )
            if aimed:
                memory = replace(memory, pool=nearest_in_pools(aimed, memory.pool, candidates, 2 * self.shots))
            pool = section_texts.pools_by_heading(memory.pool, requested) if tools.task.sectioned else memory.pool
            pool = {label: [int(places[row]) for row in chosen] for label, chosen in pool.items()}
            memory = replace(memory, sets=sets, pool=pool)
        else:
            kept = None
            if aimed:
                kept = nearest_by_label(aimed, written, most_probable_labels(posterior), self.samples)
            elif labelled and self.labels == "nearest":
                kept = texts_near_records(texts.vectors, texts.requested, estimated.means, noisy.subspace.basis)
            if kept is not None:
                candidates = tuple(candidates[place] for place in kept)
                posterior, texts = posterior[kept], texts.chosen(kept)
            if labelled and self.labels == "probabilities":
                soft = student_softness(texts.vectors, estimated.means)
                posterior = posteriors(texts.vectors, estimated.means, soft)
                sharpness = min(1.0, noisy.softness / soft)
                posterior = with_evidence(posterior, texts, reliability, sharpness=sharpness)
            if labelled:
                candidates = label_texts(self, candidates, posterior, noisy.labels, estimated.shares)
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(candidates),
            work=[harvest],
            figures={
                "weights": dict(state.memory.weights),
                **class_sums_figures(noisy, estimated, texts.requested, posterior),
                "reliability": dict(zip(tools.models, reliability.tolist(), strict=True)),
                _SOFTNESS: soft,
                "effective_sample": effective_sample(np.array([text.weight for text in candidates])),
            },
        )
        return State(
            round=state.round + 1,
            candidates=candidates,
            rounds=(*state.rounds, report),
            released=state.released or _released(noisy),
            memory=memory,
        )

    def classifier(self, state: State[ClassSumsMemory]) -> LinearClassifier:
        """Return the classifier defined by the estimated means after the last step (`server.method.Labelling`)."""
        noisy = _class_sums(state.released)
        return classifier(noisy, estimates(noisy, shrinkage=self.shrinkage), _softness(state, noisy))

    def training_labels(self, state: State[ClassSumsMemory], vectors: NDArray[np.float32]) -> Floats:
        """Return the (n, C) label probabilities for training on (n, dim) vectors (`server.method.Labelling`)."""
        noisy = _class_sums(state.released)
        estimated = estimates(noisy, shrinkage=self.shrinkage)
        posterior = posteriors(vectors, estimated.means, _softness(state, noisy))
        return with_shares(posterior, estimated.shares, np.ones(len(vectors)))

    def _aims(self, noisy: NoisySums) -> Aims | None:
        """Return the records' estimated proportions as targets for the texts; None if not asked for or not used."""
        return aims_of(noisy) if self.questionnaire != "none" and noisy.questionnaire else None

    def _remember(
        self, coming: int, texts: TextRows, posterior: Floats, *, shares: Floats, reliability: Floats, tools: Tools
    ) -> ClassSumsMemory:
        """Return the memory for the coming round, with its weights, needs and pools."""
        labels = list(tools.task.labels)
        weights = np.full(len(tools.models), 1 / len(tools.models))
        if self.model_weighting:
            weights = steering.model_weights(posterior, texts.requested, texts.models, len(tools.models))
        reliable = [model for model, share in zip(tools.models, reliability, strict=True) if share >= ZERO_SHOT]
        memory = ClassSumsMemory(weights=dict(zip(tools.models, weights.tolist(), strict=True)), reliable=reliable)
        if self.need:
            needs = steering.needs(posterior, shares, texts_of_round(self, coming)).tolist()
            memory = replace(memory, needs=dict(zip(labels, needs, strict=True)))
        if self.steering:
            wider = WIDER if self.questionnaire != "none" else 1
            pools = steering.most_probable_texts(posterior, texts.models, wider * 2 * self.shots)
            memory = replace(memory, pool=dict(zip(labels, pools, strict=True)))
        return memory

    def _reliability(self, noisy: NoisySums, estimated: Estimates, texts: TextRows, tools: Tools) -> Floats:
        """Estimate the proportion of each model's texts with the requested label, (K,); zeros without `evidence`."""
        models = len(tools.models)
        evidence = self.evidence and tools.task.one_label
        return reliabilities(noisy, estimated, texts, models) if evidence else np.zeros(models)


def _softness(state: State[ClassSumsMemory], noisy: NoisySums) -> float:
    """Return the softness of the released probabilities; if an earlier version recorded none, that of the sums."""
    return float(state.rounds[-1].figures.get(_SOFTNESS, noisy.softness))


def _class_sums(released: Mapping[str, Mapping[str, Any]]) -> NoisySums:
    return class_sums_file.noisy_sums_of(ClassSumsNumbers.from_json(released[Released.FILE]))


def _released(noisy: NoisySums) -> dict[str, dict[str, Any]]:
    """Return the numbers that the run releases in addition to its texts."""
    return {Released.FILE: class_sums_file.numbers_of(noisy).to_json()}
