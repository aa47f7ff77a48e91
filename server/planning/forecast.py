"""Forecast of the calls and tokens of a run, by a rehearsal: the real method with simulated models and parties.

Models write placeholders of the expected length, parties answer at random as if their records had that length too, and
nothing is sent. So the forecast includes the prompts of later rounds, with their exemplars, for every method.

The number of requests of a kind is linear in the sizes of a method, all of them scaled by one share, so of a large run
two smaller ones are rehearsed, and the line through them is followed: a million texts take as long as two thousand.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries import text_codec
from common.queries.closed_set import Spec, make_query
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec, TextSpec
from server.domain import Task
from server.llm import prompts
from server.llm.base import Arrived, Provider, Reply, Request
from server.llm.generate import Generated, Written, generate, write
from server.llm.orders import Order, RequestMaker
from server.llm.spending import Price, Usage
from server.method import Method, Resizable

_TOKENS_PER_WORD = 1.35
_MOST = 3_000  # texts that are rehearsed
_A_LABEL = 2  # of them at least of each label, so that there are exemplars and pairs


@dataclass(slots=True)
class Forecast:
    """Expected use of one model, or of its requests of one kind.

    Attributes:
        calls: Number of requests.
        input_tokens: Number of input tokens.
        output_tokens: Number of output tokens.
    """

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def scaled(self, factor: float) -> "Forecast":
        """So many times this."""
        return Forecast(factor * self.calls, factor * self.input_tokens, factor * self.output_tokens)


Kind = tuple[object, ...]
"""What tells requests apart whose prompts differ in length: their modes, and whether they show texts."""


def rehearse(
    method: Method[Any], task: Task, plan: Plan, providers: Mapping[str, Provider], dimensions: int
) -> dict[str, Forecast]:
    """Rehearse a run.

    Returns:
        Expected use by model, if no text is lost.
    """
    texts, samples = method.max_texts(task, tuple(providers)), getattr(method, "samples", None)
    if not texts:
        return {name: Forecast() for name in providers}

    def played(share: float) -> dict[str, dict[Kind, Forecast]]:
        smaller = _resized(method, share, task)
        planned = [_scaled(query, share) for query in plan.queries]
        rehearsal = _Rehearsal(smaller, task, replace(plan, queries=tuple(planned)), providers, dimensions)
        state = smaller.start(rehearsal)
        while state.round < smaller.rounds:
            state = smaller.step(state, rehearsal)
        return {name: actor.kinds for name, actor in rehearsal.actors.items()}

    # Orders of fewer texts than a prompt asks for would be more prompts a text than those of the whole run.
    orders = method.rounds * len(task.labels) * len(providers)
    few = math.ceil(max(_MOST / 2, method.texts_per_request * orders) * samples / texts) if samples else 0
    few = max(few, _A_LABEL * len(task.labels))
    if not samples or 2 * few >= samples:
        return {name: _sum(kinds.values()) for name, kinds in played(1.0).items()}
    some, half = played(2 * few / samples), played(few / samples)
    return {name: _sum(_followed(some[name], half[name], (samples - 2 * few) / few)) for name in providers}


def _followed(some: dict[Kind, Forecast], half: dict[Kind, Forecast], times: float) -> Iterator[Forecast]:
    """By kind, the calls and so many times their difference from half the size; tokens a call are the larger one's."""
    for kind, use in some.items():
        calls = use.calls + times * (use.calls - half.get(kind, Forecast()).calls)
        yield use.scaled(max(0.0, calls) / use.calls)


def _sum(kinds: Iterable[Forecast]) -> Forecast:
    total = Forecast()
    for use in kinds:
        total.calls += use.calls
        total.input_tokens += use.input_tokens
        total.output_tokens += use.output_tokens
    return total


def _resized(method: Method[Any], share: float, task: Task) -> Method[Any]:
    if isinstance(method, Resizable):
        return method.resized(share, task)
    if share == 1:
        return method
    settings: Any = method
    return cast("Method[Any]", replace(settings, samples=round(share * settings.samples)))


class _Rehearsal:
    """The `server.method.Tools` of a rehearsal: actors write, and answers are random."""

    experiment_seed = 0

    def __init__(
        self,
        method: Method[Any],
        task: Task,
        plan: Plan,
        providers: Mapping[str, Provider],
        dimensions: int,
    ) -> None:
        self.task = task
        self._dimensions = dimensions
        self.models = tuple(providers)
        self.actors = {name: _Actor(name, provider) for name, provider in providers.items()}
        self._texts_per_request = method.texts_per_request
        self._parties = plan.parties
        self._planned = {query.name: query for query in plan.queries}
        request = prompts.by_example(task, next(iter(task.labels)), texts=1, rng=rng.experiment(0, "rehearsal"))
        words = [_words(actor.estimate(request)[1], request) for actor in self.actors.values()]
        self._words = round(np.mean(words))

    def generate(self, orders: Sequence[Order], make_request: RequestMaker, *, round_number: int) -> Generated:
        """Fill orders with placeholders."""
        return generate(
            self.actors,
            orders,
            make_request,
            round_number=round_number,
            texts_per_request=self._texts_per_request,
            experiment_seed=self.experiment_seed,
        )

    def write(self, requests: Sequence[tuple[str, Request]]) -> Written:
        """Answer requests with placeholders."""
        return write(self.actors, requests)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return random directions: (texts, dimensions) float32, unit norm."""
        shape = (len(texts), self._dimensions)
        rows = rng.experiment(0, "rehearsal", len(texts)).normal(size=shape).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def spec(self, name: str) -> Spec:
        """The specification of a planned query."""
        return self._planned[name].spec

    def ask(self, name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Answer distinct positive counts, lengths near those of a model's texts, choices, or texts of all labels."""
        planned, generator = self._planned[name], rng.experiment(0, "rehearsal", name, nth)
        spec = planned.spec
        if isinstance(spec, LengthRangeSpec):
            return np.tile([0.5 * self._words, 1.5 * self._words], (self._parties, 1))
        if isinstance(spec, SeedChoiceSpec):
            return generator.integers(len(arrays["vectors"]), size=(self._parties, spec.choices)).astype(np.float64)
        if isinstance(spec, TextSpec):
            filler, labels = " word" * (self._words - 1), len(self.task.labels)
            texts = [(at % labels, f"{at}{filler}") for at in range(spec.texts)]
            return np.tile(text_codec.encode(texts, spec.texts, spec.longest).astype(np.float64), (self._parties, 1))
        length = make_query(spec, arrays).length
        return np.abs(generator.normal(3, 1, (length,) if planned.summed else (self._parties, length))) + 0.1

    def noise(self, name: str, nth: int) -> float:
        """Standard deviation of the planned noise; see `server.method.Tools`."""
        del nth
        return self._planned[name].noise_deviation


def _scaled(planned: PlannedQuery, share: float) -> PlannedQuery:
    """The query, with a share of the texts that it asks each party for."""
    if isinstance(planned.spec, AbstractedSeedsSpec):
        return replace(planned, spec=replace(planned.spec, choices=max(1, round(share * planned.spec.choices))))
    return planned


class _Actor:
    """A model that writes distinct placeholders and adds up the expected use of the real one."""

    remote = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name = self.identity = name
        self.declines = provider.declines
        self.kinds: dict[Kind, Forecast] = {}
        self._provider = provider
        self._words = 1
        self._numbers = itertools.count()

    def check(self) -> None:
        """Do nothing: no request is sent."""

    def estimate(self, request: Request) -> tuple[int, int]:
        """Return the estimate of the real model."""
        return self._provider.estimate(request)

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Write the requested number of placeholders."""
        del arrived
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Reply:
        use = self.kinds.setdefault((request.modes, bool(request.shown), request.n > 1), Forecast())
        input_tokens, output_tokens = self._provider.estimate(request)
        use.calls += 1
        use.input_tokens += input_tokens
        use.output_tokens += output_tokens
        self._words = _words(output_tokens, request)
        filler = " word" * ((request.words or self._words) - 1)
        fillers = (f"{self.name}-{next(self._numbers)}{filler}" for _ in range(request.n))
        return Reply(texts=tuple(fillers), input_tokens=0, output_tokens=0)


def _words(tokens: int, request: Request) -> int:
    return max(1, round(tokens / _TOKENS_PER_WORD / request.n))


def forecast(
    method: Method[Any],
    task: Task,
    plan: Plan,
    providers: Mapping[str, Provider],
    prices: Mapping[str, Price | None],
    *,
    dimensions: int,
) -> dict[str, Any]:
    """Estimate calls, tokens and cost of the language models, by model and in total, if no text is lost.

    Args:
        method: The method to rehearse, once.
        task: What is public about the data.
        plan: The plan of its queries.
        providers: Language models by name.
        prices: Prices of the remote models; None if unknown.
        dimensions: Width of the encoder's vectors.

    Returns:
        Includes `texts`, the largest number of texts that the run requests; a model's `cost` is None if its price is
        unknown, and the total is the sum of the known costs.
    """
    models = {}
    for name, expected in rehearse(method, task, plan, providers, dimensions).items():
        use = Usage(input=round(expected.input_tokens), output=round(expected.output_tokens))
        price = prices.get(name)
        cost = (price.of(use) if price else None) if providers[name].remote else 0.0
        models[name] = {
            "calls": round(expected.calls),
            "input_tokens": use.input,
            "output_tokens": use.output,
            "cost": cost,
        }
    totals = {
        total: sum(model[kind] or 0 for model in models.values())
        for total, kind in (
            ("model_calls", "calls"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("cost", "cost"),
        )
    }
    return {"texts": method.max_texts(task, tuple(providers)), **totals, "models": models}
