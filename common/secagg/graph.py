"""The graph along which parties exchange shares and masks, and how dense it must be (Bell et al. 2020, sections 3, 4).

The graph is a ring in random order. Each party has k neighbours: the k/2 parties before it and the k/2 parties after it
(a Harary graph). Below, L is the number of parties, C the number of corrupt parties and D the number of parties that
drop out at random; t is the number of shares that recover a secret.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from common.domain import PartyId
from common.errors import InternalError, PlanError
from common.secagg.messages import KEY_BYTES, PROTOCOL, signers
from common.validate import in_range, positive

GRINDING_BITS = 40
"""log2 of the number of graphs that a malicious coordinator is assumed to try, with other keys or parties, before it
finds one that suits it (`common.secagg`, malicious mode, 7)."""


def neighbours(parties: Sequence[PartyId], degree: int, seed: bytes) -> Mapping[PartyId, frozenset[PartyId]]:
    """Return the graph along which parties exchange shares and masks.

    Args:
        parties: The distinct parties, in any order.
        degree: Number of neighbours of each party. An odd number is rounded up; len(parties) - 1 or more gives the
            full graph.
        seed: 32 public bytes; parties with the same seed compute the same graph.

    Returns:
        The neighbours of each party, keyed by party.

    Raises:
        InternalError: If a party is listed twice, or degree or seed is invalid.
    """
    if len(set(parties)) != len(parties) or degree < 1 or len(seed) != KEY_BYTES:
        raise InternalError(
            "graph", expected=f"distinct parties, degree >= 1, seed of {KEY_BYTES} bytes", got=(degree, len(seed))
        )
    if degree >= len(parties) - 1:
        everybody = frozenset(parties)
        return MappingProxyType({party: everybody - {party} for party in parties})
    # Sorting by independent uniform labels makes every order equally likely; two equal ones have a chance of 2^-256.
    ring = sorted(parties, key=lambda party: _label(seed, party))
    half = (degree + 1) // 2
    around = ring[-half:] + ring + ring[:half]
    return MappingProxyType(
        {
            party: frozenset(around[place : place + half] + around[place + half + 1 : place + 2 * half + 1])
            for place, party in enumerate(ring)
        }
    )


def parameters(
    parties: int, *, corrupt: float, dropped: float, security_bits: int, correctness_bits: int, malicious: bool
) -> tuple[int, int]:
    """Return the smallest degree k that is secure and rarely fails, and the lowest threshold t for this degree.

    Secure means that the probabilities of the following events, over the random order, add up to at most
    2^-security_bits. Each probability has a union bound over hypergeometric tails, since the corrupt parties were
    chosen before the order. Below, "X of n draws, M of N" means that n of N parties are drawn, and X of these n are
    among the M in question.

    Semi-honest coordinator (Bell et al., section 3):

    1. t or more neighbours of a party are corrupt, and so learn its secrets: L · P[X >= t], X of k draws, C of L - 1.
    2. The honest survivors are disconnected, so the sum of each component is revealed. This takes a run of k/2 corrupt
       or dropped parties: L · P[X = k/2], X of k/2 draws, C + D of L.

    Malicious coordinator, which chooses who drops out and sends different data to different parties, but obtains only
    one signed survivor set (see the docstring of `common.secagg`). Corrupt parties send the coordinator both of the
    shares that they have from one owner:

    3. A party's k neighbours and itself hold k + 1 shares of each kind, c of them with corrupt neighbours. Both kinds
       can reach t, or an odd one out can be unmasked without an honest peer that masked it, only if k + 1 + c >= 2 t:
       L · P[X >= 2 t - k - 1], X of k draws, C of L - 1. In Bell et al., section 4, the condition is k + c >= 2 t,
       since parties hold no share of their own there. This event includes event 1.
    4. Part of the survivors is unmasked alone. On a ring a part is separated from the others by two disjoint runs
       of k/2 places without an honest party that unmasks. The party next to a run has k/2 neighbours on its other side
       and itself, so its seed is revealed only if the run holds t - k/2 - 1 corrupt parties; a run that holds fewer
       hides what lies on both sides. Places in disjoint runs are negatively associated (Joag-Dev and Proschan 1983), so
       the probability is at most L² / 2 · P[X >= t - k/2 - 1]², X of k/2 draws, C of L. Bell et al. let a malicious
       coordinator have sums over several large parts; here each part would have too little noise.

    Correct means that the probability that fewer than t neighbours of some party survive is at most
    2^-correctness_bits. This probability is bounded by L · P[X > k - t], X of k draws, D of L - 1 (Bell et al., section
    3).

    With a malicious coordinator, as many parties must survive as `messages.signers` requires to sign the survivor set.

    The full graph is returned, with its lowest threshold (`threshold_of_full_graph`), if no sparser graph qualifies.

    Args:
        parties: L, number of parties.
        corrupt: Largest fraction of parties that may collude with the coordinator; C is rounded up.
        dropped: Largest fraction of parties that drop out of a round; D is rounded up.
        security_bits: Bits of security, as defined above. 40 is customary, and GRINDING_BITS more with a malicious
            coordinator.
        correctness_bits: Bits of correctness, as defined above; 30 is customary.
        malicious: Whether the coordinator may break the protocol.

    Returns:
        Degree k, even or L - 1, and threshold t.

    Raises:
        ConfigError: If a number is out of its range.
        PlanError: If no graph qualifies: fewer than 2 honest survivors, or too few to sign.
    """
    in_range(2, 2**20, parties=parties)
    in_range(0, 1, corrupt=corrupt, dropped=dropped)
    positive(security_bits=security_bits, correctness_bits=correctness_bits)
    bad, gone = rounded_up(corrupt, parties), rounded_up(dropped, parties)
    # Number of signatures; with the highest threshold nothing more is needed.
    least = (parties + bad) // 2 + 1 if malicious else bad + 2
    if parties - gone < least:
        raise PlanError(
            "corrupt and dropped parties",
            expected=f"at least {least} survivors of {parties} parties, as {bad} may be corrupt",
            got=f"{parties - gone}",
            where="malicious coordinator" if malicious else "semi-honest coordinator",
            do="Assume fewer corrupt parties, or fewer dropouts",
        )
    for degree in range(2, parties - 1, 2):
        threshold = np.arange(2, degree + 1)
        breach = _cuttable(parties, bad, degree) if malicious else _separable(parties, bad, gone, degree)
        stuck = parties * _tails(parties - 1, gone, degree)[degree + 1 - threshold]
        for good in threshold[(breach <= 2.0**-security_bits) & (stuck <= 2.0**-correctness_bits)].tolist():
            needed = signers(parties, corrupt=bad, degree=degree, threshold=good, survivors=parties - gone)
            if not malicious or needed <= parties - gone:
                return degree, good
    return parties - 1, threshold_of_full_graph(parties, bad, malicious=malicious)


def breach(parties: int, *, corrupt: float, dropped: float, degree: int, threshold: int, malicious: bool) -> float:
    """Return a bound on the probability that a sparse graph violates the security conditions of `parameters`.

    The bound is 1 unless the threshold is between 2 and the degree.

    Args:
        parties: L, number of parties.
        corrupt: Fraction of parties that collude with the coordinator; C is rounded up.
        dropped: Fraction of parties that drop out; D is rounded up.
        degree: k, number of neighbours, even and below L - 1.
        threshold: t, number of shares that recover a secret.
        malicious: Whether the coordinator may break the protocol.
    """
    if not 2 <= threshold <= degree:
        return 1.0
    bad, gone = rounded_up(corrupt, parties), rounded_up(dropped, parties)
    chances = _cuttable(parties, bad, degree) if malicious else _separable(parties, bad, gone, degree)
    return min(1.0, float(chances[threshold - 2]))


def threshold_of_full_graph(parties: int, corrupt: int, *, malicious: bool) -> int:
    """Return the lowest threshold t to choose on the full graph, where nothing is random.

    It is C + 1, so that C holders of shares cannot recover a secret, and at least 2 (`AggregationSetup`). With a
    malicious coordinator it is also at least (L + C) / 2 rounded up: then the second bound of `signers`, L + C - t, is
    not above the first, so that no more parties must sign than with any higher threshold.

    Args:
        parties: L, number of parties.
        corrupt: C, number of corrupt parties.
        malicious: Whether the coordinator may break the protocol.
    """
    return max(2, corrupt + 1, (parties + corrupt + 1) // 2 if malicious else 0)


def coalition(fraction: float, parties: int) -> int:
    """Return the number of other parties that collude with the coordinator if this fraction of all may collude."""
    return min(rounded_up(fraction, parties), parties - 1)


def rounded_up(fraction: float, parties: int) -> int:
    """Return this fraction of the number of parties, rounded up to a whole number."""
    return math.ceil(fraction * parties - 1e-9)  # 0.07 · 100 is a little above 7


def _label(seed: bytes, party: PartyId) -> bytes:
    return hashlib.sha256(PROTOCOL + b"|graph|" + seed + party.to_bytes(8, "big")).digest()


def _separable(parties: int, bad: int, gone: int, degree: int) -> NDArray[np.float64]:
    """Return bounds on the probability of event 1 or 2 of `parameters`, for thresholds from 2 to the degree."""
    exposed: NDArray[np.float64] = parties * _tails(parties - 1, bad, degree)[2 : degree + 1]
    apart: float = parties * _tails(parties, bad + gone, degree // 2)[degree // 2]
    return exposed + apart


def _cuttable(parties: int, bad: int, degree: int) -> NDArray[np.float64]:
    """Return bounds on the probability of event 3 or 4 of `parameters`, for thresholds from 2 to the degree."""
    threshold = np.arange(2, degree + 1)
    both = parties * _tails(parties - 1, bad, degree)[np.maximum(2 * threshold - degree - 1, 0)]
    run = _tails(parties, bad, degree // 2)[np.maximum(threshold - degree // 2 - 1, 0)]
    return both + parties**2 / 2 * run**2


def _tails(population: int, marked: int, draws: int) -> NDArray[np.float64]:
    """Return P[X >= x] for x = 0, 1, ..., draws + 1, with X the number of marked items in draws without replacement."""
    count = np.arange(max(0, draws + marked - population), min(draws, marked) + 1)
    chances = np.zeros(draws + 2)
    chances[count] = np.exp(
        _log_choose(marked, count)
        + _log_choose(population - marked, draws - count)
        - _log_choose(population, np.array(draws))
    )
    # Smallest terms first.
    return np.cumsum(chances[::-1])[::-1]


def _log_choose(total: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1)
    return logs
