"""Exact noise, one draw for each coordinate: discrete Gaussian, and discrete Laplace in shares of many parties.

No floating-point number decides a draw, so that the attack of Mironov (2012) does not apply. Randomness comes from an
argument, a secret 32-byte key for each call.

Both samplers use a table of cumulative probabilities (`common.privacy.tables`), whose distance from the exact
distribution is bounded by `gaussian_tv` and `laplace_tv`; above a certain scale they use the slow exact sampler
(`common.privacy.exact`).
"""

import decimal
import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from common.privacy import exact, tables
from common.privacy.keystream import Keystream
from common.privacy.tables import PRECISION, ThresholdTable
from common.validate import at_least, positive

LARGEST_TABLE = 1e4
"""Largest sigma, in grid units, for which noise is sampled from a table."""
LARGEST_LAPLACE_TABLE = 2e4
"""Largest scale of a discrete Laplace, in grid units, whose shares are sampled from a table."""

REACH, LAPLACE_REACH = 12, 76
"""Largest value in a table, in scales: for a Gaussian, and for the negative binomials from which a Laplace is made."""

_ONE = 1 << PRECISION
_UP = 1.000001
"""Factor that covers floating-point errors in the bounds on total variation."""


def discrete_gaussian(sigma: float, size: int, key: bytes) -> npt.NDArray[np.int64]:
    """Draw `size` independent numbers k with probability proportional to exp(-k^2 / (2 sigma^2)).

    Args:
        sigma: Scale in grid units, above 0.
        size: Number of draws. A shorter request under the same key and sigma is a prefix of a longer one.
        key: 32 secret bytes, never used for anything else.

    Returns:
        (size,) int64, in grid units.

    Raises:
        ConfigError: If sigma is not a finite number above 0.
        InternalError: If the key does not have 32 bytes.
    """
    positive(sigma=sigma)
    stream = Keystream(key)
    if sigma > LARGEST_TABLE:
        return exact.gaussian(sigma, size, stream)
    return tables.draw(_gaussian_table(sigma), size, stream)


def discrete_laplace(scale: float, size: int, key: bytes, *, shares: int = 1) -> npt.NDArray[np.int64]:
    """Draw `size` independent numbers, each one party's share of discrete Laplace noise.

    A share is the difference of two draws of the negative binomial NB(1/U, exp(-1 / scale)), U = shares. The sum of U
    shares is the difference of two geometric draws, which is exactly a discrete Laplace, P(k) proportional to
    exp(-|k| / scale); more shares only add noise (after Goryczka and Xiong 2017).

    For scales up to LARGEST_LAPLACE_TABLE, draws come from a table of 76 * scale entries, which at the largest scale
    takes about 2 s to build and 27 MiB of memory. For larger scales they come from the exact sampler: for U = 1 about
    1e4 draws a second or more; otherwise a draw takes about 2 * scale steps of an urn, 0.05 s at scale 3e4. A coarser
    grid avoids that.

    Args:
        scale: Scale of the whole noise, not of the share, in grid units: l1 sensitivity / epsilon. Above 0.
        size: Number of draws. A shorter request under the same key, scale and shares is a prefix of a longer one.
        key: 32 secret bytes, never used for anything else.
        shares: Number of shares that make up the noise.

    Returns:
        (size,) int64, in grid units.

    Raises:
        ConfigError: If scale is not a finite number above 0, or shares is below 1.
        InternalError: If the key does not have 32 bytes.
    """
    positive(scale=scale)
    at_least(1, shares=shares)
    stream = Keystream(key)
    if scale > LARGEST_LAPLACE_TABLE:
        return exact.laplace_share(scale, size, stream, shares=shares)
    draws = tables.draw(_negative_binomial_table(scale, shares), 2 * size, stream)
    return draws[::2] - draws[1::2]


def gaussian_tv(sigma: float) -> float:
    """Return a bound on the total variation distance between a draw of `discrete_gaussian` and the exact distribution.

    It has two terms. The first is the mass of the tails that are cut off beyond t = ceil(12 sigma): with
    Z >= sigma sqrt(2 pi) by Poisson summation, and the sum of exp(-k^2 / (2 sigma^2)) over k > t below its integral
    from t, which is below sigma^2 / t exp(-t^2 / (2 sigma^2)), this mass is at most
    2 sigma / (t sqrt(2 pi)) exp(-t^2 / (2 sigma^2)) <= 3.6e-33. The other term is the rounding of 2t thresholds.
    """
    if sigma > LARGEST_TABLE:
        return 0.0
    reach = _reach(REACH, sigma)
    ratio = reach / sigma
    tails = 2 / (ratio * math.sqrt(2 * math.pi)) * math.exp(-ratio * ratio / 2)
    return _UP * (tails + tables.rounding(2 * reach))


def laplace_tv(scale: float, shares: int) -> float:
    """Return a bound on the total variation distance between a draw of `discrete_laplace` and the exact share.

    It is twice the bound for a negative binomial, as a share is a function of two draws of it. That bound has two
    terms. The first is the mass of the tail that is cut off beyond t = ceil(76 scale): a geometric draw is the sum of
    this draw and a nonnegative one, so the probability that this draw exceeds t is at most the probability that the
    geometric draw does, exp(-(t + 1) / scale) <= 9.9e-34, for any `shares`. The other term is the rounding of t
    thresholds.
    """
    at_least(1, shares=shares)
    if scale > LARGEST_LAPLACE_TABLE:
        return 0.0
    reach = _reach(LAPLACE_REACH, scale)
    return _UP * 2 * (math.exp(-reach / scale) + tables.rounding(reach))


@functools.lru_cache(maxsize=8)
def _gaussian_table(sigma: float) -> ThresholdTable:
    """Build the table for -t..t, from weights with 256 fractional bits.

    With x = exp(-1 / (2 sigma^2)), the weights are w_0 = 1 and w_(k+1) = w_k x^(2k+1). Each of these numbers is at most
    1. The first two factors are off by at most 2 units of 2^-256, each product adds the errors of its factors and one
    unit for rounding down: x^(2k+1) is off by at most 3k + 2 units, w_k by 2 (k + 1)^2, a sum of all 2t + 1 <= 2.5e5 of
    them by less than 2^54: as the sum of all is at least 1, this is less than 2^-202 of it.
    """
    ratio, square = _exp(1 / (2 * Fraction(sigma) ** 2)), _exp(1 / Fraction(sigma) ** 2)
    weights = [_ONE]
    for _ in range(_reach(REACH, sigma)):
        weights.append(weights[-1] * ratio >> PRECISION)
        ratio = ratio * square >> PRECISION
    return tables.build(1 - len(weights), [*reversed(weights), *weights[1:]])


@functools.lru_cache(maxsize=8)
def _negative_binomial_table(scale: float, shares: int) -> ThresholdTable:
    """Build the table of NB(1/U, a) for 0..t, a = exp(-1 / scale), from weights with 256 fractional bits.

    The weights are w_0 = 1 and w_(k+1) = w_k a r_k, r_k = (k + 1/U) / (k + 1) = (kU + 1) / ((k + 1) U), the quotient of
    two integers. All of these are at most 1 and a is off by at most 2 units of 2^-256, so |w'a' - wa| r_k is at most
    |w' - w| + 2 units, and rounding down twice adds two: w_k is off by at most 4k units, a sum of all t + 1 <= 1.6e6
    of them by less than 2^43: as the sum of all is at least 1, this is less than 2^-202 of it.
    """
    ratio = _exp(1 / Fraction(scale))
    weights = [_ONE]
    for k in range(_reach(LAPLACE_REACH, scale)):
        weights.append((weights[-1] * ratio >> PRECISION) * (k * shares + 1) // ((k + 1) * shares))
    return tables.build(0, weights)


def _exp(exponent: Fraction) -> int:
    """Return exp(-exponent) with 256 fractional bits, off by at most 2 units.

    100 digits are 332 bits, and all of them go into the result, which is at most 1 and is then rounded down.
    """
    with decimal.localcontext(prec=100):
        return int((-decimal.Decimal(exponent.numerator) / exponent.denominator).exp() * _ONE)


def _reach(times: int, scale: float) -> int:
    """Return the largest absolute value in a table that extends to this number of scales."""
    return math.ceil(times * scale)
