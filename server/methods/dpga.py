"""DPGA-TextSyn: a genetic algorithm whose operators are prompts (Sun et al. 2025).

0. Before the first generation, ask for metadata: the number of records with each label, if there are labels; the
   records' lengths, as a range found by the sparse vector technique and a histogram over this range; the keywords
   nearest to each label's records, among those that the models list for the label; and the similarity of pairs of
   records. The keywords are listed before anything is asked: a keyword is usable if it has one to four words in the
   task's usual script, and the run stops if fewer than half of a label's are in each of three attempts
   (`server/operators/metadata.py`).
Then, in generation t of T:
1. At t = 0 the population consists of new texts with a label, keyword and length drawn from the metadata. Later it
   consists of the elites and their offspring: rewritten elites, elites with half of their words replaced, crossovers of
   two elites of one label, and new texts as at t = 0. A child has the length of its parent, or the mean length of both
   parents.
2. Ask for Top-1 nearest votes from a Poisson subsample of the records.
3. The elites are the N candidates with the most votes, except those too similar to a better candidate
   (`server/operators/genetic.py`).

The elites of the last generation are the synthetic data set. A text stays as long as it gets enough votes (elitism).

Each query gets a fraction of epsilon, and the votes get the rest. In the paper, half of epsilon goes to metadata: a
fifth of epsilon to the length range, a tenth to each histogram. The paper computes the mean similarity with noise but
does not charge it to the budget; here it is a query that gets a twentieth of epsilon, taken from the votes, and is
asked only with `tau=None`. One subsample serves all votes, so that subsampling saves as much epsilon as the paper
computes; with `redraw`, a new subsample is drawn for each vote and charged accordingly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from common.errors import ConfigError, ProviderError
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.page import Spec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.votes import VotesSpec
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.generate import Written
from server.method import State, Tools
from server.metrics.diversity import self_similarity
from server.operators import metadata, selection
from server.operators.genetic import Birth, Births, suppress
from server.operators.metadata import Metadata
from server.operators.round_report import make_report
from server.operators.smoothing import smooth_votes
from server.settings.voting import DpgaSettings

LABELS = "labels"
LENGTH_RANGE = "length range"
LENGTHS = "lengths"
KEYWORDS = "keywords"
SIMILARITY = "self-similarity"
VOTES = "nearest votes"


@dataclass(frozen=True, slots=True, kw_only=True)
class DpgaMemory:
    """DPGA-TextSyn's memory from generation to generation.

    Attributes:
        metadata: Metadata from which new texts are drawn; None before the first generation.
    """

    metadata: Metadata | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "DpgaMemory":
        """Read the memory back from `to_dict`'s form, after a round trip through JSON."""
        return cls(metadata=Metadata(**saved["metadata"]) if saved["metadata"] else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dpga(DpgaSettings):
    """The DPGA-TextSyn method; `server.settings.voting.DpgaSettings` documents its settings."""

    texts_per_request: ClassVar[int] = 1  # each has a separate keyword and length
    memory: ClassVar[type[DpgaMemory]] = DpgaMemory

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        later = self.rounds > 1
        operators = (
            ("subtopics", "keywords", self.keywords > 0),
            ("rewriting", "rewritten", later and self._times(self.rewritten) > 0),
            ("blanks", "filled", later and self._times(self.filled) > 0),
            ("crossing", "crossed", later and self._times(self.crossed) > 0),
        )
        return {mode: f"method.{setting}=0" for mode, setting, used in operators if used}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan the queries for the metadata that the settings choose, and votes in each generation.

        Each query for metadata gets the fraction of epsilon that its setting states; the votes together get the
        remainder.
        """
        del membership
        if self.samples < len(task.labels):
            raise ConfigError(
                "method.samples", expected=f"one text for each of {len(task.labels)} labels", got=self.samples
            )
        most, queries = target.max_records, list[PlannedQuery]()

        def ask(name: str, spec: Spec, share: float, mechanism: str = "laplace") -> None:
            queries.append(PlannedQuery(name=name, spec=spec, mechanism=mechanism, share=share))

        if task.labelled:
            ask(LABELS, LabelHistogramSpec(labels=len(task.labels), max_records=most), self.label_share)
        if self.length:
            ask(
                LENGTH_RANGE,
                LengthRangeSpec(cap=self.longest, max_records=most),
                self.length_range_share,
                "sparse vector",
            )
            ask(LENGTHS, LengthHistogramSpec(bins=self.bins, max_records=most), self.length_share)
        if self.keywords > 0:
            ask(KEYWORDS, VotesSpec(top=1, furthest=False, max_records=most), self.keyword_share)
        if self.suppression and self.tau is None:
            ask(SIMILARITY, SelfSimilaritySpec(buckets=self.buckets, max_records=most), self.similarity_share)
        remaining_share = 1 - sum(query.share for query in queries)
        if remaining_share <= 1e-9:
            what, do = "the other queries leave no epsilon for the votes", "Lower the settings method.*_share"
            raise ConfigError(what, got=f"{remaining_share:g}", do=do)
        votes = VotesSpec(top=1, furthest=False, fine=self.fine, max_records=target.max_records)
        return (
            *queries,
            PlannedQuery(
                name=VOTES,
                spec=votes,
                times=self.rounds,
                share=remaining_share,
                rate=self.subsample,
                redraw=self.redraw,
            ),
        )

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Count the keywords, the first population, and the offspring of all generations but the last."""
        del models
        return self.keywords * len(task.labels) + self._times(self.initial) + (self.rounds - 1) * self._offspring

    def compared(self, task: Task) -> dict[str, int]:
        """Return the number of all keywords, and the size of the first or a later population, whichever is larger."""
        later = self.samples + self._offspring if self.rounds > 1 else 0
        votes = {VOTES: max(self._times(self.initial), later)}
        return votes | ({KEYWORDS: self.keywords * len(task.labels)} if self.keywords else {})

    def start(self, tools: Tools) -> State[DpgaMemory]:
        """Return a state without texts or metadata."""
        del tools
        return State(memory=DpgaMemory())

    def step(self, state: State[DpgaMemory], tools: Tools) -> State[DpgaMemory]:
        """Run one generation."""
        genes, listing, notes = state.memory.metadata, Written(texts=[]), list[str]()
        if genes is None:
            genes, listing, notes = self._metadata(tools)
        births = self._births(state, genes, tools)
        written = tools.write([(child.model, request) for child, request in births])
        born = written.fill(child for child, _ in births)
        population = (*state.candidates, *born)
        if not population:
            raise ProviderError(
                "language models",
                expected="texts",
                got=f"none for {len(births)} requests",
                do="Look at the models' own errors above; resuming asks again",
            )

        vectors = tools.embed([candidate.text for candidate in population])
        numbers = selection.label_numbers(population, tools.task)
        votes = tools.ask(VOTES, state.round, vectors=vectors, labels=numbers)
        if self.smoothing:
            votes = smooth_votes(votes, vectors, numbers, noise=tools.noise(VOTES, state.round))
        survivors = suppress(votes, vectors, self.samples, tau=genes.tau, step=self.tau_step)
        elites, chosen = tuple(population[place] for place in survivors.positions), vectors[survivors.positions]

        report = make_report(
            state.round,
            tools.models,
            requested=written.requested,
            generated=born,
            candidates=len(elites),
            work=[listing, written],
            notes=[*notes, *self._notes(len(population), elites, genes, survivors.tau)],
            figures={
                "population": len(population),
                "tau": survivors.tau,
                "self_similarity": self_similarity(chosen) if len(chosen) > 1 else None,
                **({"metadata": asdict(genes)} if state.round == 0 else {}),
            },
        )
        return State(
            round=state.round + 1,
            candidates=elites,
            rounds=(*state.rounds, report),
            memory=DpgaMemory(metadata=genes),
        )

    def _metadata(self, tools: Tools) -> tuple[Metadata, Written, list[str]]:
        """Run step 0: ask for the metadata. Return it with the models' texts and notes for the report."""
        labels, notes = dict.fromkeys(tools.task.labels, 1.0), list[str]()
        listed, listing = dict[str, list[str]](), Written(texts=[])
        if self.keywords:  # listed first, so that models that list none stop the run before it costs anything
            listed, listing, notes = metadata.list_keywords(
                tools, list(labels), self.keywords, temperature=self.keyword_temperature
            )
        if tools.task.labelled:
            labels, more = metadata.label_shares(tools.ask(LABELS, 0), tools.task)
            notes += more
        lengths: list[tuple[int, int, float]] = []
        if self.length:
            span, more = metadata.length_range(tools.ask(LENGTH_RANGE, 0), self.longest)
            edges, spans = metadata.bins(span, self.bins)
            lengths, most = metadata.length_shares(tools.ask(LENGTHS, 0, edges=edges), spans)
            notes += [*more, *most]
        keywords = {}
        if self.keywords:
            present = {label: listed[label] for label, share in labels.items() if share > 0}
            phrases = [(label, phrase) for label, label_phrases in present.items() for phrase in label_phrases]
            numbers = np.array([list(tools.task.labels).index(label) for label, _ in phrases], dtype=np.int32)
            vectors = tools.embed([phrase for _, phrase in phrases])
            votes = tools.ask(KEYWORDS, 0, vectors=vectors, labels=numbers)
            keywords = metadata.keyword_shares(votes, present, softmax=self.softmax)
        tau = 1.0 if not self.suppression else self.tau
        if tau is None:
            tau, more = metadata.first_tau(tools.ask(SIMILARITY, 0))
            notes += more
        return Metadata(labels=labels, lengths=lengths, keywords=keywords, tau=tau), listing, notes

    def _births(self, state: State[DpgaMemory], genes: Metadata, tools: Tools) -> list[Birth]:
        """Return the requests for the texts of this generation (step 1)."""
        births = Births(tools=tools, genes=genes, number=state.round, temperature=self.temperature)
        if state.round == 0:
            return list(births.new(self._times(self.initial)))
        elites = state.candidates
        return [
            *births.varied("rewritten", elites, self._times(self.rewritten)),
            *births.varied("filled in", elites, self._times(self.filled), mask=self.mask),
            *births.crossed(elites, self._times(self.crossed)),
            *births.new(self._times(self.fresh)),
        ]

    @property
    def _offspring(self) -> int:
        """Number of texts that are written in each generation after the first."""
        return sum(map(self._times, (self.rewritten, self.filled, self.crossed, self.fresh)))

    def _times(self, share: float) -> int:
        return round(share * self.samples)

    def _notes(self, population: int, elites: Sequence[Candidate], genes: Metadata, tau: float) -> list[str]:
        notes = []
        if len(elites) < self.samples:
            notes.append(f"{len(elites)} elites of {self.samples}: {population} texts, tau at {tau:.2f}")
        elif self.suppression and tau >= 1:
            notes.append("too few dissimilar texts: tau reached 1, where nothing is suppressed")
        present = {candidate.label for candidate in elites}
        notes += [
            f"{label}: no text among the elites"
            for label, share in genes.labels.items()
            if share and label not in present
        ]
        return notes
