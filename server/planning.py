"""What a run will ask and cost, known before anything private is touched."""

import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from common.domain import Task
from common.llm.base import Provider
from common.privacy import plan as planning
from common.privacy.ledger import Ledger
from common.privacy.plan import Plan
from server import prompts
from server.methods.base import Method
from server.statement import not_covered, statement

log = logging.getLogger("caucus.planning")


def make_plan(
    method: Method,
    *,
    task: Task,
    encoder: str,
    parties: int,
    max_dropouts: int,
    colluders: int,
    secure: bool,
    epsilon: float,
    delta: float,
    unit: str,
    max_records: int,
    threshold: int | None = None,
) -> Plan:
    """Price and calibrate all that `method` can ask, at worst.

    One party alone has nobody to hide among: it adds all the noise itself and no masks are made.

    Raises:
        ConfigError, PlanError: With the numbers that do not fit.
    """
    if secure and parties == 1:
        log.warning("one party alone: it adds all the noise itself, and no masks are made")
        secure = False
    if not secure:
        threshold = 1
    elif threshold is None:
        threshold = max(parties // 2, colluders) + 1
    (asked,) = method.plan(max_records)
    return planning.calibrate(
        method=method.name,
        labels=tuple(task.labels),
        encoder=encoder,
        parties=parties,
        max_dropouts=max_dropouts,
        colluders=colluders,
        threshold=threshold,
        secure=secure,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        name=asked.name,
        spec=asked.spec,
        times=asked.times,
    )


def describe(plan: Plan, *, ledger: Ledger | None = None, run: str = "", simulation: bool = False) -> dict[str, Any]:
    """`privacy.json`: the plan's guarantee, what it rests on, what it leaves open and what has been spent."""
    total = sum(planned.times for planned in plan.queries)
    asked = [entry for entry in ledger.entries(run) if entry.committed] if ledger else []
    facts: dict[str, Any] = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "adjacency": {
            "relation": "add or remove",
            "unit": plan.unit,
            "max_records": max(planned.spec.max_records for planned in plan.queries),
        },
        "mechanism": "none" if math.isinf(plan.epsilon) else "distributed discrete Gaussian",
        "queries": [
            {
                "name": planned.name,
                "times": planned.times,
                "top": planned.spec.top,
                "scale": planned.spec.scale,
                "sensitivity_l1": planned.spec.sensitivity_l1,
                "sensitivity_l2": planned.spec.sensitivity_l2,
                "sigma_votes": planned.sigma / planned.spec.scale,
                "sigma_grid": planned.sigma,
                "share_sigma_grid": plan.share_sigma(planned),
            }
            for planned in plan.queries
        ],
        "parties": plan.parties,
        "max_dropouts": plan.max_dropouts,
        "assumed_survivors": plan.survivors,
        "assumed_colluders": plan.colluders,
        "noise_parties": plan.noise_parties,
        "threshold": plan.threshold,
        "aggregation": "secure, semi-honest coordinator" if plan.secure else "none",
        "against_colluders": [
            {"colluders": colluders, "epsilon": planning.epsilon_against(plan, colluders)}
            for colluders in range(plan.parties)
        ],
        "spent": {
            "epsilon": ledger.total(plan.delta, run) if ledger else 0.0,
            "queries_asked": len(asked),
            "queries_planned": total,
        },
        "plan_digest": plan.digest().hex(),
        "simulation": simulation,
    }
    return facts | {"statement": statement(facts), "not_covered": not_covered(facts)}


def forecast(method: Method, task: Task, providers: Mapping[str, Provider]) -> dict[str, int]:
    """Calls and tokens that the language models will need, about; exemplars make later prompts longer."""
    texts = method.orders(task, tuple(providers))
    label = next(iter(task.labels))
    calls = input_tokens = output_tokens = 0
    for provider in providers.values():
        request = prompts.by_example(task, label, texts=method.texts_per_request, rng=np.random.default_rng(0))
        per_call = provider.estimate(request)
        share = -(-texts // (method.texts_per_request * len(providers)))
        calls += share
        input_tokens += share * per_call[0]
        output_tokens += share * per_call[1]
    return {"texts": texts, "model_calls": calls, "input_tokens": input_tokens, "output_tokens": output_tokens}
