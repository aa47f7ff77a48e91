"""The set-up for secure aggregation that a plan requires, and a bound on the probability that it is broken.

Each side computes the set-up itself, so that no message can change it. But the parameters (threshold, degree, corrupt
parties) come from the plan, which the coordinator wrote, so a party checks them against its own limits before it
accepts the plan (`client.guard`).
"""

import math

from common.plan.plan import Plan
from common.secagg import graph
from common.secagg.messages import AggregationSetup


def aggregation_setup(plan: Plan, run: str, *, attempt: int, first: int) -> AggregationSetup:
    """Return the set-up for all queries of the plan from index `first` on.

    Args:
        plan: The agreed plan, with secure aggregation on.
        run: ID of the run.
        attempt: Attempt number of the set-up in this run.
        first: Index of the first query that is still to be asked.
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
        plan_digest=plan.digest(),
        roster_digest=bytes.fromhex(plan.roster),
    )


def log2_breach(plan: Plan, corrupt: int) -> float:
    """Return log2 of a bound on the probability that corrupt parties and coordinator together remove a mask.

    On the full graph nothing is random: the result is -inf if the plan tolerates this number of corrupt parties, and 0
    otherwise.

    Args:
        plan: A plan with secure aggregation.
        corrupt: Number of corrupt parties that the calling party assumes; the plan's own number is used if it is
            larger.
    """
    if plan.degree == plan.parties - 1:
        return -math.inf if corrupt <= plan.largest_coalition else 0.0
    chance = graph.breach(
        plan.parties,
        corrupt=min(1.0, max(corrupt, plan.corrupt) / plan.survivors),
        dropped=plan.max_dropouts / plan.parties,
        degree=plan.degree,
        threshold=plan.threshold,
        malicious=plan.malicious,
    )
    return math.log2(chance) if chance > 0 else -math.inf
