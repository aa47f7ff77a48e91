r"""One federated query with up to a thousand parties in one process: time, memory and bytes, by component.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.parties \
        [--parties 10 100 300 1000] [--modes semi_honest malicious] [--candidates 6000] [--dimensions 384] [--plot FILE]

A round has all steps of a run for one query of votes: the parties open the run, exchange keys and shares, then vote and
unmask. Each party has six records with different labels, out of ten. The services are those of hospitals; the messages
are serialised as for a network. The parts are CPU seconds of this process: those of the parties, by type of reply, and
`elsewhere`, which comprises the coordinator and the messages. Peak memory is that of the process so far; the process
runs its federations in ascending order of size.
"""

import argparse
import math
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from client.admission import Terms
from client.app import relay
from client.guard import Limits
from client.records import embed
from client.service import PartyService
from common import wire
from common.domain import PartyId, Record
from common.ledger.ledger import Ledger
from common.messages import Parcel
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries import closed_set
from common.queries.votes import Votes, VotesSpec
from common.rng import secure_bytes
from common.secagg.identity import Identity, Roster
from server.domain import Membership, PrivacyTarget, Task
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.federation.network import FlowerNetwork, Network
from server.methods.wasp import Wasp
from server.planning.make_plan import make_plan
from server.report.plots import Lines, lines
from server.settings.schema import Secagg
from simulations.federation.local_grid import LocalGrid
from simulations.federation.shared import Shared
from simulations.laboratory import pictures
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark

_LABELS = tuple(f"label {number}" for number in range(10))
_PARTS = ("Opened", "Shares", "Answer", "Agreement", "UnmaskShares", "Closed", "elsewhere")
_RECORDS = 6
_WORKERS = os.cpu_count() or 1


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each federation; return the ratios."""
    parser = argparse.ArgumentParser(prog="bench_parties", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parties", type=int, nargs="+", default=[10, 100, 300, 1000])
    parser.add_argument("--modes", nargs="+", default=["semi_honest", "malicious"])
    parser.add_argument("--candidates", type=int, default=6000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth, as SVG")
    options = parser.parse_args(arguments)
    encoder = Encoder.hashed_ngrams(dimensions=options.dimensions, bits=12)
    head = "".join(f"{name:>13}" for name in _PARTS)
    sys.stdout.write(f"{'mode':12}{'parties':>8}{'wall s':>8}{'CPU s':>8}{head}{'KB a party':>12}{'MiB':>7}\n")
    sizes = sorted(set(options.parties))
    if options.plot and len(sizes) < 2:
        parser.error("--plot: expected two numbers of parties")
    costs: dict[str, list[Cost]] = {mode: [] for mode in options.modes}
    for size in sizes:
        for mode, line in costs.items():
            line.append(_line(size, mode, encoder, options.candidates))
    if options.plot:
        options.plot.write_text(picture(sizes, costs), encoding="utf-8")
    return [
        Ratio(
            name=f"CPU a party, {sizes[-1]} parties, {mode}",
            to=f"{sizes[0]} parties",
            value=(line[-1].cpu / sizes[-1]) / (line[0].cpu / sizes[0]),
        )
        for mode, line in costs.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one query to a federation.

    Attributes:
        wall: Wall-clock seconds.
        cpu: CPU time of the process, in seconds.
        parts: CPU time of all parties, in seconds, keyed by type of reply; `elsewhere` is the CPU time spent outside
            the parties.
        kilobytes: Bytes that a party sends and receives, in thousands.
        question: Bytes of the question, with its arrays, in thousands; a part of `kilobytes`.
        mebibytes: Peak memory of the process so far.
    """

    wall: float
    cpu: float
    parts: Mapping[str, float]
    kilobytes: float
    question: float
    mebibytes: float


def _line(parties: int, mode: str, encoder: Encoder, candidates: int) -> Cost:
    cost = measure(parties, mode, encoder, candidates)
    parts = "".join(f"{cost.parts.get(name, 0.0):13.2f}" for name in _PARTS)
    sizes = f"{cost.kilobytes:12.0f}{cost.mebibytes:7.0f}"
    sys.stdout.write(f"{mode:12}{parties:8}{cost.wall:8.1f}{cost.cpu:8.1f}{parts}{sizes}\n")
    sys.stdout.flush()
    return cost


def measure(parties: int, mode: str, encoder: Encoder, candidates: int) -> Cost:
    """Return the cost of one query of votes to a new federation: opening, key exchange, voting and unmasking."""
    identities = {party: Identity(secure_bytes(32)) for party in range(parties)} if mode == "malicious" else {}
    roster = Roster({party: identity.public for party, identity in identities.items()}) if identities else None
    plan = plan_of(parties, mode, encoder, roster)
    seconds: dict[str, float] = defaultdict(float)
    shared = Shared()
    with tempfile.TemporaryDirectory() as folder:
        services = {
            party: PartyService(
                party=party,
                private=embed(_records(party), encoder),
                declared=len(_records(party)),
                terms=partial(Terms, limits=_limits(mode)),
                ledger=Ledger(Path(folder) / f"{party:04}.db", durable=False),
                identity=identities.get(party),
                roster=roster,
                compute=shared,
            )
            for party in range(parties)
        }
        timed = {party: _TimedParty(service) for party, service in services.items()}
        grid = LocalGrid(
            relay(lambda context: timed[int(context.node_config["partition-id"])]), parties, workers=_WORKERS
        )
        federation = Federation(
            network=_TimedNetwork(FlowerNetwork(grid, timeout=0), timed.values(), seconds),
            plan=plan,
            run="benchmark",
            checkpoint=Checkpoint(Path(folder) / "state"),
            ledger=Ledger(Path(folder) / "coordinator.db"),
            roster=roster,
            retries=0,
        )
        query = _query(plan, encoder, candidates)
        wall, cpu = time.perf_counter(), time.process_time()
        federation.open()
        federation.ask(plan.queries[0].name, 0, query)
        federation.close()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Cost(
        wall=wall,
        cpu=cpu,
        parts={**seconds, "elsewhere": cpu - sum(seconds.values())},
        kilobytes=(grid.bytes_sent + grid.bytes_received) / parties / 1000,
        question=len(closed_set.to_bytes(query)) / 1000,
        mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def picture(sizes: Sequence[int], costs: Mapping[str, Sequence[Cost]]) -> str:
    """Return plots of each mode's cost by number of parties, as SVG.

    Wall-clock time is omitted, since it depends on other load.
    """
    parts = [
        _growth(
            f"CPU time of one party, ms: {mode}",
            sizes,
            {"all": [1000 * cost.cpu / size for size, cost in zip(sizes, line, strict=True)]}
            | {
                name: [_of_each(cost.parts.get(name), size) for size, cost in zip(sizes, line, strict=True)]
                for name in _PARTS
            },
        )
        for mode, line in costs.items()
    ]
    totals = [
        _growth("Peak memory, MiB", sizes, {mode: [cost.mebibytes for cost in line] for mode, line in costs.items()}),
        _growth(
            "Traffic of one party without the question, KB",
            sizes,
            {mode: [cost.kilobytes - cost.question for cost in line] for mode, line in costs.items()},
        ),
    ]
    return pictures.picture("One query: cost by number of parties", [parts, totals])


def _growth(title: str, sizes: Sequence[int], values: Mapping[str, Sequence[float | None]]) -> Lines:
    plot = lines(title, title, note="", x_name="parties", places=sizes, values=values, logarithmic=True)
    assert plot  # every federation costs something
    return plot


def _of_each(seconds: float | None, parties: int) -> float | None:
    """Return the total `seconds` in milliseconds per party; return None if there is no measurement."""
    return None if seconds is None else 1000 * seconds / parties


def plan_of(parties: int, mode: str, encoder: Encoder, roster: Roster | None) -> Plan:
    """Return a plan of WASP with one query."""
    method: Any = Wasp(rounds=2)
    return make_plan(
        method,
        task=Task(name="benchmark", kind="note", labels=dict.fromkeys(_LABELS, "")),
        encoder=encoder.digest,
        target=PrivacyTarget(epsilon=4.0),
        membership=Membership(parties=parties),
        roster=roster.digest.hex() if roster else "",
        secagg=Secagg(mode=mode, security_bits=80 if roster else 40),
    )


class _TimedParty:
    """A party with a record of its CPU time, in seconds."""

    def __init__(self, service: PartyService) -> None:
        self._service = service
        self.seconds = 0.0

    def handle(self, parcel: Parcel) -> Parcel:
        start = time.thread_time()
        reply = self._service.handle(parcel)
        self.seconds += time.thread_time() - start
        return reply


class _TimedNetwork:
    """A network that adds up the parties' CPU time, in seconds, after each exchange, by type of reply."""

    def __init__(self, network: Network, parties: Collection[_TimedParty], seconds: dict[str, float]) -> None:
        self._network, self._parties, self._seconds = network, parties, seconds

    def join(self, parcel: Parcel, parties: int, *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        return self._counted(self._network.join(parcel, parties, computing=computing))

    def exchange(self, parcels: Mapping[PartyId, Parcel], *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        return self._counted(self._network.exchange(parcels, computing=computing))

    def _counted(self, replies: dict[PartyId, Parcel]) -> dict[PartyId, Parcel]:
        kind = type(wire.unpack(next(iter(replies.values()))).body).__name__
        for party in self._parties:
            self._seconds[kind] += party.seconds
            party.seconds = 0.0
        return replies


def _limits(mode: str) -> Limits:
    return Limits(
        max_epsilon=math.inf,
        unsafe_no_noise=True,
        lifetime_epsilon=None,
        malicious_coordinator=mode == "malicious",
        corrupt=0.3,
        security_bits=40,
    )


def _records(party: int) -> list[Record]:
    return [Record(f"record {number} of party {party}", _LABELS[(party + number) % 10]) for number in range(_RECORDS)]


def _query(plan: Plan, encoder: Encoder, candidates: int) -> Votes:
    vectors = encoder.encode([f"candidate number {number}" for number in range(candidates)])
    spec = plan.queries[0].spec
    assert isinstance(spec, VotesSpec)
    return Votes(spec=spec, vectors=vectors, labels=np.arange(candidates, dtype=np.int32) % len(_LABELS))


if __name__ == "__main__":
    benchmark(main)
