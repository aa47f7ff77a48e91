"""Figures for claims that need no runs, since formulas give them exactly.

Each function returns the figures of the claim's rows, keyed by row name.
"""

from collections.abc import Callable, Mapping

from common.privacy import accountant
from common.privacy.gaussian import gaussian_epsilon
from common.queries.votes import VotesSpec

_EPSILONS = (1, 2, 4, 8)
_DELTA = 1e-5
_VOTES = VotesSpec(top=8)
_TIMES = 4
"""Number of private queries of WASP with its default of T = 5 rounds."""


def wasp_sigma() -> dict[str, float]:
    """Return the noise's standard deviation in votes for each epsilon: by the paper's formula, and the least needed."""
    return {f"paper's at ε {epsilon}": _papers(epsilon) for epsilon in _EPSILONS} | {
        f"needed at ε {epsilon}": accountant.continuous_sigma(_VOTES.sensitivity, _TIMES, epsilon, _DELTA) / _VOTES.grid
        for epsilon in _EPSILONS
    }


def wasp_true_epsilon() -> dict[str, float]:
    """Return each epsilon that the paper states for its noise, and the epsilon that this noise actually provides."""
    mu = {epsilon: (_TIMES**0.5) * _VOTES.sensitivity.l2 / _VOTES.grid / _papers(epsilon) for epsilon in _EPSILONS}
    return {f"stated ε {epsilon}": float(epsilon) for epsilon in _EPSILONS} | {
        f"noise for ε {epsilon}": gaussian_epsilon(_DELTA, mu[epsilon]) for epsilon in _EPSILONS
    }


def _papers(epsilon: float) -> float:
    """Return the standard deviation of the noise by the paper's formula, in votes."""
    return accountant.paper_sigma(_VOTES.paper_l1, _TIMES, epsilon, _DELTA)


FUNCTIONS: Mapping[str, Callable[[], Mapping[str, float]]] = {
    "wasp_sigma": wasp_sigma,
    "wasp_true_epsilon": wasp_true_epsilon,
}
