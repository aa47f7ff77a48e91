"""The graph along which parties exchange shares and masks (Bell et al. 2020, section 3)."""

import hashlib

from common.domain import PartyId


def neighbours(parties: tuple[PartyId, ...], degree: int, seed: bytes) -> dict[PartyId, frozenset[PartyId]]:
    """A ring in random order in which each party is a neighbour of the degree / 2 parties before and after it.

    Args:
        parties: Distinct.
        degree: len(parties) - 1, which is the full graph, or an even number below.
        seed: Public; parties with the same seed compute the same graph.

    Returns:
        Party to its neighbours.
    """
    if degree == len(parties) - 1:
        return {party: frozenset(parties) - {party} for party in parties}
    ring = sorted(parties, key=lambda party: hashlib.sha256(seed + party.to_bytes(8, "big")).digest())
    steps = [step for step in range(-(degree // 2), degree // 2 + 1) if step]
    return {party: frozenset(ring[(place + step) % len(ring)] for step in steps) for place, party in enumerate(ring)}
