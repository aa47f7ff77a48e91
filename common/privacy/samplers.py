"""Exact discrete Gaussian noise: integers k with probability proportional to exp(-k^2 / (2 sigma^2)).

No floating-point number decides a draw, so there is none of the side door of Mironov (2012). Randomness is an argument,
a secret 32-byte key that AES-256-CTR expands, so that an interrupted answer can be repeated with the very same noise.
A key serves one call: the stream has no other input.

Two samplers, of which `discrete_gaussian` takes the first up to sigma = 10^4:

- a table of cumulative probabilities in units of 2^-128, against which 128 random bits are compared. The output differs
  from the exact distribution by at most `table_tv` in total variation;
- rejection with rational arithmetic (Canonne, Kamath and Steinke 2020, algorithms 1 to 3): exact, and slow.
"""

import decimal
import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from common.errors import InternalError
from common.validate import positive

KEY_BYTES = 32
LARGEST_TABLE = 1e4
"""Largest sigma, in grid units, that is sampled from a table."""

_REACH = 12
_PRECISION = 256
_CHUNK = 1 << 16


def discrete_gaussian(sigma: float, size: int, key: bytes) -> npt.NDArray[np.int64]:
    """`size` independent draws.

    Args:
        sigma: Scale in grid units, above 0: to ask for no noise is not to ask.
        size: How many draws. A shorter request under the same key and sigma is a prefix of a longer one.
        key: 32 secret bytes, never used for anything else.

    Returns:
        (size,) int64, in grid units.

    Raises:
        ConfigError: If sigma is not a finite number above 0.
        InternalError: If the key has another length.
    """
    positive(sigma=sigma)
    if len(key) != KEY_BYTES:
        raise InternalError("noise key", expected=f"{KEY_BYTES} bytes", got=f"{len(key)} bytes")
    stream = _Stream(key)
    if sigma > LARGEST_TABLE:
        return rejection(sigma, size, stream)
    table = _table(sigma)
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = draws[start : start + _CHUNK]
        words = np.frombuffer(stream.read(16 * len(part)), dtype="<u8").reshape(-1, 2)
        part[:] = _look_up(table, words[:, 0], words[:, 1])
    return draws


def table_tv(sigma: float) -> float:
    """Total variation distance between one draw of `discrete_gaussian` and the exact distribution, an upper bound.

    Two parts. Cutting the tails beyond t = ceil(12 sigma): with Z >= sigma sqrt(2 pi) by Poisson summation, and the sum
    of exp(-k^2 / (2 sigma^2)) over k > t below its integral from t, which is below sigma^2 / t exp(-t^2 / (2 sigma^2)),
    the mass cut off is at most 2 sigma / (t sqrt(2 pi)) exp(-t^2 / (2 sigma^2)) <= 3.6e-33.
    Rounding: the 2t thresholds are each off by less than 2 * 2^-128 (see `_table`), a probability is the difference of
    two, and half the sum of their errors is at most 2t * 2 * 2^-128.
    """
    if sigma > LARGEST_TABLE:
        return 0.0
    reach = _reach(sigma)
    ratio = reach / sigma
    tails = 2 / (ratio * math.sqrt(2 * math.pi)) * math.exp(-ratio * ratio / 2)
    return 1.000001 * (tails + 4 * reach * 2.0**-128)


@dataclass(frozen=True, slots=True)
class _Table:
    """Thresholds T_0 < T_1 < ...: the draw is `low` plus the number of thresholds at most u, u uniform below 2^128.

    Attributes:
        low: Smallest value.
        high_words: (values - 1,) uint64, T_i >> 64.
        low_words: (values - 1,) uint64, T_i mod 2^64.
        guide: The draw for each value of u's first bits, or `ambiguous` where these do not settle it.
        shift: How many of the first word's bits the guide ignores.
        ambiguous: A value that no draw has.
    """

    low: int
    high_words: npt.NDArray[np.uint64]
    low_words: npt.NDArray[np.uint64]
    guide: npt.NDArray[np.int32]
    shift: np.uint64
    ambiguous: int


@functools.lru_cache(maxsize=8)
def _table(sigma: float) -> _Table:
    """Thresholds by integer arithmetic with 256 fractional bits.

    With x = exp(-1 / (2 sigma^2)), the weights are w_0 = 1 and w_(k+1) = w_k x^(2k+1). Each of these numbers is at most
    1. The first two factors are off by at most 2 units of 2^-256, each product adds the errors of its factors and one
    unit for rounding down: x^(2k+1) is off by at most 3k + 2 units, w_k by 2 (k + 1)^2, a sum of all 2t + 1 <= 2.5e5 of
    them by less than 2^54. As the total is at least 1, a quotient of two sums is off by less than 2^-200, beside the
    2^-128 of its own rounding down.
    """
    reach = _reach(sigma)
    one = 1 << _PRECISION
    with decimal.localcontext(prec=100):
        exponent = -1 / (2 * decimal.Decimal(sigma) ** 2)
        ratio, square = (int((factor * exponent).exp() * one) for factor in (1, 2))
    weights = [one]
    for _ in range(reach):
        weights.append(weights[-1] * ratio >> _PRECISION)
        ratio = ratio * square >> _PRECISION
    total = 2 * sum(weights) - weights[0]
    thresholds, below = [], 0
    for k in range(-reach, reach):
        below += weights[abs(k)]
        thresholds.append((below << 128) // total)
    words = np.frombuffer(b"".join(threshold.to_bytes(16, "little") for threshold in thresholds), dtype="<u8")
    high_words, low_words = words[1::2].copy(), words[::2].copy()

    bits = min(20, max(12, math.ceil(math.log2(128 * sigma))))
    shift = np.uint64(64 - bits)
    starts = np.arange(1 << bits, dtype=np.uint64) << shift
    guide = (np.searchsorted(high_words, starts, side="left") - reach).astype(np.int32)
    guide[high_words >> shift] = reach + 1
    return _Table(-reach, high_words, low_words, guide, shift, reach + 1)


def _reach(sigma: float) -> int:
    """Largest absolute value that the table returns."""
    return math.ceil(_REACH * sigma)


def _look_up(table: _Table, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Draws for u = first * 2^64 + second: by the guide, else by the first word, else (about never) by both."""
    draws: npt.NDArray[np.int64] = table.guide[first >> table.shift].astype(np.int64)
    unsettled = np.flatnonzero(draws == table.ambiguous)
    words = first[unsettled]
    below = np.searchsorted(table.high_words, words, side="left")
    # Behind the last threshold there is none to be equal to: a word equal to the last one's is never counted there.
    equal = table.high_words[np.minimum(below, len(table.high_words) - 1)] == words
    for i in np.flatnonzero(equal):
        ties = table.low_words[table.high_words == words[i]]
        below[i] += np.count_nonzero(ties <= second[unsettled[i]])
    draws[unsettled] = below + table.low
    return draws


class _Stream:
    """AES-256-CTR keystream, from counter 0."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, count: int) -> bytes:
        """The next `count` bytes."""
        return self._encryptor.update(bytes(count))

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""
        bits = (bound - 1).bit_length()
        while True:
            draw = int.from_bytes(self.read((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if draw < bound:
                return draw


def rejection(sigma: float, size: int, stream: _Stream) -> npt.NDArray[np.int64]:
    """`size` exact draws by Canonne, Kamath and Steinke (2020), algorithm 3, for any sigma."""
    variance = Fraction(sigma) ** 2
    scale = math.floor(sigma) + 1
    return np.array([_gaussian(variance, scale, stream) for _ in range(size)], dtype=np.int64)


def _gaussian(variance: Fraction, scale: int, stream: _Stream) -> int:
    """Algorithm 3: discrete Laplace draws, accepted with probability exp(-(|y| - variance/scale)^2 / (2 variance))."""
    numerator, denominator = variance.as_integer_ratio()
    while True:
        draw = _laplace(scale, stream)
        distance = abs(draw) * scale * denominator - numerator
        if _bernoulli_exp(distance * distance, 2 * numerator * denominator * scale * scale, stream):
            return draw


def _laplace(scale: int, stream: _Stream) -> int:
    """Algorithm 2: probability proportional to exp(-|y| / scale)."""
    while True:
        remainder = stream.below(scale)
        if not _bernoulli_exp(remainder, scale, stream):
            continue
        quotient = 0
        while _bernoulli_exp(1, 1, stream):
            quotient += 1
        magnitude = remainder + scale * quotient
        negative = stream.below(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def _bernoulli_exp(numerator: int, denominator: int, stream: _Stream) -> bool:
    """Algorithm 1: True with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1, stream):
            return False
        numerator -= denominator
    tries = 1
    while stream.below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1
