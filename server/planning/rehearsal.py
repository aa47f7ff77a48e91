"""The rehearsal of a run: the method's tools, with simulated models and parties.

Models write placeholders of the expected length, parties answer at random as if their records also had that length, and
nothing is sent. The method's requests to the models are counted by kind.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.plan import Plan
from common.privacy import mechanisms
from common.queries import text_codec
from common.queries.closed_set import Spec, make_query
from common.queries.histograms import LengthHistogramSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.sketch import SketchSpec, features
from common.queries.texts import TextSpec
from server.domain import Task
from server.llm.base import Arrived, Provider, Reply, Request
from server.llm.generate import Generated, Written, generate, write_texts
from server.llm.orders import Order, RequestMaker
from server.llm.requests import by_example
from server.method import Method

_TOKENS_PER_WORD = 1.35
_FILLER = " words"  # as long as an English word with its space
_UNKNOWN = 1_000  # records, where no number is expected
_SEARCHES = 11  # for each party's ends of the range of lengths


@dataclass(slots=True)
class Forecast:
    """Expected numbers of requests and tokens of one model, or of one kind of its requests."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def scaled(self, factor: float) -> "Forecast":
        """Return this forecast, multiplied by a factor."""
        return Forecast(factor * self.calls, factor * self.input_tokens, factor * self.output_tokens)


Kind = tuple[object, ...]
"""Kind of a request, which determines the length of its prompt: its modes, and whether it shows texts."""


class Rehearsal:
    """The `server.method.Tools` of a rehearsal: `Actor` objects write the texts, and answers are random."""

    experiment_seed = 0

    def __init__(
        self,
        method: Method[Any],
        task: Task,
        plan: Plan,
        providers: Mapping[str, Provider],
        *,
        dimensions: int,
        records: int | None,
    ) -> None:
        self.task = task
        self._dimensions, self._records = dimensions, records
        self.models = tuple(providers)
        self.actors = {name: Actor(name, provider) for name, provider in providers.items()}
        self._texts_per_request = method.texts_per_request
        self._parties = plan.parties
        self._planned = {query.name: query for query in plan.queries}
        request = by_example(task, next(iter(task.labels)), texts=1, rng=rng.experiment(0, "rehearsal"))
        words = [_words_of(actor.estimate(request)[1], request) for actor in self.actors.values()]
        self._words = round(np.mean(words))

    def generate(self, orders: Sequence[Order], make_request: RequestMaker, *, round_number: int) -> Generated:
        """Fill the orders with placeholders."""
        return generate(
            self.actors,
            orders,
            make_request,
            round_number=round_number,
            texts_per_request=self._texts_per_request,
            experiment_seed=self.experiment_seed,
        )

    def write(self, requests: Sequence[tuple[str, Request]]) -> Written:
        """Answer the requests with placeholders."""
        return write_texts(self.actors, requests)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return random vectors, (texts, dimensions) float32, unit norm."""
        shape = (len(texts), self._dimensions)
        rows = rng.experiment(0, "rehearsal", len(texts)).normal(size=shape).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def spec(self, name: str) -> Spec:
        """Return the specification of a planned query."""
        return self._planned[name].spec

    def ask(self, name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Return a simulated answer for the query's kind: counts, lengths, feature sums, choices or encoded texts."""
        planned, generator = self._planned[name], rng.experiment(0, "rehearsal", name, nth)
        spec = planned.spec
        if isinstance(spec, LengthRangeSpec):
            return self._length_ranges(spec.cap, planned.scale, generator)
        if isinstance(spec, LengthHistogramSpec):
            bins = np.searchsorted(arrays["edges"], self._lengths(self._records or _UNKNOWN), side="right")
            noise = generator.normal(0, planned.noise_deviation if self._records else 0, spec.bins)
            return np.bincount(bins, minlength=spec.bins) + noise
        if isinstance(spec, SketchSpec):
            return self._sketch(spec, planned.noise_deviation, arrays, generator)
        if isinstance(spec, SeedChoiceSpec):
            return generator.integers(len(arrays["vectors"]), size=(self._parties, spec.choices)).astype(np.float64)
        if isinstance(spec, TextSpec):
            filler, labels = _FILLER * (self._words - 1), len(self.task.labels)
            texts = [(at % labels, f"{at}{filler}") for at in range(spec.texts)]
            return np.tile(text_codec.encode(texts, spec.texts, spec.longest).astype(np.float64), (self._parties, 1))
        length = make_query(spec, arrays).length
        return np.abs(generator.normal(3, 1, (length,) if planned.summed else (self._parties, length))) + 0.1

    def _sketch(
        self, spec: SketchSpec, deviation: float, arrays: Mapping[str, NDArray[Any]], generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """Simulate sums of features for equal numbers of records per label, whose terms cover the vocabulary evenly."""
        records, vectors = (self._records or _UNKNOWN) / spec.labels, arrays["vectors"]
        if spec.prefix:
            drawn = generator.integers(len(vectors), size=(_UNKNOWN, spec.prefix))
            vectors = vectors[drawn].reshape(len(drawn), -1)
        sums = records * features(vectors @ arrays["frequencies"].T, arrays["phases"]).mean(axis=0)
        noise = generator.normal(0, deviation if self._records else 0, spec.labels * spec.features)
        return np.tile(sums, spec.labels) + noise

    def _lengths(self, records: int) -> NDArray[np.int64]:
        """Return the lengths of `records` records, evenly spaced from half to 1.5 times that of a model's texts."""
        return np.linspace(0.5 * self._words, 1.5 * self._words, max(1, records)).round().astype(np.int64)

    def _length_ranges(self, cap: int, scale: float, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the range that each party's search finds; with few records, noise may end a search before the cap."""
        lengths = self._lengths((self._records or _UNKNOWN) // self._parties)
        if not (self._records and scale):
            return np.tile([float(lengths[0]), float(lengths[-1])], (self._parties, 1))
        # The medians of more searches than there are parties are those to expect.
        keys = [generator.bytes(32) for _ in range(_SEARCHES * self._parties)]
        return np.array([mechanisms.length_range(lengths, cap, scale, key) for key in keys], np.float64)

    def noise(self, name: str, nth: int) -> float:
        """Return the standard deviation of the planned noise; see `server.method.Tools`."""
        del nth
        return self._planned[name].noise_deviation


class Actor:
    """A model that writes distinct placeholders and counts the expected use of the real model."""

    remote = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name = self.identity = name
        self.declines = provider.declines
        self.kinds: dict[Kind, Forecast] = {}
        self._provider = provider
        self._words = 1
        self._numbers = itertools.count()

    def check(self) -> None:
        """Do nothing, since no request is sent."""

    def estimate(self, request: Request) -> tuple[int, int]:
        """Return the real model's estimate of the numbers of input and output tokens."""
        return self._provider.estimate(request)

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Return a reply to each request, with the requested number of placeholders."""
        del arrived
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Reply:
        use = self.kinds.setdefault((request.modes, bool(request.shown), request.n > 1), Forecast())
        input_tokens, output_tokens = self._provider.estimate(request)
        use.calls += 1
        use.input_tokens += input_tokens
        use.output_tokens += output_tokens
        self._words = _words_of(output_tokens, request)
        # A variation has the length of its parent; a new text is no longer than is asked for, but may well be shorter.
        words = request.words if request.words and request.source else min(request.words or self._words, self._words)
        filler = _FILLER * (words - 1)
        fillers = (f"{self.name}-{next(self._numbers)}{filler}" for _ in range(request.n))
        return Reply(texts=tuple(fillers), input_tokens=0, output_tokens=0)


def _words_of(tokens: int, request: Request) -> int:
    return max(1, round(tokens / _TOKENS_PER_WORD / request.n))
