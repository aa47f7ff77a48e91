"""The price of hospitals that help the coordinator: in epsilon, in noise, or in the number of hospitals needed.

A hospital that helps reveals its own noise share to the coordinator, so that only the other hospitals' noise protects a
sum. A plan that expects no help has a larger epsilon against such a coalition; a plan that expects c helping hospitals
increases each noise share, so that a sum over all L hospitals, with D dropouts allowed, has sqrt((L - D) / (L - D - c))
times the noise of a plan that expects none. Signals grow with L, but the noise of a sum hardly does, so a few more
hospitals with the same number of records each make up for the larger noise, although more hospitals may then help the
coordinator.
"""

import math
from dataclasses import dataclass

from common.plan import guarantee
from common.plan.plan import Plan
from common.secagg.graph import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Collusion:
    """The price of a coalition of hospitals with the coordinator.

    Attributes:
        helping: Number of hospitals that may help the coordinator, as the plan's masks assume.
        planned: Number of helping hospitals that the plan's noise allows for (`federation.colluders`).
        epsilon: Epsilon against the coordinator and the helping hospitals; infinite if the masks are not secure against
            so many helping hospitals.
        noise: Standard deviation of a sum's noise in a plan that allows for the helping hospitals, relative to that in
            a plan that expects no help; None if no hospital's noise would remain.
        hospitals: Number of additional hospitals that restore the signal-to-noise ratio of a plan that expects no help;
            None if no hospital's noise would remain.
    """

    helping: int
    planned: int
    epsilon: float
    noise: float | None
    hospitals: int | None


def collusion(plan: Plan, share: float) -> Collusion:
    """Compute the price of a coalition.

    Args:
        plan: A calibrated plan with secure aggregation.
        share: Fraction of all hospitals that may help; their number is rounded up.
    """
    helping = min(max(plan.corrupt, plan.colluders), plan.parties - 1)
    left = plan.survivors - helping
    return Collusion(
        helping=helping,
        planned=plan.colluders,
        epsilon=guarantee.epsilon_against(plan, helping),
        noise=math.sqrt(plan.survivors / left) if left > 0 else None,
        hospitals=_further(plan, share) if left > 0 else None,
    )


def _further(plan: Plan, share: float) -> int:
    """Return the least n for which L + n hospitals, some colluding, have the signal-to-noise ratio of L honest ones."""
    wanted, parties = plan.parties * plan.survivors, plan.parties
    while parties * (parties - plan.max_dropouts - rounded_up(share, parties)) < wanted:
        parties += 1
    return parties - plan.parties


def collusion_advice(price: Collusion, epsilon: float) -> list[str]:
    """Return a sentence if hospitals will assume a larger epsilon than the plan's `epsilon`; otherwise none."""
    if price.planned >= price.helping or not price.epsilon > epsilon:
        return []
    against = f"against the coordinator and {price.helping} hospitals that help it epsilon is {price.epsilon:.3g}"
    if price.noise is None:
        return [f"{against}, with any noise: expect more hospitals, or fewer dropouts"]
    cure = f"federation.colluders={price.helping} keeps {epsilon:g} with {price.noise:.2f} times the noise"
    more = f"{price.hospitals} more hospitals with as many records outweigh it"
    return [f"{against}, which hospitals count: {cure}, or {more}"]
