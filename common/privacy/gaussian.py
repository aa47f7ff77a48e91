"""Gaussian noise in closed form: the continuous mechanism, and how far integer noise made of shares differs from it.

The privacy of a continuous Gaussian depends on one number alone, mu, the l2 sensitivity in standard deviations; several
mechanisms compose to one whose mu is the root of the sum of their squared mu. A discrete Gaussian of variance sigma^2
around an integer c is, up to a factor exp(+-rho), a continuous Gaussian of variance sigma^2 - v around c, rounded to y
+ (discrete Gaussian of variance v centred at y): integrating over y gives exp(-(k - c)^2 / (2 sigma^2)) exactly, except
for the normaliser sum_k exp(-(k - y)^2 / (2v)), which by Poisson summation is within 1 +- 2.01 exp(-2 pi^2 v) of a
constant. So the answer is post-processing of the continuous mechanism. v = 9/4 makes rho = 2.1e-19 and costs about
1/sigma^2 of sigma, which is negligible on a grid of thousands; accounting by zero-concentrated DP would cost 6 to 8%.
"""

import math

from scipy.special import log_ndtr

ROUNDING_VARIANCE = 2.25
"""v in the module's docstring: the variance of the discrete Gaussian that rounds, in squared grid units."""
ROUNDING_GAP = 2.001 * 2.01 * math.exp(-2 * math.pi**2 * ROUNDING_VARIANCE)
"""rho in the module's docstring: twice the largest |ln| of the ratio of the normaliser to its constant."""
_UP = 1 + 1e-12
_FIRST_TERMS = 1000


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the delta of a continuous Gaussian whose sensitivity is mu sigma (Balle and Wang 2018, theorem 8)."""
    return float(math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the inverse of `gaussian_delta` at this `mu`, rounded up: the epsilon at which delta holds."""
    from scipy.optimize import brentq

    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # The bracket ends at the bound by zero-concentrated DP (Bun and Steinke 2016, proposition 1.3).
    highest = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, highest, xtol=1e-13)) * _UP + 1e-12


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu for which a continuous Gaussian is exactly (epsilon, delta)-DP."""
    from scipy.optimize import brentq

    root = math.sqrt(math.log(1 / delta))
    lowest = math.sqrt(2) * (math.sqrt(root * root + epsilon) - root)
    highest = math.sqrt(2 * epsilon) + 100
    return float(brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, lowest, highest, xtol=1e-15, rtol=1e-13))


def rounded_mu_squared(l2_squared: float, sigma: float) -> float:
    """Return the squared mu of the continuous Gaussian that, rounded, is discrete noise of `sigma` grid units.

    The result is infinite if sigma is too small for this reduction.
    """
    variance = sigma * sigma - ROUNDING_VARIANCE
    return l2_squared / variance if variance > 0 else math.inf


def sum_gap(share_sigma: float, shares: int) -> float:
    """Return tau, the largest |ln(p / q)| of probabilities p under the sum of shares and q under one discrete Gaussian.

    With s = `share_sigma` and U = `shares`, tau is at most 10 sum_{0<k<U} exp(-2 pi^2 s^2 k / (k + 1)) (Kairouz, Liu
    and Steinke 2021). The terms decrease with k, so that each term beyond the thousandth is bounded by the thousandth.
    """
    exact = min(shares, _FIRST_TERMS)
    variance = share_sigma * share_sigma
    terms = [math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, exact)]
    return 10 * (math.fsum(terms) + (shares - exact) * (terms[-1] if terms else 0.0))
