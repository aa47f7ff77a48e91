"""A federation in which the coordinator calls real party services directly, without Flower."""

import numpy as np

from client.admission import HospitalTerms
from client.contributions.votes import votes_of
from client.records import embed_records
from client.service import PartyService
from common import wire
from common.domain import Record
from common.ledger.ledger import Ledger
from common.queries.votes import Votes
from common.secagg.identity import Identity, Roster
from server.domain import Membership, PrivacyTarget, Task
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.methods.wasp import Wasp
from server.planning.make_plan import make_plan
from server.settings.schema import Secagg
from tests.support.federations import lenient

TASK = Task(name="t", kind="note", labels={"a": "A", "b": "B"})


class Encoder:
    digest = "e"
    runs_here = True
    dimensions = 8

    def encode(self, texts):
        vectors = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        return np.array([v / np.linalg.norm(v) for v in vectors], dtype=np.float32).reshape(-1, 8)


class Direct:
    """A network without messages on a wire; `change` may alter each reply, or drop it by returning None."""

    def __init__(self, services):
        self.services = services
        self.sent = []
        self.change = lambda party, parcel: parcel

    def join(self, parcel, parties, *, computing=0.0):
        return self.exchange(dict.fromkeys(range(parties), parcel), computing=computing)

    def exchange(self, parcels, *, computing=0.0):
        replies = {}
        for party, parcel in parcels.items():
            self.sent.append(type(wire.unpack(parcel).body).__name__)
            reply = self.change(party, self.services[party].handle(parcel))
            if reply is not None:
                replies[party] = reply
        return replies


class World:
    """Three parties and a coordinator; `coordinator()` makes a new coordinator, as after a crash."""

    def __init__(self, folder, *, secure=True, epsilon=4.0, parties=3, max_dropouts=0, limits=None, malicious=False):
        self.folder = folder
        identities = {party: Identity(bytes([party]) * 32) if malicious else None for party in range(parties)}
        self.roster = Roster({party: identity.public for party, identity in identities.items()}) if malicious else None
        mode = "malicious" if malicious else "semi_honest" if secure else "none"
        self.plan = make_plan(
            Wasp(rounds=3, top=4),
            task=TASK,
            encoder="e",
            target=PrivacyTarget(epsilon=epsilon),
            membership=Membership(parties=parties, max_dropouts=max_dropouts),
            secagg=Secagg(mode=mode, corrupt=0.3 if malicious else 0.0),
            roster=self.roster.digest.hex() if malicious else "",
        )
        self.records = [[Record(f"r{party}{i}", "ab"[i % 2]) for i in range(6)] for party in range(parties)]
        services = {
            party: PartyService(
                party=party,
                private=embed_records(self.records[party], Encoder()),
                declared=len(self.records[party]),
                terms=lambda: HospitalTerms(limits=limits or lenient(max_epsilon=float("inf"), unsafe_no_noise=True)),
                ledger=Ledger(folder / f"{party}.db"),
                identity=identities[party],
                roster=self.roster,
            )
            for party in range(parties)
        }
        self.network = Direct(services)
        self.query = Votes(
            spec=self.plan.query(0).spec,
            vectors=Encoder().encode([f"c{i}" for i in range(10)]),
            labels=np.arange(10, dtype=np.int32) % 2,
        )

    def coordinator(self):
        federation = Federation(
            network=self.network,
            plan=self.plan,
            run="run",
            checkpoint=Checkpoint(self.folder / "state"),
            ledger=Ledger(self.folder / "ledger.db"),
            roster=self.roster,
        )
        federation.open()
        self.network.sent.clear()
        return federation

    def truth(self, parties):
        labels = list(TASK.labels)
        return sum(
            votes_of(
                self.query,
                Encoder().encode([record.text for record in self.records[party]]),
                np.array([labels.index(record.label) for record in self.records[party]], dtype=np.int32),
            )
            for party in parties
        )
