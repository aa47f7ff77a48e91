"""Caucus's secure aggregation, timed step by step in one process: real messages, no network, no serialisation."""

from dataclasses import dataclass

import numpy as np

from client import secagg as party_side
from common.errors import InternalError
from common.rng import secure_bytes
from common.secagg.identity import Identity, Roster
from common.secagg.messages import AggregationSetup, KeyAdvert
from server.federation import secagg as coordinator_side
from simulations.laboratory.benchmarks.ratios import time_action


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The parties of an aggregation and their graph.

    Attributes:
        parties: Number of parties.
        degree: Number of neighbours of each party.
        threshold: Number of shares that recover a secret.
        malicious: Whether to use identities and signatures; 30% of all parties are assumed to be corrupt.
    """

    parties: int
    degree: int
    threshold: int
    malicious: bool = False

    @property
    def name(self) -> str:
        """Name of the group in tables."""
        graph = "full" if self.degree == self.parties - 1 else f"k={self.degree}"
        return f"{self.parties} {graph} t={self.threshold}{' signed' if self.malicious else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCost:
    """CPU time, in milliseconds, for each step of a round.

    Attributes:
        mask: Time that the fastest party takes to mask its vector.
        unmask: Time that the fastest party takes to check the list of survivors and reveal its shares.
        add: Time that the coordinator takes to add all vectors.
        combine: Time that the coordinator takes to unmask their sum.
    """

    mask: float
    unmask: float
    add: float
    combine: float


class BenchmarkFederation:
    """All parties of a group and their coordinator, set up for `rounds` rounds.

    Attributes:
        party_ms: CPU time of the set-up for the fastest party, in milliseconds.
        coordinator_ms: CPU time of the set-up for the coordinator, in milliseconds.
    """

    def __init__(self, group: Group, rounds: int) -> None:
        members = tuple(range(group.parties))
        identities = {party: Identity(secure_bytes(32)) for party in members} if group.malicious else {}
        roster = Roster({party: identity.public for party, identity in identities.items()}) if identities else None
        self._setup = AggregationSetup(
            run="benchmark",
            attempt=0,
            rounds=tuple(range(rounds)),
            parties=members,
            threshold=group.threshold,
            minimum_survivors=max(2, group.parties - group.parties // 10),
            degree=group.degree,
            plan_digest=bytes(32),
            corrupt=group.parties * 3 // 10 if group.malicious else 0,
            roster_digest=roster.digest if roster else b"",
        )
        advertised: dict[int, party_side.Advertised] = {}
        adverts: dict[int, KeyAdvert] = {}
        costs = {}
        for party in members:
            (advertised[party], adverts[party]), costs[party] = time_action(
                party_side.begin,
                self._setup,
                party,
                secure_bytes(32),
                identity=identities.get(party),
                roster=roster,
            )
        (sharing, adverts), self.coordinator_ms = time_action(
            coordinator_side.collect_adverts, self._setup, adverts, roster=roster
        )
        shared: dict[int, party_side.Shared] = {}
        sealed: dict[int, dict[int, bytes]] = {}
        for party in members:
            (shared[party], sealed[party]), cost = time_action(advertised[party].share, adverts)
            costs[party] += cost
        (self._coordinator, inboxes), cost = time_action(sharing.collect, sealed)
        self.coordinator_ms += cost
        self._parties: dict[int, party_side.Ready] = {}
        for party in members:
            self._parties[party], cost = time_action(shared[party].receive, inboxes[party], self._coordinator.sharers)
            costs[party] += cost
        self.party_ms = min(costs.values())

    def round(self, index: int, length: int, gone: int, *, sample: int | None = None) -> RoundCost:
        """Run a round in which the last `gone` parties drop out before they send their vectors; return its cost.

        Args:
            index: Index of the round.
            length: Number of 64-bit words in each vector.
            gone: Number of parties that drop out.
            sample: Number of survivors that mask a whole vector. Each other survivor masks one word, so all shares are
                real but the sum is not. With None, all survivors mask a whole vector, and the sum is checked.

        Raises:
            InternalError: The sum is wrong.
        """
        members = self._setup.parties[: len(self._parties) - gone]
        masking = self._coordinator.open(index, length, subject=b"")
        expected = np.zeros(length, dtype=np.int64)
        sent = np.zeros(length, dtype=np.uint64)
        masked: dict[int, party_side.Masked] = {}
        masks, add = [], 0.0
        for place, party in enumerate(members):
            whole = sample is None or place < sample
            vector = np.random.default_rng([party, index]).integers(-(2**40), 2**40, length if whole else 1)
            expected += vector
            (masked[party], words), cost = time_action(self._parties[party].mask, index, vector, subject=b"")
            if whole:
                masks.append(cost)
                sent = words
            add += time_action(masking.add, party, sent)[1]

        agreeing, survivors = masking.close()
        agreed: dict[int, party_side.Agreed] = {}
        signatures: dict[int, bytes] = {}
        costs = {}
        for party in members:
            (agreed[party], signatures[party]), costs[party] = time_action(masked[party].agree, survivors)
        (unmasking, signatures), collect = time_action(agreeing.collect, signatures)
        shares = {}
        for party in members:
            shares[party], cost = time_action(agreed[party].unmask, signatures)
            costs[party] += cost
        total, combine = time_action(unmasking.combine, shares)
        if sample is None and not np.array_equal(total, expected):
            raise InternalError("sum of the survivors", expected="their vectors' sum", got="another")
        return RoundCost(mask=min(masks), unmask=min(costs.values()), add=add, combine=collect + combine)
