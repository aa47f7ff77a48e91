"""Calibration of a plan without noise: distribution of epsilon over the queries, and the noise that each query needs.

Each query first gets the noise with which its answers alone cost its fraction of epsilon, at the full delta. All
queries together then cost less than epsilon (or, with several Gaussian queries, about epsilon), since losses add up
more slowly than their bounds. All scales are therefore multiplied by one factor, found by bisection, with which the
whole plan costs epsilon. Queries that have to be pure keep their noise: if it were calibrated at the plan's delta, a
Laplace answer with many coordinates would get only part of that noise and would, without a delta, cost several times
its fraction of epsilon.

An unproven query makes the plan's epsilon infinite. The other queries are then calibrated for their fractions of
epsilon as if the unproven query did not exist, and that query gets the noise that its paper uses for this fraction of
epsilon, if the paper uses any noise.
"""

import math
from dataclasses import replace

from common.errors import ConfigError, PlanError
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import accountant, gaussian_max
from common.queries.votes import VotesSpec
from common.validate import one_of, positive

_LAST_DIGITS = 1 + 1e-14
_PRECISION = 1e-5
"""Tolerance of the common factor: the noise exceeds the necessary minimum by at most this fraction."""


def calibrate(plan: Plan, epsilon: float, *, calibration: str = "tight") -> Plan:
    """Return the plan with the least noise that satisfies (epsilon, delta)-DP.

    Args:
        plan: A plan without noise: epsilon is infinite and all scales are 0. Its delta is kept.
        epsilon: Epsilon of everything that the plan can release in all attempts, except queries without a proof. If it
            is infinite, no noise is added.
        calibration: "tight", or "paper" for comparison. "paper" is the classical Gaussian mechanism with the papers'
            sensitivity; its proof holds only for epsilon < 1, and `guarantee.verify` computes its true cost.

    Raises:
        ConfigError: A value is out of range, or the queries' fractions of epsilon do not add up to 1.
        PlanError: The noise does not fit the plan, or no noise can be shown to achieve epsilon.
    """
    if not plan.queries:
        return replace(plan, epsilon=0.0)
    if epsilon == math.inf:
        return plan
    positive(epsilon=epsilon)
    one_of("calibration", calibration, among=("tight", "paper"))
    shares = math.fsum(query.share for query in plan.queries)
    if abs(shares - 1) > 1e-9:
        raise ConfigError("shares of epsilon", expected="1 in all", got=f"{shares:g}")
    if any(query.unproven for query in plan.queries):
        return _beside_unproven(plan, epsilon, calibration)
    find = _paper_scale if calibration == "paper" else _scale
    scales = [find(plan, query, epsilon * query.share) for query in plan.queries]

    def scaled(factor: float, pure_factor: float = 1.0) -> Plan:
        queries = (
            replace(query, scale=scale * (pure_factor if query.pure else factor))
            for query, scale in zip(plan.queries, scales, strict=True)
        )
        return replace(plan, epsilon=epsilon, queries=tuple(queries), calibration=calibration)

    if calibration == "paper":
        return scaled(1.0)
    calibrated = scaled(1.0)
    if len(scales) == 1 or all(query.pure for query in plan.queries):
        # A sum of shares is rounded upward, and then is above epsilon by a last digit.
        within = accountant.epsilon(calibrated.releases(), plan.delta) <= epsilon
        return calibrated if within else scaled(_LAST_DIGITS, _LAST_DIGITS)
    return scaled(_common_factor(calibrated, epsilon))


def _beside_unproven(plan: Plan, epsilon: float, calibration: str) -> Plan:
    """Return the plan with infinite epsilon and with noise.

    An unproven query gets the noise that its paper uses for one answer.
    """
    proven = [query for query in plan.queries if not query.unproven]
    share = math.fsum(query.share for query in proven)
    noised = plan
    if proven:
        queries = tuple(replace(query, share=query.share / share) for query in proven)
        noised = calibrate(replace(plan, queries=queries), epsilon * share, calibration=calibration)
    scales = dict.fromkeys((query.name for query in plan.queries), 0.0)
    scales |= {query.name: query.scale for query in noised.queries}
    for query in plan.queries:
        if query.mechanism == "gaussian max":
            scales[query.name] = query.spec.noise_grid * gaussian_max.claimed_sigma(epsilon * query.share, plan.delta)
    queries = tuple(replace(query, scale=scales[query.name]) for query in plan.queries)
    return replace(noised, epsilon=math.inf, queries=queries)


def _common_factor(plan: Plan, epsilon: float) -> float:
    """Return the factor for the scales of all queries that need not be pure at which the whole plan costs epsilon."""
    from scipy.optimize import brentq

    releases = [(query.pure, release) for query in plan.queries for release in plan.releases_of(query)]

    def over(factor: float) -> float:
        scales = (release if pure else replace(release, scale=release.scale * factor) for pure, release in releases)
        return min(accountant.epsilon(scales, plan.delta), 1e3 * epsilon) - epsilon  # infinity cannot be interpolated

    low, high = 0.5, 1.0
    while over(high) > 0:
        low, high = high, 1.5 * high
    while over(low) <= 0:
        low, high = low / 2, low
    factor = high if over(high) == 0 else float(brentq(over, low, high, xtol=_PRECISION))
    while over(factor) > 0:
        factor *= 1 + _PRECISION
    return factor


def _scale(plan: Plan, query: PlannedQuery, epsilon: float) -> float:
    """Return the noise scale at which the answers to this query alone cost epsilon."""
    times, sensitivity = query.times * query.steps * plan.max_attempts, query.spec.sensitivity
    if query.mechanism == "gaussian" and query.rate == 1:
        # At most a millionth too small: it tells whether the grid is fine enough, which no nudging upward may hide.
        sigma = accountant.continuous_sigma(sensitivity, times, epsilon, plan.delta)
        replace(plan, epsilon=epsilon, queries=(replace(query, scale=sigma),))
    return accountant.calibrate(
        mechanism=query.noise,
        sensitivity=sensitivity,
        times=times,
        shares=plan.shares(query),
        rate=query.rate,
        redraw=query.redraw,
        epsilon=epsilon,
        delta=plan.delta,
    )


def _paper_scale(plan: Plan, query: PlannedQuery, epsilon: float) -> float:
    """Return the sigma of the classical Gaussian mechanism, as WASP and Aug-PE use it."""
    if not isinstance(query.spec, VotesSpec) or query.mechanism != "gaussian" or query.rate < 1:
        what, do = f"the papers' formula does not cover {query.name}", "Set privacy.calibration to tight"
        raise PlanError(what, do=do)
    bound = query.spec.paper_l1 * query.spec.grid
    return accountant.paper_sigma(bound, query.times * plan.max_attempts, epsilon, plan.delta)
