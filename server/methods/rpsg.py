"""RPSG: one synthetic text for each seed that records choose (Ma and Rajtmajer, "Private Seeds, Public LLMs").

1. Seeds are chosen by one query. Its kind depends on `candidates`:
   - "pool": the models write a public pool of abstracts; each drawn record of a party chooses one of them, and the
     choices leave the party unsummed. The guarantee is pure epsilon, end to end.
   - "histogram": the records vote for their nearest abstracts of the same pool; the votes are summed over all parties
     under secure aggregation and noised, and seeds are drawn in proportion to the sums. The guarantee is (epsilon,
     delta) or pure epsilon, end to end.
   - "seed_unproven": the paper's procedure. Each drawn record is rewritten as several abstracts within its party, and
     the winner of a noised choice leaves the party as text. The choice is private but the text is not, so there is no
     guarantee and epsilon is infinite.
2. For each seed, a model writes a variant: a text that the abstract could summarise (section 3.3, Table 6).
3. Each variant is rephrased once.
4. The texts are refined (`server/operators/refinement.py`), which needs no private data: enough texts are written at
   first that about `samples` remain.

Points 1 and 2 form the first round, 3 and 4 the second and last. The paper has no labels. Here every label gets the
same number of the seeds that were chosen for it, since the number of records with a label is private.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import ConfigError, ProtocolError
from common.plan.planned import PlannedQuery
from common.queries import text_codec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec
from common.queries.votes import VotesSpec
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated, Written, refuse_missing
from server.llm.orders import Order, even_orders, per_label
from server.llm.requests import abstracts, paraphrase, request_from_abstract
from server.method import NoMemory, State, Tools
from server.operators import selection
from server.operators.refinement import Refinement, Rehearsed, redact_texts
from server.operators.round_report import make_report
from server.operators.selection import Parents
from server.operators.smoothing import smooth_votes
from server.settings.seeded import MECHANISMS, RpsgSettings

CHOICES = "seed choices"
VOTES = "nearest votes"
ABSTRACTS = "abstracted seeds"

Seeds = tuple[list[Candidate], Parents, Generated, list[str]]
"""The abstracts; the indices of each label's seeds among them, repeated as often as they were chosen; the models'
texts; and notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpsg(RpsgSettings):
    """The RPSG method; `server.settings.seeded.RpsgSettings` documents its settings."""

    memory: ClassVar[type[NoMemory]] = NoMemory

    refinement: Refinement = field(default_factory=Refinement)

    @property
    def modes(self) -> dict[str, str | None]:
        """Modes that the requests use; see `server.method.Method`."""
        return {"abstracts": None, "rewriting": None}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan the method's only query."""
        for name, value in (("samples", self.samples), ("pool", self.pool)):
            if value < len(task.labels):
                expected = f"at least one text for each of {len(task.labels)} labels"
                raise ConfigError(f"method.{name}", expected=expected, got=value)
        max_records = target.max_records
        mechanism = self.mechanism or MECHANISMS[self.candidates][0]
        seeds = sum(self._needed(task)) if self.candidates == "seed_unproven" else self.samples
        choices = self.choices or -(-seeds // membership.parties)
        match self.candidates:
            case "pool":
                chosen = SeedChoiceSpec(choices=choices, nearest=self._nearest(target), max_records=max_records)
                return (PlannedQuery(name=CHOICES, spec=chosen, mechanism=mechanism, pure=True),)
            case "histogram":
                votes = VotesSpec(top=self.top, furthest=False, fine=self.fine, max_records=max_records)
                return (PlannedQuery(name=VOTES, spec=votes, mechanism=mechanism, pure=mechanism == "laplace"),)
            case _:
                abstracted = AbstractedSeedsSpec(
                    choices=choices, longest=self.longest, candidates=self.abstracts, max_records=max_records
                )
                return (PlannedQuery(name=ABSTRACTS, spec=abstracted, mechanism=mechanism),)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Count the pool, a variant of each seed and a rephrasing of each variant."""
        del models
        return self.pool * (self.candidates != "seed_unproven") + 2 * sum(self._needed(task))

    def resized(self, share: float, task: Task) -> "Rpsg":
        """Return the method scaled to this fraction of its texts, without the slow refinement, which uses no model."""
        return replace(
            self,
            samples=max(len(task.labels), round(share * self.samples)),
            pool=max(2, len(task.labels), round(share * self.pool)),
            nearest=None,
            refinement=Rehearsed(**asdict(self.refinement)),
        )

    def compared(self, task: Task) -> dict[str, int]:
        """Return the size of the pool; empty with "seed_unproven", which compares each record's own abstracts."""
        del task
        return {name: self.pool for name, kind in ((CHOICES, "pool"), (VOTES, "histogram")) if kind == self.candidates}

    def start(self, tools: Tools) -> State[NoMemory]:
        """Return a state without texts."""
        del tools
        return State(memory=NoMemory())

    def step(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        """Write a variant of each seed; in the second step, rephrase each variant and refine the result."""
        return self._variants(state, tools) if state.round == 0 else self._rephrasings(state, tools)

    def _variants(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        seeds: dict[str, Callable[[Tools], Seeds]] = {
            "pool": self._chosen,
            "histogram": self._voted,
            "seed_unproven": self._released,
        }
        abstracts, parents, public, notes = seeds[self.candidates](tools)
        chosen = [
            abstracts[i]
            for label_parents, size in zip(parents, self._needed(tools.task), strict=True)
            for i, count in selection.offspring(label_parents, size)
            for _ in range(count)
        ]
        variants, _, written = self._write(chosen, request_from_abstract, state.round + 1, tools)
        report = make_report(
            state.round,
            tools.models,
            requested=public.requested + written.requested,
            generated=[*public.candidates, *variants],
            candidates=len(variants),
            work=[public, written],
            notes=notes,
        )
        return State(round=state.round + 1, candidates=tuple(variants), rounds=(report,), memory=NoMemory())

    def _rephrasings(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        variants = state.candidates
        rephrased, origins, written = self._write(variants, paraphrase, state.round + 1, tools)
        vectors, originals = (
            tools.embed([text.text for text in candidates_to_embed]) for candidates_to_embed in (rephrased, variants)
        )
        quota = dict(zip(tools.task.labels, self._texts_per_label(tools.task), strict=True))
        positions = self.refinement.select(
            rephrased, variants, vectors, originals[origins], wanted=quota, experiment_seed=tools.experiment_seed
        )
        candidates = redact_texts([rephrased[at] for at in positions], tools.task.language)
        label_counts = Counter(candidate.label for candidate in candidates)
        report = make_report(
            state.round,
            tools.models,
            requested=written.requested,
            generated=rephrased,
            candidates=len(candidates),
            work=[written],
            notes=[
                f"{label}: {label_counts[label]} texts are left after refinement where {count} were asked for"
                for label, count in quota.items()
                if label_counts[label] < count
            ],
        )
        return State(
            round=state.round + 1, candidates=tuple(candidates), rounds=(*state.rounds, report), memory=state.memory
        )

    def _chosen(self, tools: Tools) -> Seeds:
        """Return the seeds that records chose from a public pool."""
        pool, notes = self._pool(tools)
        labels = selection.label_numbers(pool.candidates, tools.task)
        vectors = tools.embed([abstract.text for abstract in pool.candidates])
        answers = tools.ask(CHOICES, 0, vectors=vectors, labels=labels)
        # What one party answers wrongly must not end a run that all others have paid for.
        unreadable = np.asarray(~((answers >= 0) & (answers < len(labels))).all(axis=-1))
        if unreadable.all():
            raise ProtocolError("seed choices", expected=f"positions below {len(labels)}", got="others")
        if unreadable.any():
            notes.append(
                f"{int(unreadable.sum())} of {len(unreadable)} parties answered with no choices and are left out"
            )
        answers = answers[~unreadable]
        counts = np.bincount(answers.astype(np.int64).reshape(-1), minlength=len(labels))
        parents = []
        for number, label in enumerate(tools.task.labels):
            members = np.flatnonzero(labels == number)
            chosen = np.repeat(members, counts[members])
            if not len(chosen):
                notes.append(f"{label}: no record chose an abstract of it, so its seeds are drawn uniformly")
            parents.append(_dealt(chosen if len(chosen) else members, label, tools))
        return pool.candidates, parents, pool, notes

    def _voted(self, tools: Tools) -> Seeds:
        """Return seeds drawn from a public pool in proportion to the records' noised votes."""
        pool, notes = self._pool(tools)
        labels = selection.label_numbers(pool.candidates, tools.task)
        vectors = tools.embed([abstract.text for abstract in pool.candidates])
        votes = tools.ask(VOTES, 0, vectors=vectors, labels=labels)
        if self.smoothing:
            votes = smooth_votes(votes, vectors, labels, noise=tools.noise(VOTES, 0))
        parents, more = selection.choose_parents(
            votes,
            labels,
            self._needed(tools.task),
            select="sample",
            threshold=self.threshold,
            rng=rng.experiment(tools.experiment_seed, "survivors", 0),
            task=tools.task,
        )
        return pool.candidates, parents, pool, [*notes, *more]

    def _released(self, tools: Tools) -> Seeds:
        """Return abstracts of records, released without proof. A label without a released abstract gets public ones."""
        labels, spec = list(tools.task.labels), tools.spec(ABSTRACTS)
        assert isinstance(spec, AbstractedSeedsSpec), "as planned"
        read, unreadable = text_codec.readable(tools.ask(ABSTRACTS, 0), spec.texts, spec.longest, len(labels))
        abstracts = [
            Candidate(text=text, label=labels[number], model=tools.models[i % len(tools.models)], round=0)
            for i, (number, text) in enumerate(read)
        ]
        had = {abstract.label for abstract in abstracts}
        missing = {label: about for label, about in tools.task.labels.items() if label not in had}
        public = self._written(len(missing) * len(tools.models), missing, tools) if missing else Generated()
        abstracts += public.candidates
        numbers = selection.label_numbers(abstracts, tools.task)
        parents = [_dealt(np.flatnonzero(numbers == i), label, tools) for i, label in enumerate(labels)]
        notes = [f"{label}: no party released a seed of it, so its texts start from public ones" for label in missing]
        return abstracts, parents, public, [*unreadable, *notes]

    def _pool(self, tools: Tools) -> tuple[Generated, list[str]]:
        pool = self._written(self.pool, tools.task.labels, tools)
        if len(pool.candidates) == self.pool:
            return pool, []
        return pool, [f"the models wrote {len(pool.candidates)} of the pool's {self.pool} abstracts"]

    def _written(self, count: int, labels: dict[str, str], tools: Tools) -> Generated:
        """Have the models write `count` abstracts, balanced across models and these labels (±1)."""

        def write(order: Order, number: int, generator: np.random.Generator) -> Request:
            return abstracts(
                tools.task,
                order.label,
                texts=number,
                rng=generator,
                temperature=self.temperature,
                words=self.abstract_words,
            )

        orders = even_orders(count, replace(tools.task, labels=labels), tools.models)
        return tools.generate(orders, write, round_number=0)

    def _write(
        self, sources: Sequence[Candidate], prompt: Callable[..., Request], round_number: int, tools: Tools
    ) -> tuple[list[Candidate], list[int], Written]:
        """Have each source's own model write a text for it; also return the index of each text's source.

        Raises:
            ProviderError: A label got no text from any model.
        """
        requests = []
        for at, source in enumerate(sources):
            request = prompt(
                tools.task,
                source.label,
                source.text,
                texts=1,
                temperature=self.temperature,
                rng=rng.experiment(tools.experiment_seed, "rewriting", round_number, at),
                words=self.words if prompt is request_from_abstract else None,
            )
            requests.append((source.model, replace(request, showable=self.candidates != "seed_unproven")))
        written = tools.write(requests)
        new = written.fill(replace(source, round=round_number) for source in sources)
        refuse_missing(tools.task.labels, new)
        return new, [at for at, texts in enumerate(written.texts) if texts], written

    def _texts_per_label(self, task: Task) -> list[int]:
        """Return the number of texts of each label that should remain after refinement."""
        sizes: list[int] = per_label(np.array([self.samples]), len(task.labels))[0].tolist()
        return sizes

    def _needed(self, task: Task) -> list[int]:
        """Return the number of seeds of each label."""
        return [self.refinement.needed(size) for size in self._texts_per_label(task)]

    def _nearest(self, target: PrivacyTarget) -> int:
        """Return `nearest`, or else the number of near abstracts that is most informative (Ye and Barg 2018)."""
        if self.nearest is not None:
            return self.nearest
        epsilon = target.epsilon / target.max_records
        return max(1, round(self.pool / (1 + math.exp(min(epsilon, 700)))))


def _dealt(members: NDArray[np.integer], label: str, tools: Tools) -> list[int]:
    """Return the indices in random order, so that no model or party is preferred if not all are needed."""
    dealt: list[int] = rng.experiment(tools.experiment_seed, "seeds", label).permutation(members).tolist()
    return dealt
