"""Epsilon from norms alone: fast, and close to the smallest epsilon where the noise is Gaussian.

Gaussian answers are accounted for by their l2 norms, in closed form (`common.privacy.gaussian`). The epsilons of pure
answers, l1 / b, add up: Laplace noise of scale b is (l1 / b, 0)-DP. So for pure answers this is basic composition,
without delta.

For subsampled answers, the result is the smaller of two bounds. The first is the bound for the same answers without
subsampling, which dominate them. The second is the sum, over the subsamples, of the cost of their answers at a separate
delta d, amplified to (ln(1 + q (e^epsilon - 1)), q d) (Balle, Barthe and Gaboardi 2018).
"""

import math
from fractions import Fraction

from common.privacy.draws import Draw
from common.privacy.gaussian import gaussian_epsilon, rounded_mu_squared

LARGEST_EXPONENT = 700
"""Largest x for which e^x is computed; from 710 on, e^x is infinite in floating point."""
LARGEST_SPREAD = 15.0
"""Standard deviation of a loss beyond which epsilon is above 70, which is as good as infinite."""
_UP = 1 + 1e-12


def norm_epsilon(draws: tuple[tuple[Draw, int], ...], delta: float) -> float:
    """Return the smaller of the two bounds on epsilon that the module's docstring defines.

    They are the same if no answer is subsampled.
    """
    parts = [(draw, repeats, *_norms(draw)) for draw, repeats in draws]
    together = _of_norms(
        sum(repeats * mu_squared for _, repeats, mu_squared, _ in parts),
        _sum_up([quotient_up(repeats * count, scale) for _, repeats, _, pure in parts for count, scale in pure]),
        delta,
    )
    if all(draw.rate == 1 for draw, _ in draws):
        return together
    delta /= max(1, sum(repeats for _, repeats, mu_squared, _ in parts if mu_squared))
    apart = [
        repeats
        * amplified_epsilon(
            _of_norms(mu_squared, _sum_up([quotient_up(*cost) for cost in pure]), delta / draw.rate), draw.rate
        )
        for draw, repeats, mu_squared, pure in parts
    ]
    return min(together, _UP * math.fsum(apart))


def _norms(draw: Draw) -> tuple[float, list[tuple[int, float]]]:
    """Return the squared mu of all Gaussian answers, and each pure answer's epsilon as numerator and denominator."""
    mu_squared, pure = 0.0, []
    for answer, times in draw.answers:
        if answer.mechanism == "gaussian":
            mu_squared += times * rounded_mu_squared(answer.l2_squared, answer.scale)
        else:
            pure.append((times * answer.l1, answer.scale))
    return mu_squared, pure


def _of_norms(mu_squared: float, pure: float, delta: float) -> float:
    if mu_squared > LARGEST_SPREAD**2:
        return math.inf
    return pure + gaussian_epsilon(delta, math.sqrt(mu_squared)) if mu_squared else pure


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """Return the epsilon after amplification by Poisson subsampling at `rate`."""
    if rate == 1 or epsilon > LARGEST_EXPONENT:
        return epsilon
    return math.log1p(rate * math.expm1(epsilon))


def unamplified_epsilon(epsilon: float, rate: float) -> float:
    """Return the epsilon before amplification, which Poisson subsampling at `rate` reduces to `epsilon`."""
    if rate == 1 or epsilon > LARGEST_EXPONENT:
        return epsilon
    return math.log1p(math.expm1(epsilon) / rate)


def quotient_up(numerator: int, denominator: float) -> float:
    """Return the quotient of two numbers, rounded up."""
    quotient = numerator / denominator
    exact = math.isinf(quotient) or Fraction(quotient) * Fraction(denominator) >= numerator
    return quotient if exact else math.nextafter(quotient, math.inf)


def _sum_up(terms: list[float]) -> float:
    """Return the sum, rounded up."""
    total = math.fsum(terms)
    return math.nextafter(total, math.inf) if total < math.inf and math.fsum([*terms, -total]) > 0 else total
