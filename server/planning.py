"""What a run will ask and cost, known before anything private is touched."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common import validate
from common.fourier import noise_error
from common.ledger.ledger import Ledger
from common.plan import guarantee
from common.plan.calibration import calibrate
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import accountant, gaussian_max
from common.privacy.gaussian import gaussian_mu
from common.queries.closed_set import spec_to_dict
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from common.secagg.graph import parameters as graph_parameters
from server.domain import Task
from server.evaluation.federated_count import with_evaluation
from server.llm.base import Provider
from server.llm.spending import Price, Usage
from server.method import Method
from server.rehearsal import rehearse
from server.statement import not_covered, statement

log = logging.getLogger("caucus.planning")

_LARGE_DELTA = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Secagg:
    """How secure aggregation is set up.

    Attributes:
        mode: "semi_honest": the coordinator follows the protocol; "malicious": it is trusted with nothing; "none".
        roster: Hex digest of the parties' identities in malicious mode, else empty.
        threshold: Parties that recover a lost mask key on the full graph; None is the smallest that is safe.
        full_graph_up_to: Most parties for which everybody is everybody's neighbour.
        corrupt: Share of parties that may pool what they see with the coordinator.
        dropped: Share of parties that may drop out of a sparse graph.
        security_bits: A sparse graph lets a mask be lifted with probability below 2^-security_bits.
        correctness_bits: It lacks shares with probability below 2^-correctness_bits.
    """

    mode: str = "semi_honest"
    roster: str = ""
    threshold: int | None = None
    full_graph_up_to: int = 128
    corrupt: float = 0.3
    dropped: float = 0.1
    security_bits: int = 40
    correctness_bits: int = 30

    def __post_init__(self) -> None:
        validate.one_of(("semi_honest", "malicious", "none"), **{"secagg.mode": self.mode})
        for name, share in (("corrupt", self.corrupt), ("dropped", self.dropped)):
            validate.in_range(0, 1, **{f"secagg.{name}": share})

    @property
    def secure(self) -> bool:
        """Whether there is any."""
        return self.mode != "none"


def make_plan(
    method: Method,
    *,
    task: Task,
    encoder: str,
    parties: int,
    max_dropouts: int,
    colluders: int,
    secagg: Secagg,
    epsilon: float,
    delta: float,
    unit: str,
    max_records: int,
    max_attempts: int = 1,
    calibration: str = "tight",
    evaluation_share: float = 0.0,
) -> Plan:
    """Price and calibrate all that `method` can ask, at worst, and a federated evaluation if it has a share.

    One party alone has nobody to hide among: it adds all the noise itself and no masks are made.

    Raises:
        ConfigError, PlanError: With the numbers that do not fit.
    """
    if delta > _LARGE_DELTA:
        log.warning("delta %g: each record may be given away with that probability; well below 1/M is usual", delta)
    if secagg.secure and parties == 1:
        log.warning("one party alone: it adds all the noise itself, and no masks are made")
    graph = _graph(secagg, parties, max_dropouts, colluders) if secagg.secure and parties > 1 else _Graph()
    draft = Plan(
        method=method.name,
        labels=tuple(task.labels),
        encoder=encoder,
        parties=parties,
        max_dropouts=max_dropouts,
        colluders=colluders,
        threshold=graph.threshold,
        secure=graph.degree > 0,
        degree=graph.degree,
        corrupt=graph.corrupt,
        roster=secagg.roster if graph.degree else "",
        epsilon=math.inf,
        delta=delta,
        unit=unit,
        queries=with_evaluation(method.plan(task, max_records), evaluation_share, max_records),
        max_attempts=max_attempts,
    )
    return calibrate(draft, epsilon, calibration=calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """What a plan says of the masks; none without secure aggregation."""

    degree: int = 0
    threshold: int = 1
    corrupt: int = 0


def _graph(secagg: Secagg, parties: int, max_dropouts: int, colluders: int) -> _Graph:
    corrupt = max(colluders, math.floor(secagg.corrupt * parties))
    if parties <= secagg.full_graph_up_to:
        threshold = secagg.threshold or max(parties // 2, corrupt) + 1
        return _Graph(degree=parties - 1, threshold=threshold, corrupt=corrupt)
    degree, threshold = graph_parameters(
        parties,
        # A coordinator may leave out honest parties from the start, never more than the plan lets drop.
        corrupt=min(1.0, corrupt / max(1, parties - max_dropouts)),
        dropped=max(secagg.dropped, max_dropouts / parties),
        security_bits=secagg.security_bits,
        correctness_bits=secagg.correctness_bits,
        malicious=secagg.mode == "malicious",
    )
    if degree == parties - 1:
        threshold = max(threshold, parties // 2 + 1)
    return _Graph(degree=degree, threshold=threshold, corrupt=corrupt)


def describe(
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    run: str = "",
    simulation: bool = False,
    labels_from_records: bool = False,
) -> dict[str, Any]:
    """`privacy.json`: the plan's guarantee, what it rests on, what it leaves open and what has been spent."""
    asked = [entry for entry in ledger.entries(run) if entry.committed] if ledger else []
    charged = ledger.releases(run) if ledger else ()
    pure = guarantee.epsilon_pure(plan)
    proven = [each for planned in plan.queries if not planned.unproven for each in plan.releases_of(planned)]
    facts: dict[str, Any] = {
        "epsilon": plan.epsilon,
        "delta": plan.delta if plan.queries else 0.0,
        "planned_epsilon": guarantee.verify(plan),
        "unproven": [planned.name for planned in plan.queries if planned.unproven],
        "proven_epsilon": accountant.epsilon(proven, plan.delta),
        "pure_epsilon": pure if math.isfinite(pure) else None,
        "released_epsilon": guarantee.epsilon_released(plan),
        "party_epsilon": guarantee.epsilon_against(plan, min(plan.colluders, plan.parties - 1)),
        "calibration": plan.calibration,
        "adjacency": {
            "relation": "add or remove",
            "unit": plan.unit,
            "max_records": max((planned.spec.max_records for planned in plan.queries), default=1),
        },
        "mechanism": _mechanisms(plan),
        "queries": [_query(plan, planned) for planned in plan.queries],
        "max_attempts": plan.max_attempts,
        "parties": plan.parties,
        "max_dropouts": plan.max_dropouts,
        "assumed_survivors": plan.survivors,
        "assumed_colluders": plan.colluders,
        "noise_parties": plan.noise_parties,
        "threshold": plan.threshold,
        "aggregation": _aggregation(plan),
        "neighbours": plan.degree,
        "corrupt": plan.corrupt,
        "largest_coalition": plan.largest_coalition,
        "against_colluders": [
            {"colluders": colluders, "epsilon": guarantee.epsilon_against(plan, colluders)}
            for colluders in range(plan.parties)
        ],
        "spent": {
            "epsilon": accountant.epsilon(charged, plan.delta),
            "queries_asked": len(asked),
            "queries_planned": plan.total_queries // plan.max_attempts,
        },
        "plan_digest": plan.digest().hex(),
        "simulation": simulation,
        "labels_from_records": labels_from_records,
    }
    # First what it comes to, then the figures.
    return {"statement": statement(facts), **facts, "not_covered": not_covered(facts)}


def _query(plan: Plan, planned: PlannedQuery) -> dict[str, Any]:
    """One planned query; scales and sensitivities in votes, records, cosines or features."""
    spec, grid = planned.spec, planned.spec.grid
    return {
        "name": planned.name,
        "times": planned.times,
        **spec_to_dict(spec),
        "mechanism": planned.mechanism,
        "summed": planned.summed,
        "share_of_epsilon": planned.share,
        "epsilon_alone": accountant.epsilon(plan.releases_of(planned), plan.delta),
        "subsampling": None if planned.rate == 1 else {"rate": planned.rate, "redrawn": planned.redraw},
        "grid": grid,
        "sensitivity_l1": spec.sensitivity.l1 / grid,
        "sensitivity_l2": spec.sensitivity.l2 / grid,
        "scale": planned.scale / grid,
        "scale_grid": planned.scale,
        **_density_errors(plan, planned),
        **_choice(plan, planned),
        **_training(planned),
    }


def _density_errors(plan: Plan, planned: PlannedQuery) -> dict[str, Any]:
    """What noise does to a density by a sketch: root mean square, times the label's records, which are private.

    As planned; and by both mechanisms with what they go best with, single features and pure Laplace noise, paired ones
    and Gaussian noise, each for this query's share of epsilon alone.
    """
    spec = planned.spec
    if not isinstance(spec, SketchSpec) or planned.scale == 0:
        return {}
    rows = spec.features // 2 if spec.paired else spec.features
    share, units, attempts = planned.share * plan.epsilon, spec.max_records, planned.times * plan.max_attempts
    mu = gaussian_mu(share, plan.delta) / math.sqrt(attempts)
    return {
        "density_error_times_records": {
            "planned": noise_error(planned.mechanism, planned.scale / spec.grid, rows),
            "laplace": noise_error("laplace", units * attempts * math.sqrt(2) * spec.features / share, spec.features),
            "gaussian": noise_error("gaussian", units * math.sqrt(spec.features / 2) / mu, spec.features / 2),
        }
    }


def _choice(plan: Plan, planned: PlannedQuery) -> dict[str, Any]:
    """What one noised choice among a record's own abstractions costs by the paper, and would with public ones."""
    spec = planned.spec
    if not isinstance(spec, AbstractedSeedsSpec):
        return {}
    sigma = planned.scale / spec.grid
    return {
        "choice": {
            "claimed_epsilon": gaussian_max.claimed_epsilon(sigma, plan.delta),
            "epsilon_among_public_candidates": gaussian_max.epsilon(sigma, spec.candidates),
        }
    }


def _training(planned: PlannedQuery) -> dict[str, Any]:
    """The noise multiplier of DP-SGD, as its papers give it: of one step, in sensitivities."""
    if not isinstance(planned.spec, FineTunedSpec):
        return {}
    return {"noise_multiplier": planned.scale / planned.spec.sensitivity.l2}


def _mechanisms(plan: Plan) -> str:
    """Names of the mechanisms that add noise, in the order of the queries."""
    names = {"gaussian": "distributed discrete Gaussian", "laplace": "distributed discrete Laplace"}
    names["dp-sgd"] = "DP-SGD with discrete Gaussian noise"
    noised = (names.get(query.mechanism, query.mechanism) for query in plan.queries if query.scale > 0)
    return ", ".join(dict.fromkeys(noised)) or "none"


def _aggregation(plan: Plan) -> str:
    if not plan.secure:
        return "none"
    return "secure, malicious coordinator" if plan.malicious else "secure, semi-honest coordinator"


def forecast(
    method: Method,
    task: Task,
    plan: Plan,
    providers: Mapping[str, Provider],
    prices: Mapping[str, Price | None],
) -> dict[str, Any]:
    """Calls, tokens and money that the language models will need, about, if no text is lost; by model and in total.

    Args:
        method: Played through once.
        task: What is public about the data.
        plan: Of its queries.
        providers: Language models by name.
        prices: Of the remote ones among them; None: unknown.

    Returns:
        With `texts`, as many as the run asks for at most; `cost` of a model is None where its price is unknown, and in
        total the sum of those that are known.
    """
    models = {}
    for name, expected in rehearse(method, task, plan, providers).items():
        use = Usage(input=round(expected.input_tokens), output=round(expected.output_tokens))
        price = prices.get(name)
        cost = (price.of(use) if price else None) if providers[name].remote else 0.0
        models[name] = {
            "calls": expected.calls, "input_tokens": use.input, "output_tokens": use.output, "cost": cost
        }  # fmt: skip
    totals = {
        total: sum(model[kind] or 0 for model in models.values())
        for total, kind in (
            ("model_calls", "calls"), ("input_tokens", "input_tokens"), ("output_tokens", "output_tokens"),
            ("cost", "cost"),
        )
    }  # fmt: skip
    return {"texts": method.orders(task, tuple(providers)), **totals, "models": models}
