"""RPSG's choice (section 3.2) of the candidate with the highest sum of utility and Gaussian noise, and its cost.

The cost is computed for candidates that are the same on both data sets. RPSG's candidates are not the same, so the
epsilon of its texts is infinite nevertheless (`common.queries.texts.AbstractedSeedsSpec`).
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp

from common.privacy.accountant import paper_sigma
from common.privacy.samplers import discrete_gaussian
from common.validate import at_least, positive

_REACH = 40.0
"""Number of standard deviations beyond which the tail has probability below 1e-340."""
_POINTS = 1 << 17
_UP = 1 + 1e-6


def choose_noisy_max(utilities: npt.NDArray[np.int64], sigma: float, key: bytes) -> int:
    """Return the index of the highest noised utility; ties go to the lower index.

    Args:
        utilities: (candidates,) int64, in steps (`mechanisms.round_to_grid`). Private.
        sigma: Scale of the noise in the same steps; 0 adds no noise.
        key: 32 secret bytes, for this call alone.
    """
    noise = discrete_gaussian(sigma, len(utilities), key) if sigma else np.zeros_like(utilities)
    return int((utilities + noise).argmax())


def epsilon(sigma: float, candidates: int) -> float:
    """Return the smallest epsilon, without any delta, of one choice among fixed candidates with utilities in [0, 1].

    The probability that candidate c wins increases with its utility u_c and decreases with every other utility. So,
    whatever the utilities of two records are, c is at most as probable under the first as it is with u_c = 1 and all
    others 0, and at least as probable under the second as it is with u_c = 0 and all others 1. With s = 1 / sigma, and
    phi and Phi the density and the distribution function of the standard normal distribution,

        e^epsilon = integral phi(z) Phi(z + s)^(K-1) dz  /  integral phi(z) Phi(z - s)^(K-1) dz,

    and a bound for each outcome is also a bound for each set of outcomes. Both extremes are reached, so no smaller
    epsilon holds. This is for continuous noise. The sampled noise is discrete, with 2^20 steps in a utility of 1, and
    the difference is not accounted for.

    Args:
        sigma: Scale of the noise on each utility, in units of utility; if it is 0, epsilon is infinite.
        candidates: K, at least 2.
    """
    at_least(2, candidates=candidates)
    if sigma == 0:
        return math.inf
    positive(sigma=sigma)
    shift = 1 / sigma
    z = np.linspace(-_REACH - shift, _REACH + shift, _POINTS)
    wins, loses = (float(logsumexp(-z * z / 2 + (candidates - 1) * log_ndtr(z + at))) for at in (shift, -shift))
    return (wins - loses) * _UP


def claimed_sigma(epsilon: float, delta: float) -> float:
    """Return the paper's sigma for one choice (equation 1), in units of utility: the classical one at sensitivity 1."""
    return paper_sigma(1.0, 1, epsilon, delta)


def claimed_epsilon(sigma: float, delta: float) -> float:
    """Return the epsilon that the paper claims for one choice with noise of scale `sigma`; infinite without noise."""
    return paper_sigma(1.0, 1, sigma, delta) if sigma else math.inf
