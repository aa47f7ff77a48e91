"""The set-up of secure aggregation that a plan calls for. Each side computes its own, so that nobody can weaken it."""

import math

from common.plan.plan import Plan
from common.secagg import graph
from common.secagg.messages import AggregationSetup


def aggregation_setup(plan: Plan, run: str, *, attempt: int, first: int) -> AggregationSetup:
    """The set-up for all queries of the plan from number `first` on.

    Args:
        plan: The agreed plan, with secure aggregation on.
        run: Identity of the run.
        attempt: Number of the set-up in this run.
        first: The first query that is still to be asked.
    """
    return AggregationSetup(
        run=run,
        attempt=attempt,
        rounds=tuple(range(first, plan.total_queries)),
        parties=tuple(range(plan.parties)),
        threshold=plan.threshold,
        minimum_survivors=plan.survivors,
        degree=plan.degree,
        corrupt=plan.corrupt,
        roster_digest=bytes.fromhex(plan.roster),
    )


def log2_breach(plan: Plan) -> float:
    """Binary logarithm of a bound on the probability that the plan's graph exposes a mask; -inf on the full graph.

    Each party computes it itself, because degree and threshold come from the coordinator.
    """
    if plan.degree == plan.parties - 1:
        return -math.inf
    chance = graph.breach(
        plan.parties,
        corrupt=min(1.0, plan.corrupt / plan.survivors),
        dropped=plan.max_dropouts / plan.parties,
        degree=plan.degree,
        threshold=plan.threshold,
        malicious=plan.malicious,
    )
    return math.log2(chance) if chance > 0 else -math.inf
