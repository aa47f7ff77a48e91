"""DP-KPS: prompts seeded with keyphrases from a private density ("Private Text Generation by Seeding LLM Prompts").

1. Ask for a histogram over a public vocabulary, in which each record's first k terms count; keep the |V'| terms with
    the highest counts.
2. Embed V' with the agreed encoder; draw frequencies from the public experiment seed.
3. Ask for sketches of the density of each label's phrases: one sketch over single phrases (`independent`), or an
   ensemble of K or ceil(log2 K) sketches over prefixes of sequences (`iterative`).
4. Draw N/C sequences of K phrases for each label.
5. Have a language model write one text per sequence. The prompt states the kind of text and the phrases, never the
   label.

A text gets the label from whose density its sequence was drawn. There is a single round, and steps 4 and 5 access no
private data. Sketches and histograms are sums over records, so that they work for any number of parties.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import ConfigError, DataError
from common.labelled_files import named_by, read_texts
from common.plan.planned import PlannedQuery
from common.privacy.samplers import LARGEST_LAPLACE_TABLE
from common.queries.histograms import VocabularySpec
from common.queries.sketch import SketchSpec
from common.queries.terms import Extractor, encode_terms
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated, Written, refuse_missing
from server.llm.orders import Order, even_orders, per_label
from server.llm.requests import by_example, with_keyphrases
from server.method import NoMemory, State, Tools
from server.operators import keyphrases
from server.operators.keyphrases import Density, Sequences
from server.operators.round_report import make_report
from server.settings.seeded import DpKpsSettings

VOCABULARY = "vocabulary"
FINEST_GRID = 256
COARSEST_GRID = 4
RAW = "keyphrases"
"""Name used in place of a model's name if the sequences themselves are released."""
Example = tuple[str, tuple[str, ...]]
"""A text provided by the recipient, and its phrases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DpKps(DpKpsSettings):
    """The DP-KPS method; `server.settings.seeded.DpKpsSettings` documents its settings."""

    memory: ClassVar[type[NoMemory]] = NoMemory

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        return {"keyphrases": None} if self.ablation == "none" else {}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan the histogram, then the sketches; plan no queries if the models write without phrases."""
        if self.samples < len(task.labels):
            expected = f"at least one text for each of {len(task.labels)} labels"
            raise ConfigError("method.samples", expected=expected, got=self.samples)
        if self.ablation == "no_llm":
            task.check_unmarked(
                "method.ablation=no_llm", "as no model writes the texts", "Set method.ablation=none or only_llm"
            )
        if self.ablation == "only_llm":
            return ()
        self._examples(self._terms())
        pure, specs = self.mechanism == "laplace", self._sketches(task, target, membership)
        counted = VocabularySpec(first=self.first_terms, max_records=target.max_records)
        # Unit counts have Laplace noise either way: Gaussian shares of many parties would be too small for them.
        first = PlannedQuery(name=VOCABULARY, spec=counted, mechanism="laplace", share=self.vocabulary_share, pure=pure)
        share = (1 - self.vocabulary_share) / len(specs)
        rest = (
            PlannedQuery(name=_name(spec.prefix), spec=spec, mechanism=self.mechanism, share=share, pure=pure)
            for spec in specs
        )
        return (first, *rest)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return N, or 0 if the models write no texts."""
        del task, models
        return 0 if self.ablation == "no_llm" else self.samples

    def compared(self, task: Task) -> dict[str, int]:
        """Return the number of selected terms, keyed by query."""
        del task
        return {} if self.ablation == "only_llm" else {VOCABULARY: self.kept_terms}

    def start(self, tools: Tools) -> State[NoMemory]:
        """Return a state without texts."""
        del tools
        return State(memory=NoMemory())

    def step(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        """Run the only round."""
        if self.ablation == "only_llm":
            return self._ended(state, tools, *self._unseeded(tools), notes=[])
        terms = self._terms()
        examples, counts = self._examples(terms), tools.ask(VOCABULARY, 0, terms=encode_terms(terms))
        vocabulary = keyphrases.private_vocabulary(terms, counts, self.kept_terms)
        vectors = tools.embed(vocabulary)
        densities = [self._density(name, vocabulary, vectors, tools) for name in map(_name, self._prefixes())]
        sizes = per_label(np.array([self.samples]), len(tools.task.labels))[0].tolist()
        drawn = [self._draw(densities, label, vectors, size, tools) for label, size in enumerate(sizes)]
        seeds = [
            (label, tuple(vocabulary[phrase] for phrase in phrases))
            for label, sequences in zip(tools.task.labels, drawn, strict=True)
            for phrases in sequences.phrases
        ]
        notes = _notes(drawn, tools.task, self.length)
        if self.ablation == "no_llm":  # the sequences themselves are the texts (section B.2.2)
            texts = [Candidate(text="; ".join(phrases), label=label, model=RAW, round=0) for label, phrases in seeds]
            return self._ended(state, tools, texts, Written(texts=[]), notes=notes)
        return self._ended(state, tools, *self._seeded(seeds, examples, tools), notes=notes)

    def _density(self, name: str, vocabulary: tuple[str, ...], vectors: NDArray[np.float32], tools: Tools) -> Density:
        spec = tools.spec(name)
        assert isinstance(spec, SketchSpec), "as planned"
        generator = rng.experiment(tools.experiment_seed, "frequencies", spec.prefix)
        frequencies, phases = keyphrases.draw_frequencies(spec, vectors.shape[1], self.bandwidth, generator)
        answer = tools.ask(
            name, 0, terms=encode_terms(vocabulary), vectors=vectors, frequencies=frequencies, phases=phases
        )
        return Density.of(spec, frequencies, phases, answer)

    def _draw(
        self, densities: Sequence[Density], label: int, vectors: NDArray[np.float32], count: int, tools: Tools
    ) -> Sequences:
        generator = rng.experiment(tools.experiment_seed, "sequences", label)
        if self.sequence == "independent":
            return keyphrases.draw_independently(densities[0].at(vectors)[label], count, self.length, generator)
        prefixes = keyphrases.ensemble_prefixes(self.length, self.ensemble)
        # A prefix of j phrases asks the first sketch that has as many blocks.
        ensemble = [densities[int(np.searchsorted(prefixes, j))] for j in range(1, self.length + 1)]
        return keyphrases.iterative(ensemble, label, vectors, count, generator)

    def _seeded(
        self, seeds: Sequence[tuple[str, tuple[str, ...]]], examples: Sequence[Example], tools: Tools
    ) -> tuple[list[Candidate], Written]:
        """Write one text for each sequence, cycling through the models; a prompt shows a repeated phrase only once."""
        requests = []
        for i, (_, phrases) in enumerate(seeds):
            request = with_keyphrases(
                tools.task,
                tuple(dict.fromkeys(phrases)),
                texts=1,
                examples=examples,
                temperature=self.temperature,
                words=self.words,
                rng=rng.experiment(tools.experiment_seed, "keyphrases", i),
            )
            # A recipient's texts may be as private as records.
            request = replace(request, showable=not examples)
            requests.append((tools.models[i % len(tools.models)], request))
        written = tools.write(requests)
        candidates = written.fill(Candidate(text="", label=label, model="", round=0) for label, _ in seeds)
        refuse_missing(tools.task.labels, candidates)
        return candidates, written

    def _unseeded(self, tools: Tools) -> tuple[list[Candidate], Generated]:
        """Return texts that models write from the label alone (section B.2.3)."""

        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            return by_example(
                tools.task, order.label, texts=texts, rng=generator, temperature=self.temperature, words=self.words
            )

        orders = even_orders(self.samples, tools.task, tools.models)
        harvest = tools.generate(orders, write, round_number=0)
        return harvest.candidates, harvest

    def _ended(
        self,
        state: State[NoMemory],
        tools: Tools,
        candidates: list[Candidate],
        written: Written | Generated,
        *,
        notes: list[str],
    ) -> State[NoMemory]:
        report = make_report(
            0,
            tools.models,
            requested=written.requested,
            generated=candidates,
            candidates=len(candidates),
            work=[written],
            notes=notes,
        )
        return State(round=state.round + 1, candidates=tuple(candidates), rounds=(report,), memory=NoMemory())

    def _prefixes(self) -> tuple[int, ...]:
        """Return, for each sketch, the number of phrases per point (`SketchSpec.prefix`); 0 means single phrases."""
        return keyphrases.ensemble_prefixes(self.length, self.ensemble) if self.sequence == "iterative" else (0,)

    def _sketches(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[SketchSpec, ...]:
        prefixes = self._prefixes()
        share = (1 - self.vocabulary_share) / len(prefixes)
        spec = SketchSpec(
            labels=len(task.labels),
            features=self.features,
            paired=self.mechanism == "gaussian",
            grid=self.grid or self._finest_grid(share, target, membership),
            max_records=target.max_records,
        )
        return tuple(replace(spec, prefix=prefix, first=max(prefix, self.first_terms)) for prefix in prefixes)

    def _finest_grid(self, share: float, target: PrivacyTarget, membership: Membership) -> int:
        """Choose the finest grid that is useful and for which the table of Laplace noise shares suffices.

        For a grid B, I features, and m, the product of the largest number of records per unit and the number of
        attempts, the scale of the noise is b = sqrt(2) I m B / epsilon, at most 2e4. A record's feature is rounded
        toward zero by less than 1/B. This moves a density by at most sqrt(2)/B of the label's records, usually by about
        a tenth of that, and mostly reduces all densities together, which does not change the draws. Noise moves each
        density independently, by b sqrt(2/I) on the grid, which is 2 sqrt(I) m / epsilon records.
        """
        if self.mechanism == "gaussian":
            return FINEST_GRID
        noise = math.sqrt(2) * self.features * target.max_records * membership.max_attempts
        grid = int(min(FINEST_GRID, LARGEST_LAPLACE_TABLE * target.epsilon * share / noise))
        if grid < COARSEST_GRID:
            most = int(self.features * LARGEST_LAPLACE_TABLE * target.epsilon * share / (noise * COARSEST_GRID))
            raise ConfigError(
                "method.features",
                expected=f"at most {most} for Laplace noise at this epsilon",
                got=self.features,
                do="Use fewer features, which loses little at such noise, or mechanism=gaussian",
            )
        return grid

    def _terms(self) -> tuple[str, ...]:
        return keyphrases.public_vocabulary(self.vocabulary, at_least=self.kept_terms)

    def _examples(self, terms: tuple[str, ...]) -> list[Example]:
        """Return the recipient's texts, each with its first K terms of the public vocabulary."""
        if self.few_shot is None:
            return []
        extractor = Extractor(terms)
        with named_by("method.few_shot"):
            texts = read_texts(self.few_shot)
        examples = [(text, tuple(terms[i] for i in extractor.first(text, self.length))) for text in texts]
        if not all(phrases for _, phrases in examples):
            raise DataError(
                "examples", expected="a term of the vocabulary in each", got="a text without", where=self.few_shot
            )
        return examples


def _name(prefix: int) -> str:
    return f"density of {prefix}-phrase prefixes" if prefix else "density of phrases"


def _notes(drawn: Sequence[Sequences], task: Task, length: int) -> list[str]:
    """Return a note on the labels for which, at some phrase, the noise left no density above 0."""
    return [
        f"{label}: no noised density above 0 for {sequences.uniform} of {len(sequences.phrases) * length} phrases, "
        "which were drawn uniformly"
        for label, sequences in zip(task.labels, drawn, strict=True)
        if sequences.uniform
    ]
