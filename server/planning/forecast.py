"""Forecast of a run: calls and tokens, by a rehearsal of the real method; and whether answers will be noise, in words.

The rehearsal has simulated models and parties. It includes the prompts of later rounds, with their exemplars, for every
method. If all sizes of a method are scaled by one factor, the number of requests of each kind is linear in this factor.
For a large run, two smaller runs are therefore rehearsed and extrapolated: a million texts take as long as three
thousand.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from common.phrases import series
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.texts import AbstractedSeedsSpec
from server.domain import Task
from server.llm.base import Provider
from server.llm.spending import Price, Usage
from server.method import Method, Resizable
from server.planning.rehearsal import Forecast, Kind, Rehearsal
from server.planning.signal import CLEAR, HOPELESS, signals

_MOST = 3_000  # texts that are rehearsed
_A_LABEL = 2  # of them at least of each label, so that there are exemplars and pairs


def rehearse(
    method: Method[Any],
    task: Task,
    plan: Plan,
    providers: Mapping[str, Provider],
    *,
    dimensions: int,
    records: int | None = None,
) -> dict[str, Forecast]:
    """Rehearse a run; the arguments are the same as for `forecast`.

    Returns:
        Expected use of each model if no text is lost, keyed by model.
    """
    texts, samples = method.max_texts(task, tuple(providers)), getattr(method, "samples", None)
    if not texts:
        return {name: Forecast() for name in providers}

    def played(share: float) -> dict[str, dict[Kind, Forecast]]:
        smaller = _resized(method, share, task)
        planned = [_scaled(query, share) for query in plan.queries]
        smaller_plan = replace(plan, queries=tuple(planned))
        rehearsal = Rehearsal(smaller, task, smaller_plan, providers, dimensions=dimensions, records=records)
        state = smaller.start(rehearsal)
        while state.round < smaller.rounds:
            state = smaller.step(state, rehearsal)
        return {name: actor.kinds for name, actor in rehearsal.actors.items()}

    # Orders of fewer texts than a prompt asks for would need more prompts per text than the whole run does.
    orders = method.rounds * len(task.labels) * len(providers)
    few = math.ceil(max(_MOST / 2, method.texts_per_request * orders) * samples / texts) if samples else 0
    few = max(few, _A_LABEL * len(task.labels))
    if not samples or 2 * few >= samples:
        return {name: _sum(kinds.values()) for name, kinds in played(1.0).items()}
    larger, half = played(2 * few / samples), played(few / samples)
    return {name: _sum(_followed(larger[name], half[name], (samples - 2 * few) / few)) for name in providers}


def _followed(larger: dict[Kind, Forecast], smaller: dict[Kind, Forecast], times: float) -> Iterator[Forecast]:
    """Extrapolate the calls of each kind: those of the larger rehearsal plus `times` the excess over the smaller one.

    The number of tokens per call is that of the larger rehearsal.
    """
    for kind, use in larger.items():
        calls = use.calls + times * (use.calls - smaller.get(kind, Forecast()).calls)
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


def _scaled(planned: PlannedQuery, share: float) -> PlannedQuery:
    """Multiply each party's number of texts by `share` in a query for abstracts; return any other query unchanged."""
    if isinstance(planned.spec, AbstractedSeedsSpec):
        return replace(planned, spec=replace(planned.spec, choices=max(1, round(share * planned.spec.choices))))
    return planned


def forecast_sentence(plan: Plan, compared: Mapping[str, int], records: int | None) -> str:
    """Return a sentence on the signal of a plan's answers, for hospitals to read before they decide.

    The arguments are the same as for `signals`.
    """
    if not plan.queries:
        return "no answer is asked for"
    if records is None:
        return "not known: the coordinator has named no number of records"
    estimates = [signal for signal in signals(plan, compared, records) if signal.expected]
    noise = [signal.query for signal in estimates if signal.ratio < HOPELESS]
    weak = [signal.query for signal in estimates if HOPELESS <= signal.ratio < CLEAR]
    if noise:
        what = f"the answers to {series(noise, 'and')} will be noise"
    elif weak:
        what = f"the answers to {series(weak, 'and')} will be weak"
    else:
        what = "the answers will be clear of their noise" if estimates else "the answers are not estimated"
    return f"{what} if {records:,} records take part{records_clause(plan)}"


def records_clause(plan: Plan) -> str:
    """Return a clause on which records take part, where a plan protects all records of a user; else an empty text."""
    if plan.unit != "user":
        return ""
    most = max((planned.spec.max_records for planned in plan.queries), default=1)
    return f", counting at most {most:,} of each person, and of a hospital whose file names nobody"


def forecast(
    method: Method[Any],
    task: Task,
    plan: Plan,
    providers: Mapping[str, Provider],
    prices: Mapping[str, Price | None],
    *,
    dimensions: int,
    records: int | None = None,
) -> dict[str, Any]:
    """Estimate calls, tokens and cost of the language models, for each model and in total, if no text is lost.

    Args:
        method: The method to rehearse.
        task: The public description of the data.
        plan: The plan of the method's queries.
        providers: Language models, keyed by name.
        prices: Prices of the remote models; None if unknown.
        dimensions: Number of dimensions of the encoder's vectors.
        records: Expected total number of records. If None, so many are assumed that noise does not change the requested
            lengths.

    Returns:
        The figures in the form for JSON, with `texts`, the maximum number of texts that the run requests. A model's
        `cost` is None if its price is unknown, and the total is the sum of the known costs.
    """
    models = {}
    for name, expected in rehearse(method, task, plan, providers, dimensions=dimensions, records=records).items():
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
