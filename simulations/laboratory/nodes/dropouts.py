r"""Hospitals that fail at random in each phase: how many runs succeed, and what the failures cost in these runs.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.nodes.dropouts \
        [--parties 10 50] [--rates 0.01 0.05 0.2] [--spares 0 0.1 0.3] [--retries 0 1 3] [--runs 50]

Coordinator and parties run the real code, over a grid in this process. A run has two queries of votes, which make nine
phases with `secagg=malicious`. In each phase each hospital fails with the same probability. A failed hospital is `away`
only for that phase, like a hospital that answers after `federation.timeout`, or it is `gone` for the rest of the run. A
phase in which a hospital is missing lasts until the timeout, so the loss is counted in such waits, and in repeated
phases.
"""

import argparse
import itertools
import logging
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Message

from client.admission import Terms
from client.app import relay
from client.guard import Limits
from client.records import embed
from client.service import PartyService
from common.domain import PartyId, Record
from common.errors import DropoutError
from common.ledger.ledger import Ledger
from common.messages import Parcel
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.votes import Votes, VotesSpec
from common.rng import secure_bytes
from common.secagg.identity import Identity, Roster
from server.domain import Membership, PrivacyTarget, Task
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.federation.network import FlowerNetwork
from server.methods.wasp import Wasp
from server.planning.make_plan import make_plan
from server.settings.schema import Secagg
from simulations.federation.local_grid import LocalGrid
from simulations.federation.shared import Shared
from simulations.laboratory.nodes.cost import phases

KINDS = ("away", "gone")
QUERIES = 2
_LABELS = ("first", "second")
_CORRUPT = 0.3
"""Fraction of corrupt parties that a plan must withstand by the default limits of a hospital."""


class Ending(NamedTuple):
    """The end of a run: whether it was complete, and the numbers of phases with a missing reply and of all phases."""

    whole: bool
    waits: int
    phases: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line for each combination of the options' values."""
    parser = argparse.ArgumentParser(prog="dropouts", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parties", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.05, 0.2])
    parser.add_argument("--spares", type=float, nargs="+", default=[0.0, 0.1, 0.3])
    parser.add_argument("--retries", type=int, nargs="+", default=[0, 1, 3])
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args(arguments)
    sys.stdout.write("parties  kind  rate  max_dropouts  retries  whole   waits  phases again\n")
    cases = itertools.product(options.parties, KINDS, options.rates, options.spares, options.retries)
    for parties, kind, rate, spare, retries in cases:
        dropouts = round(spare * parties)
        endings = [
            ended(
                Faults(parties, rate, random.Random(seed), lasting=kind == "gone"),  # noqa: S311
                dropouts=dropouts,
                retries=retries,
            )
            for seed in range(options.runs)
        ]
        sys.stdout.write(f"{parties:7}{kind:>6}{rate:6.0%}{dropouts:14}{retries:9}{_summary(endings)}\n")
        sys.stdout.flush()
    return 0


def _summary(endings: Sequence[Ending]) -> str:
    """Return the fraction of complete runs, and the mean numbers of waits and of repeated phases in them, as text."""
    whole = [ending for ending in endings if ending.whole]
    share = f"{len(whole) / len(endings):7.0%}"
    if not whole:
        return share
    again = statistics.mean(ending.phases for ending in whole) - phases(QUERIES)
    return f"{share}{statistics.mean(ending.waits for ending in whole):8.1f}{again:8.1f}"


class Faults:
    """Random failures of parties in each phase, with counts of all phases and of the phases that lacked a reply.

    Args:
        parties: Number of parties.
        rate: Probability that a party fails in a phase.
        draws: Random generator for the failures.
        lasting: Whether a failed party stays away until the end of the run.
    """

    def __init__(self, parties: int, rate: float, draws: random.Random, *, lasting: bool) -> None:
        self.parties, self.phases, self.waits = parties, 0, 0
        self._rate, self._draws, self._lasting = rate, draws, lasting
        self._away: set[int] = set()

    def begin(self) -> None:
        """Draw the failures of a new phase."""
        self.phases += 1
        fail = {party for party in range(self.parties) if self._draws.random() < self._rate}
        self._away = self._away | fail if self._lasting else fail

    def deliver(self, partition: int, message: Message) -> Iterable[Message]:
        """Return the message, or nothing if its party is away; this is the `on_request` of `LocalGrid`."""
        return () if partition in self._away else (message,)


class _Watched(FlowerNetwork):
    """A network that notifies `Faults` when a phase begins, and counts the phases in which a reply is missing."""

    def __init__(self, grid: LocalGrid, faults: Faults) -> None:
        super().__init__(grid, timeout=0)
        self._faults = faults

    def join(self, parcel: Parcel, parties: int, *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        self._faults.begin()
        return self._counted(super().join(parcel, parties, computing=computing), parties)

    def exchange(self, parcels: Mapping[PartyId, Parcel], *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        self._faults.begin()
        return self._counted(super().exchange(parcels, computing=computing), len(parcels))

    def _counted(self, replies: dict[PartyId, Parcel], asked: int) -> dict[PartyId, Parcel]:
        self._faults.waits += len(replies) < asked
        return replies


def ended(faults: Faults, *, dropouts: int, retries: int) -> Ending:
    """Make one run of two queries with these faults; return how it ended."""
    encoder = Encoder.hashed_ngrams(dimensions=32, bits=10)
    identities = {party: Identity(secure_bytes(32)) for party in range(faults.parties)}
    roster = Roster({party: identity.public for party, identity in identities.items()})
    plan = plan_of(faults.parties, dropouts, encoder, roster)
    limits = Limits(max_epsilon=math.inf, unsafe_no_noise=True, lifetime_epsilon=None, corrupt=_CORRUPT)
    shared = Shared()
    with tempfile.TemporaryDirectory() as folder:
        services = [
            PartyService(
                party=party,
                private=embed([Record(f"record of party {party}", _LABELS[party % 2])], encoder),
                declared=1,
                terms=partial(Terms, limits=limits),
                ledger=Ledger(Path(folder) / f"{party}.db", durable=False),
                identity=identity,
                roster=roster,
                compute=shared,
            )
            for party, identity in identities.items()
        ]
        client_app = relay(lambda context: services[int(context.node_config["partition-id"])])
        federation = Federation(
            network=_Watched(LocalGrid(client_app, faults.parties, on_request=faults.deliver), faults),
            plan=plan,
            run="dropouts",
            checkpoint=Checkpoint(Path(folder) / "state"),
            ledger=Ledger(Path(folder) / "coordinator.db", durable=False),
            roster=roster,
            retries=retries,
        )
        spec = plan.queries[0].spec
        assert isinstance(spec, VotesSpec)
        try:
            federation.open()
            for number in range(QUERIES):
                # Another question each time: one that was opened is opened over no other hospitals.
                vectors = encoder.encode([f"candidate {number} {place}" for place in range(4)])
                query = Votes(spec=spec, vectors=vectors, labels=np.arange(4, dtype=np.int32) % 2)
                federation.ask(plan.queries[0].name, number, query)
        except DropoutError:
            return Ending(whole=False, waits=faults.waits, phases=faults.phases)
        federation.close()
    return Ending(whole=True, waits=faults.waits, phases=faults.phases)


def plan_of(parties: int, dropouts: int, encoder: Encoder, roster: Roster) -> Plan:
    """Return a plan of WASP with two queries."""
    method: Any = Wasp(rounds=QUERIES + 1, top=2)
    return make_plan(
        method,
        task=Task(name="dropouts", kind="note", labels=dict.fromkeys(_LABELS, "")),
        encoder=encoder.digest,
        target=PrivacyTarget(epsilon=4.0),
        membership=Membership(parties=parties, max_dropouts=dropouts),
        roster=roster.digest.hex(),
        secagg=Secagg(mode="malicious", corrupt=_CORRUPT, full_graph_up_to=128),
    )


if __name__ == "__main__":
    logging.disable()  # one line for each hospital that fails
    sys.exit(main())
