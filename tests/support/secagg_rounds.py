"""A complete set-up of secure aggregation in a few lines, for tests of both sides; any party can drop out."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from client import secagg as party_side
from common.secagg.identity import Identity, Roster
from common.secagg.messages import AggregationSetup
from server.federation import secagg as coordinator_side

LENGTH = 5


def identity(party):
    return Identity(hashlib.sha256(f"identity {party}".encode()).digest())


def roster(parties):
    return Roster({party: identity(party).public for party in parties})


def setup(count=4, *, malicious=False, **changes):
    """Return a set-up for parties 0 to count - 1, with three rounds and the complete graph."""
    parties = changes.get("parties", tuple(range(count)))
    fields = {
        "run": "test",
        "attempt": 0,
        "rounds": (3, 4, 7),
        "parties": parties,
        "threshold": 2,
        "minimum_survivors": 2,
        "degree": len(parties) - 1,
        "plan_digest": bytes(32),
        "roster_digest": roster(parties).digest if malicious else b"",
    }
    return AggregationSetup(**{**fields, **changes})


def entropy(party, salt=0):
    return hashlib.sha256(f"entropy {party} {salt}".encode()).digest()


def vectors(setup, index, length=LENGTH):
    """Return a vector for each party, with values near both ends of a sum's range."""
    limit = (2**63 - 1) // len(setup.parties)
    return {
        party: np.random.default_rng([party, index]).integers(-limit, limit, length, endpoint=True)
        for party in setup.parties
    }


@dataclass
class Run:
    """All states of a set-up; each method performs one step for the given parties."""

    setup: AggregationSetup
    salt: int = 0
    parties: dict = field(default_factory=dict)
    coordinator: object = None
    adverts: dict = field(default_factory=dict)
    sealed: dict = field(default_factory=dict)
    inboxes: dict = field(default_factory=dict)

    @property
    def roster(self):
        return roster(self.setup.parties) if self.setup.roster_digest else None

    def begin(self, party):
        me = identity(party) if self.setup.roster_digest else None
        return party_side.begin(self.setup, party, entropy(party, self.salt), identity=me, roster=self.roster)

    def advertise(self, present=None):
        for party in _present(present, self.setup.parties):
            self.parties[party], self.adverts[party] = self.begin(party)
        self.coordinator, self.adverts = coordinator_side.collect_adverts(self.setup, self.adverts, roster=self.roster)
        return self

    def share(self, present=None):
        for party in _present(present, self.adverts):
            self.parties[party], self.sealed[party] = self.parties[party].share(self.adverts)
        self.coordinator, self.inboxes = self.coordinator.collect(self.sealed)
        return self

    def receive(self, present=None):
        for party in _present(present, self.inboxes):
            self.parties[party] = self.parties[party].receive(self.inboxes[party], self.coordinator.sharers)
        return self

    def ready(self):
        return self.advertise().share().receive()

    def open(self, index=3, length=LENGTH):
        return Round(self, index, length, self.coordinator.open(index, length, subject=b""))


@dataclass
class Round:
    """All states of one round of a `Run`."""

    run: Run
    index: int
    length: int
    coordinator: object
    parties: dict = field(default_factory=dict)
    masked: dict = field(default_factory=dict)
    survivors: frozenset = frozenset()
    signatures: dict = field(default_factory=dict)
    unmask_shares: dict = field(default_factory=dict)

    def mask(self, present=None):
        inputs = vectors(self.run.setup, self.index, self.length)
        able = [party for party, state in self.run.parties.items() if isinstance(state, party_side.Ready)]
        for party in _present(present, able):
            self.parties[party], self.masked[party] = self.run.parties[party].mask(
                self.index, inputs[party], subject=b""
            )
            self.coordinator.add(party, self.masked[party])
        self.coordinator, self.survivors = self.coordinator.close()
        return self

    def agree(self, present=None):
        for party in _present(present, self.survivors):
            self.parties[party], self.signatures[party] = self.parties[party].agree(self.survivors)
        self.coordinator, self.signatures = self.coordinator.collect(self.signatures)
        return self

    def unmask(self, present=None):
        agreed = [party for party, state in self.parties.items() if isinstance(state, party_side.Agreed)]
        for party in _present(present, agreed):
            self.unmask_shares[party] = self.parties[party].unmask(self.signatures)
        return self.coordinator.combine(self.unmask_shares)

    def expected(self):
        inputs = vectors(self.run.setup, self.index, self.length)
        return [sum(int(inputs[party][place]) for party in self.survivors) for place in range(self.length)]


def _present(present, able):
    return sorted(able if present is None else set(present) & set(able))
