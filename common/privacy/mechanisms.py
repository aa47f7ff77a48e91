"""Mechanisms inside one party, whose outputs leave it without being summed: a length range, and noisy choices.

They are exact: queries and utilities are integers, floating-point scales are used as the rational numbers that they
represent, and coins and noise come from `common.privacy.exact`. So each costs (epsilon, 0), with nothing to add for
rounding. Keys are 32 secret bytes each, never used for anything else. The time of a call depends on its draws and, for
a choice, on the utilities, so a party sends its outputs when all are ready.
"""

import numpy as np
import numpy.typing as npt

from common.errors import InternalError
from common.privacy.exact import bernoulli_exp, laplace
from common.privacy.keystream import Keystream
from common.validate import positive

UNIT = 1 << 20
"""Number of integer steps in a utility of 1."""


def length_range(lengths: npt.ArrayLike, cap: int, scale: float, key: bytes) -> tuple[int, int]:
    """Draw the noisy shortest and longest length, each by one run of AboveThreshold (Dwork and Roth 2014, algorithm 1).

    The high end is the first x, from 0 upward, at which the noised number of records longer than x is at most a noised
    threshold of 0; the low end is the first x, from cap downward, at which this holds for the records shorter than x. A
    run that never stops yields cap or 0. If the ends cross, they are swapped, which depends only on the two ends. This
    is the query of DPGA-TextSyn with discrete noise: scale on the threshold and 2 * scale on each count.

    Privacy: epsilon is 2 / scale for each end and 4 / scale for both if each count q_x changes by at most 1, as it does
    if a record is added, removed or replaced; it is m times as much if m records may change. Proof, for one run that
    stops at x on one data set, with integers throughout: fix the noise of the counts before x, the smallest of which,
    noised, is g. The run stops at x if the threshold's noise r and the count's noise v have r < g and q_x + v <= r. On
    a neighbour these are g' and q'_x, each at most 1 away, and the same conditions hold for r + (g' - g) and
    v + (g' - g) + (q_x - q'_x): shifts of at most 1 and 2, which change the probability of a pair by at most a factor
    exp(1 / scale) * exp(2 / (2 scale)). (The counts of one run all move in one direction, g' - g and q_x - q'_x
    therefore in opposite ones, so the second shift is at most 1 and 3 / (2 scale) would suffice, but the proof does not
    rely on this.)

    Args:
        lengths: (records,) integers from 0; those above cap count as cap. Private.
        cap: Public largest length, at least 1. The answer is in [0, cap].
        scale: Scale of the threshold's noise, in records: 2 / epsilon of one end. Above 0.
        key: Secret key, for this call alone.

    Returns:
        (low, high), low <= high.

    Raises:
        ConfigError: If scale is not a finite number above 0, or cap is below 1.
        InternalError: If lengths are not integers from 0, or the key does not have 32 bytes.
    """
    positive(scale=scale, cap=cap)
    stream = Keystream(key)
    clipped = np.minimum(_integers("lengths", lengths), cap)
    if clipped.min(initial=0) < 0:
        raise InternalError("lengths", expected="integers from 0", got="one below")
    counts = np.bincount(clipped, minlength=cap + 1)
    longer = len(clipped) - np.cumsum(counts)
    shorter = len(clipped) - np.cumsum(counts[::-1])
    high = _first_at_most_zero(longer[:-1].tolist(), scale, stream)
    low = cap - _first_at_most_zero(shorter[:-1].tolist(), scale, stream)
    return min(low, high), max(low, high)


def noisy_max(utilities: npt.ArrayLike, scale: float, key: bytes, *, replacement: bool) -> int:
    """Choose a candidate with about the highest utility, and return its index.

    Candidates are drawn at random and taken with probability p_c = exp((u_c - max u) / scale). Without replacement this
    is permute-and-flip (McKenna and Sheldon 2020). With replacement it is rejection sampling of the exponential
    mechanism (McSherry and Talwar 2007), whose expected utility is never better.

    Privacy, if the candidates are public and all utilities stay in an interval of length `range`: epsilon is
    2 * range / scale (`round_to_grid`: 2 * UNIT / scale) for replacing the record to which the utilities belong. It is
    half of that for leaving the record out and choosing uniformly instead, so a party with fewer records than a public
    number of choices may make the remaining choices uniformly.

    Proof with replacement: candidate c has probability exp(u_c / scale) / sum_b exp(u_b / scale), and replacing the
    record changes numerator and denominator by at most a factor exp(range / scale) each, in opposite directions.

    Proof without replacement: each candidate b passes its coin toss with probability p_b (the best always does), and
    the first one that passes in random order is uniform among those that pass. The candidate with the highest u_b +
    e_b, where the e_b are independent exponentials of mean `scale`, has the same distribution (Ding et al. 2021): e_b
    reaches max u - u_b with probability p_b, and u_b + e_b - max u is then exponential again, the same for all, so the
    highest is uniform among these candidates. Fix the noise of all but c: it is chosen if e_c > t, where
    t = max_b (u_b + e_b) - u_c over the other b. Replacing the record moves t by at most 2 * range, and
    P(e_c > t + 2 range) >= exp(-2 range / scale) P(e_c > t).

    A uniform choice is the choice of either mechanism at equal utilities, for example all in the middle of the
    interval: then each utility moves by at most range / 2.

    Running time: about 10 microseconds per coin; on average at most 1 / (mean of p_c) coins, which is at most the
    smaller of the number of candidates and exp(range / scale), and without replacement at most one per candidate.
    Replies leave on a schedule that allows for them (`common.schedule.tosses`).

    Args:
        utilities: (candidates,) integers, in grid steps. Private.
        scale: Scale in the same steps. Above 0.
        key: Secret key, for this call alone.
        replacement: Whether candidates that were rejected may be drawn again.

    Returns:
        An index into utilities.

    Raises:
        ConfigError: If scale is not a finite number above 0.
        InternalError: If there are no candidates, utilities are not integers, or the key does not have 32 bytes.
    """
    positive(scale=scale)
    stream = Keystream(key)
    steps: list[int] = _integers("utilities", utilities).tolist()
    if not steps:
        raise InternalError("utilities", expected="one or more", got="none")
    numerator, denominator = float(scale).as_integer_ratio()
    best, order = max(steps), list(range(len(steps)))
    remaining = len(order)
    while True:
        place = stream.below(remaining)
        candidate = order[place]
        if bernoulli_exp((best - steps[candidate]) * denominator, numerator, stream):
            return candidate
        if not replacement:
            remaining -= 1
            order[place] = order[remaining]


def round_to_grid(utilities: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Clip utilities to [0, 1] and round them down to multiples of 1 / UNIT, as integers in [0, UNIT].

    The result is in this range for any input; not-a-number counts as 0.
    """
    bounded = np.clip(np.nan_to_num(np.asarray(utilities, dtype=np.float64)), 0.0, 1.0)
    return np.floor(bounded * UNIT).astype(np.int64)


def _first_at_most_zero(counts: list[int], scale: float, stream: Keystream) -> int:
    """Return the index of the first noised count at or below a noised 0; the number of counts if there is none."""
    threshold = laplace(scale, stream)
    for place, count in enumerate(counts):
        if count + laplace(2 * scale, stream) <= threshold:
            return place
    return len(counts)


def _integers(what: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InternalError(what, expected="integers in one dimension", got=f"{array.dtype}, {array.ndim} dimensions")
    return array.astype(np.int64)


SUMMED = ("gaussian", "laplace")
"""Mechanisms for which the parties add the noise in shares."""
