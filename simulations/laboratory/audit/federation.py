"""The pipeline under audit: federations of real parties in this process, and hooks to record or break their noise."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from client import answer, records
from client.admission import HospitalTerms
from client.app import relay
from client.guard import Limits
from client.service import PartyService
from common import rng
from common.domain import Record
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy.samplers import discrete_gaussian
from common.queries import closed_set
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.federation.network import FlowerNetwork
from server.planning.calibration import calibrate
from simulations.federation.local_grid import LocalGrid

DELTA = 1e-5
AXES = 32


class Axes(Encoder):
    """An encoder for orthogonal canaries: each text is the index of an axis; "7" becomes the unit vector e_7."""

    def __init__(self) -> None:
        """Create an encoder that loads no model."""

    digest = "0" * 64

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of texts, (texts, 32) float32."""
        return np.eye(AXES, dtype=np.float32)[[int(text) for text in texts]].reshape(-1, AXES)


class Share(NamedTuple):
    """The arguments of one call to a noise sampler: its name, scale, number of shares, number of draws, and key."""

    sampler: str
    scale: float
    shares: int
    size: int
    key: bytes


def plan_of(
    epsilon: float,
    queries: tuple[PlannedQuery, ...],
    *,
    labels: tuple[str, ...],
    parties: int,
    secure: bool = True,
    max_dropouts: int = 0,
    colluders: int = 0,
) -> Plan:
    """Return a plan with these queries; their scales are calibrated to epsilon unless the first query has a scale."""
    draft = Plan(
        method="audit",
        labels=labels,
        encoder=Axes.digest,
        parties=parties,
        max_dropouts=max_dropouts,
        colluders=colluders,
        threshold=parties // 2 + 1 if secure else 1,
        secure=secure,
        degree=parties - 1 if secure else 0,
        corrupt=colluders if secure else 0,
        epsilon=math.inf,
        delta=DELTA,
        unit="sample",
        queries=queries,
    )
    return replace(draft, epsilon=epsilon) if queries[0].scale else calibrate(draft, epsilon)


def ask(
    plan: Plan, questions: Sequence[tuple[str, closed_set.Query]], private: Sequence[Sequence[Record]]
) -> list[NDArray[np.int64]]:
    """Ask new parties with these records the questions, each paired with its query's name; return the answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        limits = Limits(
            max_epsilon=1e3,
            lifetime_epsilon=None,
            min_survivors=1,
            malicious_coordinator=False,
            queries=closed_set.PROVEN,
        )
        services = [
            PartyService(
                party=party,
                private=records.embed_records(party_records, Axes()),
                declared=len(party_records),
                terms=lambda: HospitalTerms(limits=limits),
                ledger=Ledger(folder / f"{party}.db"),
            )
            for party, party_records in enumerate(private)
        ]
        grid = LocalGrid(relay(lambda context: services[int(context.node_config["partition-id"])]), len(services))
        federation = Federation(
            network=FlowerNetwork(grid, timeout=0),
            plan=plan,
            run="audit",
            checkpoint=Checkpoint(folder / "state"),
            ledger=Ledger(folder / "coordinator.db"),
        )
        federation.open()
        nth: dict[str, int] = {}
        answers = []
        for query, question in questions:
            answers.append(federation.ask(query, nth.setdefault(query, 0), question).values)
            nth[query] += 1
        federation.close()
        return answers


@contextmanager
def half_of_the_noise() -> Iterator[None]:
    """Make each party draw its Gaussian share at half the scale, a fault that the audit has to find."""
    with mock.patch.object(
        answer, "discrete_gaussian", lambda sigma, size, key: discrete_gaussian(sigma / 2, size, key)
    ):
        yield


@contextmanager
def recorded_noise() -> Iterator[tuple[list[Share], list[bytes]]]:
    """Make the samplers return 1 for each coordinate; yield lists of the calls to them and of the entropy drawn."""
    calls: list[Share] = []
    entropy: list[bytes] = []

    def sampler(name: str) -> Any:
        def draw(scale: float, size: int, key: bytes, *, shares: int = 1) -> NDArray[np.int64]:
            calls.append(Share(name, scale, shares, size, key))
            return np.ones(size, dtype=np.int64)

        return draw

    def secure_bytes(count: int) -> bytes:
        entropy.append(rng.secure_bytes(count))
        return entropy[-1]

    samplers = {name: sampler(name) for name in ("discrete_gaussian", "discrete_laplace")}
    with mock.patch.multiple(answer, secure_bytes=secure_bytes, **samplers):
        yield calls, entropy
