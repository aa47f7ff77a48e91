"""A whole round in a few lines, with a switch for each party that drops out, for the tests of both sides."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from client import secagg as party_side
from common.secagg.messages import RoundContext
from server import secagg as coordinator_side


def context(count=4, **changes):
    fields = {
        "run": "test",
        "index": 3,
        "attempt": 0,
        "parties": tuple(range(count)),
        "threshold": 2,
        "minimum_survivors": 2,
        "length": 5,
    }
    return RoundContext(**{**fields, **changes})


def entropy(party, salt=0):
    return hashlib.sha256(f"entropy {party} {salt}".encode()).digest()


def vectors(context):
    """Party to a vector with values near both ends of what may be summed."""
    limit = (2**63 - 1) // len(context.parties)
    return {
        party: np.random.default_rng([party, context.index]).integers(-limit, limit, context.length, endpoint=True)
        for party in context.parties
    }


@dataclass
class Round:
    """Everything that happened; `advance` methods run one step for the parties given."""

    context: RoundContext
    salt: int = 0
    parties: dict = field(default_factory=dict)
    coordinator: object = None
    adverts: dict = field(default_factory=dict)
    sealed: dict = field(default_factory=dict)
    inboxes: dict = field(default_factory=dict)
    masked: dict = field(default_factory=dict)
    survivors: frozenset = frozenset()
    unmask_shares: dict = field(default_factory=dict)

    def advertise(self, present=None):
        for party in self._present(present, self.context.parties):
            state, self.adverts[party] = party_side.advertise(self.context, party, entropy(party, self.salt))
            self.parties[party] = state
        self.coordinator, self.adverts = coordinator_side.collect_adverts(self.context, self.adverts)
        return self

    def share(self, present=None):
        for party in self._present(present, self.adverts):
            self.parties[party], self.sealed[party] = self.parties[party].share(self.adverts)
        self.coordinator, self.inboxes = self.coordinator.collect(self.sealed)
        return self

    def mask(self, present=None):
        inputs = vectors(self.context)
        for party in self._present(present, self.inboxes):
            state, self.masked[party] = self.parties[party].mask(self.inboxes[party], inputs[party])
            self.parties[party] = state
            self.coordinator.add(party, self.masked[party])
        self.coordinator, self.survivors = self.coordinator.close()
        return self

    def unmask(self, present=None):
        for party in self._present(present, self.survivors):
            self.unmask_shares[party] = self.parties[party].unmask(self.survivors)
        return self.coordinator.combine(self.unmask_shares)

    def expected(self):
        inputs = vectors(self.context)
        return [sum(int(inputs[party][place]) for party in self.survivors) for place in range(self.context.length)]

    def _present(self, present, able):
        return sorted(able if present is None else set(present) & set(able))
