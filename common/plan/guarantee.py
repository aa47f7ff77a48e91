"""What a plan guarantees, and to whom: three figures, each rounded toward more privacy lost.

verify            all that can be released, hidden by the noise that is certain: what the plan promises
epsilon_released  the synthetic data, against the world, which knows nobody's noise
epsilon_against   one party's own answers, against a coordinator that pools what it knows with c other parties

And `epsilon_pure`, what `verify` would be without any delta.
"""

import math

from common.errors import ConfigError, PlanError
from common.plan.plan import Plan
from common.privacy import accountant


def verify(plan: Plan) -> float:
    """Epsilon, at the plan's delta, of all that it can release.

    Raises:
        PlanError: If that is more than the plan promises.
    """
    spent = accountant.epsilon(plan.releases(), plan.delta)
    if spent > plan.epsilon:
        raise PlanError(
            "noise in the plan", expected=f"enough for epsilon {plan.epsilon:g}", got=f"epsilon {spent:g}",
            do="Refuse this plan, or calibrate it again.",
        )  # fmt: skip
    return spent


def epsilon_pure(plan: Plan) -> float:
    """Epsilon, with no delta but the samplers', of all that the plan can release; infinite with Gaussian noise.

    Laplace noise and mechanisms inside a party cost l1 / scale an answer, and pure epsilons add up.
    """
    releases = plan.releases()
    if any(each.mechanism == "gaussian" or each.scale == 0 for each in releases):
        return math.inf
    return math.fsum(each.times * each.sensitivity.l1 / each.scale for each in releases)


def epsilon_released(plan: Plan) -> float:
    """Epsilon of what is made from the noised sums, for whoever knows none of the noise.

    Each sum holds the shares of all survivors, those of assumed colluders too, and without secure aggregation the whole
    noise of each of them.
    """
    return _with_shares(plan, plan.survivors)


def epsilon_against(plan: Plan, colluders: int) -> float:
    """Epsilon of one party's answers if the coordinator and that many other parties pool what they know.

    In the worst accepted case, the fewest survivors. Their sum hides the party behind its own share of noise and those
    of the survivors that do not collude; a coalition larger than secure aggregation is planned for may lift its mask,
    and without secure aggregation there is none: its own share alone. Answers that a party noises by itself are as
    private against everybody.

    Args:
        plan: The plan.
        colluders: 0 to parties - 1.
    """
    if not 0 <= colluders < plan.parties:
        raise ConfigError("colluders", expected=f"0 to {plan.parties - 1} other parties", got=colluders)
    alone = not plan.secure or colluders > plan.largest_coalition
    return _with_shares(plan, 1 if alone else plan.survivors - colluders)


def _with_shares(plan: Plan, shares: int) -> float:
    planned = accountant.epsilon(plan.releases(), plan.delta)
    if shares == plan.noise_parties:
        return planned
    bound = accountant.epsilon_by_norm(plan.releases(shares), plan.delta)
    # With more noise than planned a sum is post-processing of the planned one; the bound is the coarser of two ways.
    return min(bound, planned) if shares > plan.noise_parties else bound
