"""The guarantee of a plan, its assumptions, and how much of its budget has been spent: `privacy.json`."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from common.ledger.ledger import Ledger
from common.plan import guarantee
from common.plan.guarantee import plan_guarantee
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import accountant, gaussian_max
from common.privacy.gaussian import gaussian_mu
from common.queries.closed_set import spec_to_dict
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from server.documents.class_sums import Released
from server.documents.privacy import (
    Choice,
    Earlier,
    Origin,
    Privacy,
    Spent,
    StatedQuery,
    Subsampling,
)
from server.guarantee.words import numbers_guarantee, with_statement


def describe(
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    run: str = "",
    simulation: bool = False,
    labels_from_records: bool = False,
    earlier: Earlier | None = None,
) -> Privacy:
    """Return the content of `privacy.json`: the plan's guarantee, its assumptions and limits, and how much is spent.

    Texts made only from an earlier run's released numbers have the guarantee of those numbers.
    """
    if earlier is not None:
        return _of_earlier(plan, earlier, simulation=simulation, labels_from_records=labels_from_records)
    asked = [entry for entry in ledger.entries(run) if entry.committed] if ledger else []
    charged = ledger.releases(run) if ledger else ()
    guarantee.verify(plan)
    facts = plan_guarantee(plan, coalitions=range(plan.parties))
    of_plan = {field.name: getattr(facts, field.name) for field in fields(facts) if field.name != "queries"}
    pure = guarantee.epsilon_pure(plan)
    proven = [release for planned in plan.queries if not planned.unproven for release in plan.releases_of(planned)]
    return with_statement(
        Privacy(
            **of_plan,
            queries=tuple(_query(plan, planned) for planned in plan.queries),
            proven_epsilon=accountant.epsilon(proven, plan.delta),
            pure_epsilon=pure if math.isfinite(pure) else None,
            calibration=plan.calibration,
            mechanism=_mechanisms(plan),
            spent=Spent(
                epsilon=accountant.epsilon(charged, plan.delta),
                queries_asked=len(asked),
                queries_planned=plan.questions,
            ),
            plan_digest=plan.digest().hex(),
            simulation=simulation,
            labels_from_records=labels_from_records,
        )
    )


def released_numbers(plan: Plan, run: str, privacy: Privacy, numbers: Mapping[str, Any]) -> Released:
    """Return the document of a run's released numbers, with the run that asked for them and its guarantee in words."""
    source = privacy.earlier or Origin(run=run, plan_digest=plan.digest().hex(), encoder=plan.encoder)
    return Released(
        statement=numbers_guarantee(privacy, source.run),
        run=source.run,
        plan_digest=source.plan_digest,
        encoder=source.encoder,
        numbers=numbers,
        privacy=privacy,
    )


def _of_earlier(plan: Plan, earlier: Earlier, *, simulation: bool, labels_from_records: bool) -> Privacy:
    """Return the privacy facts of the earlier run, which cover all uses of its answers; this run has spent nothing."""
    assert not plan.queries
    before = earlier.privacy
    return with_statement(
        replace(
            before,
            earlier=Origin(run=earlier.run, plan_digest=earlier.plan_digest, encoder=earlier.encoder),
            spent=Spent(epsilon=0.0, queries_asked=0, queries_planned=0),
            plan_digest=plan.digest().hex(),
            simulation=simulation or before.simulation,
            labels_from_records=labels_from_records or before.labels_from_records,
        )
    )


def _query(plan: Plan, planned: PlannedQuery) -> StatedQuery:
    spec, grid = planned.spec, planned.spec.noise_grid
    return StatedQuery(
        name=planned.name,
        times=planned.times,
        kind=spec.kind,
        parameters={name: value for name, value in spec_to_dict(spec).items() if name != "kind"},
        mechanism=planned.mechanism,
        summed=planned.summed,
        share_of_epsilon=planned.share,
        epsilon_alone=accountant.epsilon(plan.releases_of(planned), plan.delta),
        subsampling=None if planned.rate == 1 else Subsampling(rate=planned.rate, redrawn=planned.redraw),
        grid=grid,
        sensitivity_l1=spec.sensitivity.l1 / grid,
        sensitivity_l2=spec.sensitivity.l2 / grid,
        scale=planned.scale / grid,
        scale_grid=planned.scale,
        density_error_times_records=_density_errors(plan, planned),
        choice=_choice(plan, planned),
        noise_multiplier=planned.scale / spec.sensitivity.l2 if isinstance(spec, FineTunedSpec) else None,
    )


def _density_errors(plan: Plan, planned: PlannedQuery) -> dict[str, float] | None:
    """Return the root mean square errors that noise adds to a sketched density, times the label's number of records.

    The result is None if the query is for anything but a sketch, or has no noise. The errors are those of the plan and,
    for comparison, those of both mechanisms in their best setting at this query's fraction of epsilon: single features
    with pure Laplace noise, and paired features with Gaussian noise.
    """
    spec = planned.spec
    if not isinstance(spec, SketchSpec) or planned.scale == 0:
        return None
    rows = spec.features // 2 if spec.paired else spec.features
    share, units, attempts = planned.share * plan.epsilon, spec.max_records, planned.times * plan.max_attempts
    mu = gaussian_mu(share, plan.delta) / math.sqrt(attempts)
    return {
        "planned": noise_error(planned.mechanism, planned.scale / spec.grid, rows),
        "laplace": noise_error("laplace", units * attempts * math.sqrt(2) * spec.features / share, spec.features),
        "gaussian": noise_error("gaussian", units * math.sqrt(spec.features / 2) / mu, spec.features / 2),
    }


def _choice(plan: Plan, planned: PlannedQuery) -> Choice | None:
    """Return the epsilon of a choice among abstracts, as claimed in the paper and for public candidates, or None."""
    spec = planned.spec
    if not isinstance(spec, AbstractedSeedsSpec):
        return None
    sigma = planned.scale / spec.utility_grid
    return Choice(
        claimed_epsilon=gaussian_max.claimed_epsilon(sigma, plan.delta),
        epsilon_among_public_candidates=gaussian_max.epsilon(sigma, spec.candidates),
    )


def _mechanisms(plan: Plan) -> str:
    """Return the names of the mechanisms that add noise, in the order of the queries."""
    names = {"gaussian": "distributed discrete Gaussian", "laplace": "distributed discrete Laplace"}
    names["dp-sgd"] = "DP-SGD with discrete Gaussian noise"
    noised = (names.get(query.mechanism, query.mechanism) for query in plan.queries if query.scale > 0)
    return ", ".join(dict.fromkeys(noised)) or "none"


def noise_error(mechanism: str, scale: float, rows: float) -> float:
    """Return the root mean square error that noise adds to a sketched density, times the number of records.

    The error at a point is the mean over the rows of noise times feature. Its variance is the variance of the noise
    divided by the number of rows, since the squared features of a point average to 1 for each row: sqrt(2) cos, or a
    cosine and a sine.

    Args:
        mechanism: "laplace" or "gaussian".
        scale: Laplace scale or Gaussian sigma, in features.
        rows: Number of frequencies: the number of features if they are single, half that number if they are paired.
    """
    return scale * (math.sqrt(2) if mechanism == "laplace" else 1.0) / math.sqrt(rows)
