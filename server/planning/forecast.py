"""Forecast of the calls and tokens of a run, by a rehearsal: the real method with simulated models and parties.

Models write placeholders of the expected length, parties answer at random as if their records had that length too, and
nothing is sent. So the forecast includes the prompts of later rounds, with their exemplars, for every method. If one
model gets very many requests, a sample of them is measured and extrapolated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.plan.plan import Plan
from common.queries import text_codec
from common.queries.closed_set import Spec, make_query
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import TextSpec
from server.domain import Task
from server.llm import prompts
from server.llm.base import Arrived, Provider, Reply, Request
from server.llm.generate import Generated, Written, generate, write
from server.llm.orders import Order, RequestMaker
from server.llm.spending import Price, Usage
from server.method import Method

_TOKENS_PER_WORD = 1.35
_EVERY = 8  # later requests: one in 8 is measured and weighted by 8
_FIRST = 200  # requests to each model that are all measured


@dataclass(slots=True, kw_only=True)
class Forecast:
    """Expected use of one model.

    Attributes:
        calls: Number of requests.
        input_tokens: Number of input tokens.
        output_tokens: Number of output tokens.
    """

    calls: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0


def rehearse(
    method: Method[Any], task: Task, plan: Plan, providers: Mapping[str, Provider], dimensions: int
) -> dict[str, Forecast]:
    """Rehearse a run.

    Returns:
        Expected use by model, if no text is lost.
    """
    rehearsal = _Rehearsal(method, task, plan, providers, dimensions)
    state = method.start(rehearsal)
    while state.round < method.rounds:
        state = method.step(state, rehearsal)
    return {name: actor.forecast for name, actor in rehearsal.actors.items()}


class _Rehearsal:
    """The `server.method.Tools` of a rehearsal: actors write, and answers are random."""

    experiment_seed = 0

    def __init__(
        self, method: Method[Any], task: Task, plan: Plan, providers: Mapping[str, Provider], dimensions: int
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


class _Actor:
    """A model that writes distinct placeholders and adds up the expected use of the real one."""

    remote = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name = self.identity = name
        self.declines = provider.declines
        self.forecast = Forecast()
        self._provider = provider
        self._words = 1

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
        self.forecast.calls += 1
        if self.forecast.calls <= _FIRST or self.forecast.calls % _EVERY == 0:
            weight = 1 if self.forecast.calls <= _FIRST else _EVERY
            input_tokens, output_tokens = self._provider.estimate(request)
            self.forecast.input_tokens += weight * input_tokens
            self.forecast.output_tokens += weight * output_tokens
            self._words = _words(output_tokens, request)
        filler = " word" * ((request.words or self._words) - 1)
        fillers = (f"{self.name}-{self.forecast.calls}-{number}{filler}" for number in range(request.n))
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
            "calls": expected.calls,
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
