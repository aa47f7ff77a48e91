"""Our secure aggregation driven in process, each step timed: no network, no serialisation, every message real."""

from dataclasses import dataclass

import numpy as np

from client import secagg as party_side
from common.errors import InternalError
from common.rng import secure_bytes
from common.secagg.identity import Identity, Roster
from common.secagg.messages import AggregationSetup, KeyAdvert
from server.federation import secagg as coordinator_side
from simulations.benchmarks.timing import timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who takes part.

    Attributes:
        parties: How many.
        degree: Neighbours of each.
        threshold: Shares that recover a secret.
        malicious: With identities and signatures, and three parties in ten corrupt.
    """

    parties: int
    degree: int
    threshold: int
    malicious: bool = False

    @property
    def name(self) -> str:
        """As tables show it."""
        graph = "full" if self.degree == self.parties - 1 else f"k={self.degree}"
        return f"{self.parties} {graph} t={self.threshold}{' signed' if self.malicious else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCost:
    """CPU milliseconds.

    Attributes:
        mask: Of the fastest party, to mask its vector.
        unmask: Of the fastest party, to accept the survivors and hand out shares.
        add: Of the coordinator, to add all vectors.
        combine: Of the coordinator, to unmask their sum.
    """

    mask: float
    unmask: float
    add: float
    combine: float


class BenchmarkFederation:
    """All parties of a group and their coordinator, set up for `rounds` rounds.

    Attributes:
        party_ms: CPU milliseconds of the fastest party to be set up.
        coordinator_ms: Of the coordinator.
    """

    def __init__(self, group: Group, rounds: int) -> None:
        people = tuple(range(group.parties))
        identities = {party: Identity(secure_bytes(32)) for party in people} if group.malicious else {}
        roster = Roster({party: identity.public for party, identity in identities.items()}) if identities else None
        self._setup = AggregationSetup(
            run="benchmark",
            attempt=0,
            rounds=tuple(range(rounds)),
            parties=people,
            threshold=group.threshold,
            minimum_survivors=max(2, group.parties - group.parties // 10),
            degree=group.degree,
            corrupt=group.parties * 3 // 10 if group.malicious else 0,
            roster_digest=roster.digest if roster else b"",
        )
        begun: dict[int, party_side.Advertised] = {}
        adverts: dict[int, KeyAdvert] = {}
        costs = {}
        for party in people:
            (begun[party], adverts[party]), costs[party] = timed(
                party_side.begin,
                self._setup,
                party,
                secure_bytes(32),
                identity=identities.get(party),
                roster=roster,
            )
        (sharing, adverts), self.coordinator_ms = timed(
            coordinator_side.collect_adverts, self._setup, adverts, roster=roster
        )
        shared: dict[int, party_side.Shared] = {}
        sealed: dict[int, dict[int, bytes]] = {}
        for party in people:
            (shared[party], sealed[party]), cost = timed(begun[party].share, adverts)
            costs[party] += cost
        (self._coordinator, inboxes), cost = timed(sharing.collect, sealed)
        self.coordinator_ms += cost
        self._parties: dict[int, party_side.Ready] = {}
        for party in people:
            self._parties[party], cost = timed(shared[party].receive, inboxes[party], self._coordinator.sharers)
            costs[party] += cost
        self.party_ms = min(costs.values())

    def round(self, index: int, length: int, gone: int, *, sample: int | None = None) -> RoundCost:
        """One round in which the last `gone` parties drop out before they send.

        Args:
            index: The round.
            length: Words in each vector.
            gone: How many.
            sample: How many of the others mask a whole vector, the rest one word, so that all shares are real and the
                sum is not; all of them if None, and then the sum is checked.

        Raises:
            InternalError: If the sum is wrong.
        """
        people = self._setup.parties[: len(self._parties) - gone]
        masking = self._coordinator.open(index, length)
        expected = np.zeros(length, dtype=np.int64)
        sent = np.zeros(length, dtype=np.uint64)
        masked: dict[int, party_side.Masked] = {}
        masks, add = [], 0.0
        for place, party in enumerate(people):
            whole = sample is None or place < sample
            vector = np.random.default_rng([party, index]).integers(-(2**40), 2**40, length if whole else 1)
            expected += vector
            (masked[party], words), cost = timed(self._parties[party].mask, index, vector)
            if whole:
                masks.append(cost)
                sent = words
            add += timed(masking.add, party, sent)[1]

        agreeing, survivors = masking.close()
        agreed: dict[int, party_side.Agreed] = {}
        signatures: dict[int, bytes] = {}
        costs = {}
        for party in people:
            (agreed[party], signatures[party]), costs[party] = timed(masked[party].agree, survivors)
        (unmasking, signatures), collect = timed(agreeing.collect, signatures)
        shares = {}
        for party in people:
            shares[party], cost = timed(agreed[party].unmask, signatures)
            costs[party] += cost
        total, combine = timed(unmasking.combine, shares)
        if sample is None and not np.array_equal(total, expected):
            raise InternalError("sum of the survivors", expected="their vectors' sum", got="another")
        return RoundCost(mask=min(masks), unmask=min(costs.values()), add=add, combine=collect + combine)
