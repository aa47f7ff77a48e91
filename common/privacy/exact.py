"""Exact draws, one by one, by rejection in rational arithmetic (Canonne, Kamath and Steinke 2020, algorithms 1 to 3).

In tests, these samplers are the reference for the tables. They are also used where tables would grow too large, and for
mechanisms that need little noise. A floating-point scale is used as the rational number that it represents. The time of
a draw depends on its value.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from common.privacy.keystream import Keystream


def gaussian(sigma: float, size: int, stream: Keystream) -> npt.NDArray[np.int64]:
    """Draw `size` numbers k with probability proportional to exp(-k^2 / (2 sigma^2)), for any sigma."""
    variance = Fraction(sigma) ** 2
    scale = math.floor(sigma) + 1
    return np.array([_gaussian(variance, scale, stream) for _ in range(size)], dtype=np.int64)


def laplace_share(scale: float, size: int, stream: Keystream, *, shares: int = 1) -> npt.NDArray[np.int64]:
    """Draw `size` shares of discrete Laplace noise.

    The sum of `shares` of them is k with probability proportional to exp(-|k| / scale). With one share, the time of a
    draw does not depend on the scale; with more, a draw walks through two urns of about `scale` steps each.
    """
    if shares == 1:
        draws = [laplace(scale, stream) for _ in range(size)]
    else:
        ratio = Fraction(scale)
        draws = [_polya(ratio, shares, stream) - _polya(ratio, shares, stream) for _ in range(size)]
    return np.array(draws, dtype=np.int64)


def laplace(scale: float | Fraction, stream: Keystream) -> int:
    """Draw one number k with probability proportional to exp(-|k| / scale) (algorithm 2)."""
    ratio = Fraction(scale)
    while True:
        magnitude = _geometric(ratio, stream)
        negative = stream.below(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def bernoulli_exp(numerator: int, denominator: int, stream: Keystream) -> bool:
    """Return True with probability exp(-numerator / denominator), which is at most 1 (algorithm 1)."""
    while numerator > denominator:
        if not bernoulli_exp(1, 1, stream):
            return False
        numerator -= denominator
    tries = 1
    while stream.below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1


def _gaussian(variance: Fraction, scale: int, stream: Keystream) -> int:
    """Draw by algorithm 3: accept a discrete Laplace y with probability exp(-(|y| - variance/scale)^2/(2 variance))."""
    numerator, denominator = variance.as_integer_ratio()
    while True:
        draw = laplace(scale, stream)
        distance = abs(draw) * scale * denominator - numerator
        if bernoulli_exp(distance * distance, 2 * numerator * denominator * scale * scale, stream):
            return draw


def _geometric(scale: Fraction, stream: Keystream) -> int:
    """Draw k >= 0 with probability proportional to exp(-k / scale): algorithm 2 without the sign.

    With scale = n / d, x is drawn with probability proportional to exp(-x / n), and k = floor(x / d).
    """
    numerator, denominator = scale.as_integer_ratio()
    remainder = stream.below(numerator)
    while not bernoulli_exp(remainder, numerator, stream):
        remainder = stream.below(numerator)
    quotient = 0
    while bernoulli_exp(1, 1, stream):
        quotient += 1
    return (remainder + numerator * quotient) // denominator


def _polya(scale: Fraction, shares: int, stream: Keystream) -> int:
    """Draw from the negative binomial of shape 1 / shares and ratio exp(-1 / scale).

    A geometric draw is the sum of independent negative binomials of shapes 1/U and 1 - 1/U. Given the sum g, the first
    summand is distributed as the number of draws of its colour in g steps of a Polya urn with these two initial
    weights.
    """
    count = 0
    for step in range(_geometric(scale, stream)):
        count += stream.below(shares * (1 + step)) < 1 + shares * count
    return count
