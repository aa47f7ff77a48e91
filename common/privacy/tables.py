"""Draws from a finite distribution: 128 random bits are compared with cumulative probabilities in units of 2^-128.

Every step is integer arithmetic. A table is built once per distribution; a draw then uses 16 bytes of the stream and,
in most cases, one look-up in a guide table indexed by the first bits.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import numpy as np
import numpy.typing as npt

from common.privacy.keystream import Keystream

PRECISION = 256
"""Number of fractional bits of the weights from which tables are built."""

_CHUNK = 1 << 16
_CELLS = 5
"""Number of guide cells per threshold, large enough that few draws need a search."""
_GUIDE_BITS = (12, 20)


def rounding(thresholds: int) -> float:
    """Bound the total variation between a table's distribution and the exact one if thresholds are off by 2 * 2^-128.

    A probability is the difference of two thresholds, so the errors of all probabilities add up to at most twice the
    errors of the thresholds, and the total variation is half of that.
    """
    return thresholds * 2.0**-127


@dataclass(frozen=True, slots=True)
class ThresholdTable:
    """Thresholds T_0 <= T_1 <= ...: a draw is `low` plus the number of thresholds <= u, which is uniform below 2^128.

    Attributes:
        low: Smallest value.
        high_words: (values - 1,) uint64, T_i >> 64.
        low_words: (values - 1,) uint64, T_i mod 2^64.
        guide: The draw for each value of u's first bits, or `ambiguous` where these do not determine it.
        shift: Number of the first word's bits that the guide ignores.
        ambiguous: A value outside the distribution.
    """

    low: int
    high_words: npt.NDArray[np.uint64]
    low_words: npt.NDArray[np.uint64]
    guide: npt.NDArray[np.int32]
    shift: np.uint64
    ambiguous: int


def build(low: int, weights: Sequence[int]) -> ThresholdTable:
    """Return the table in which `low` + i has a probability proportional to weights[i].

    A threshold is 2^128 times a sum of weights over the sum of all, rounded down and less than 2^128: off by at most
    one unit of 2^-128 if the weights are exact. If the first weights, a sum of them and the sum of all are off by
    less than 2^-202 of the sum of all, the quotient is off by less than 2^-200 more, and the threshold by less than two
    units in total. `rounding` relies on this, and each function that computes weights has to prove it.
    """
    words = np.frombuffer(_packed(weights), dtype="<u8")
    high_words, low_words = words[1::2].copy(), words[::2].copy()
    fewest, most = _GUIDE_BITS
    bits = min(most, max(fewest, math.ceil(math.log2(_CELLS * len(weights)))))
    shift = np.uint64(64 - bits)
    starts = np.arange(1 << bits, dtype=np.uint64) << shift
    guide = (np.searchsorted(high_words, starts, side="left") + low).astype(np.int32)
    ambiguous = low + len(weights)
    guide[high_words >> shift] = ambiguous
    return ThresholdTable(low, high_words, low_words, guide, shift, ambiguous)


def draw(table: ThresholdTable, size: int, stream: Keystream) -> npt.NDArray[np.int64]:
    """Draw `size` independent numbers; with the same stream, a smaller size yields a prefix of a larger one."""
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = draws[start : start + _CHUNK]
        words = np.frombuffer(stream.read(16 * len(part)), dtype="<u8").reshape(-1, 2)
        part[:] = _look_up(table, words[:, 0], words[:, 1])
    return draws


def _packed(weights: Sequence[int]) -> bytearray:
    """Return all thresholds, 16 bytes each, little-endian."""
    total, packed = sum(weights), bytearray()
    # Where the last weights are 0, a threshold would be 2^128 itself.
    below: Iterator[int] = islice(accumulate(weights), len(weights) - 1)
    for share in below:
        packed += min((share << 128) // total, (1 << 128) - 1).to_bytes(16, "little")
    return packed


def _look_up(
    table: ThresholdTable, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Return the draws for u = first * 2^64 + second, found by the guide, the first word or (rarely) both words."""
    draws: npt.NDArray[np.int64] = table.guide[first >> table.shift].astype(np.int64)
    open_places = np.flatnonzero(draws == table.ambiguous)
    words = first[open_places]
    below = np.searchsorted(table.high_words, words, side="left")
    # A word above all thresholds is compared with the last one, and is not equal to it.
    equal = table.high_words[np.minimum(below, len(table.high_words) - 1)] == words
    for i in np.flatnonzero(equal):
        ties = table.low_words[table.high_words == words[i]]
        below[i] += np.count_nonzero(ties <= second[open_places[i]])
    draws[open_places] = below + table.low
    return draws
