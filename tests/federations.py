"""Tiny federations of real parties, for tests: `make(parties=3, epsilon=4)`."""

import numpy as np

from client.app import relay
from client.guard import Limits
from client.service import PartyService
from client.votes import contribution
from common.domain import Record
from common.embedding import Encoder
from common.privacy.ledger import Ledger
from common.privacy.plan import calibrate
from common.queries import Votes, VotesSpec
from common.secagg.identity import Identity, Roster
from server.ask import Federation
from server.checkpoint import Checkpoint
from server.network import FlowerNetwork
from simulations.local_grid import LocalGrid

LABELS = ("a", "b")
CANARY = "zyxcanaryzyx"
ENCODER = Encoder.embedded(dimensions=32, bits=10)
OPEN = Limits(max_epsilon=float("inf"), max_delta=0.5, max_top=20, unsafe_no_noise=True)


def records(party, count=5):
    return [Record(f"{CANARY}{party} note {party * 31 + i} of {LABELS[i % 2]}", LABELS[i % 2]) for i in range(count)]


def plan(parties=3, **changes):
    settings = {
        "method": "test",
        "labels": LABELS,
        "encoder": ENCODER.digest,
        "parties": parties,
        "max_dropouts": 0,
        "colluders": 0,
        "threshold": parties // 2 + 1 if parties > 1 else 1,
        "secure": parties > 1,
        "epsilon": 4.0,
        "delta": 1e-5,
        "unit": "sample",
        "name": "votes",
        "spec": VotesSpec(top=4),
        "times": 2,
    }
    return calibrate(**(settings | changes))


def query(seed=0, candidates=12, top=4, max_records=1):
    texts = [f"candidate {seed} {i} {'xyz'[i % 3]}" for i in range(candidates)]
    labels = np.array([i % 2 for i in range(candidates)], dtype=np.int32)
    return Votes(spec=VotesSpec(top=top, max_records=max_records), vectors=ENCODER.encode(texts), labels=labels)


IDENTITIES = {party: Identity(bytes([party + 1]) * 32) for party in range(5)}


def roster(parties):
    return Roster({party: IDENTITIES[party].public for party in range(parties)})


def service(folder, party, private=None, limits=OPEN, known=None):
    return PartyService(
        party=party,
        private=records(party) if private is None else private,
        encoder=ENCODER,
        limits=limits,
        ledger=Ledger(folder / f"party-{party}.db"),
        identity=IDENTITIES[party] if known else None,
        roster=known,
    )


def federation(folder, services, agreed, *, run="run", known=None, **faults):
    grid = LocalGrid(relay(lambda context: services[context.node_config["partition-id"]]), len(services), **faults)
    return Federation(
        network=FlowerNetwork(grid, timeout=0),
        plan=agreed,
        run=run,
        checkpoint=Checkpoint(folder / "state"),
        ledger=Ledger(folder / "coordinator.db"),
        roster=known,
    )


def true_counts(asked, private):
    """What a party with these records contributes before noise."""
    numbers = np.array([LABELS.index(record.label) for record in private], dtype=np.int32)
    return contribution(asked, ENCODER.encode([record.text for record in private]), numbers)
