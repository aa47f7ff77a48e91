"""How much the time of an answer reveals about one record, with and without the schedule for replies.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.audit.timing [--answers 60] [--delay 0.1]

A coordinator that knows a record sends candidates that are equally far from it. The votes of that record must then be
computed exactly, which takes longer. Two party services differ only in that record; both run with the schedule
(`client/schedule.py`) and without it. Their answers are timed where the coordinator's messages arrive at the machine,
over the same sockets and wire format as in a deployment, on loopback, without and with a delay each way. The table has
medians, and the fraction of pairs of answers, one from each service, in which the service with the record took longer:
0.5 reveals nothing, and 1 everything.

A second table shows, for each kind of question, the fraction of its scheduled time that a party with the declared
number of records needs to compute its contribution. The records are the slowest possible. For votes, all of them are
equally far from the candidates. For a vocabulary, each word of a text is the first of a longest possible term that the
text does not continue. If terms are looked up, the slowest of three kinds of texts count: the texts just described,
texts of combining marks, or texts of characters that normalise to several characters. For choices of seeds, one of few
candidates is as near as can be to all records and the others are as far as can be, at a small scale of the noise
(`timed_questions.py`). If the fraction is above 1, a reply would be late, and its time would reveal the large number of
records.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc
import numpy as np
from numpy.typing import NDArray

from client.admission import HospitalTerms
from client.contributions import counts, seed_choices
from client.contributions.contribute import contribution
from client.guard import Limits
from client.records import EmbeddedRecords, PartyRecords
from client.schedule import Schedule
from client.service import PartyService
from common import messages as m
from common import wire
from common.domain import Record
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import mechanisms
from common.queries.histograms import Vocabulary
from common.queries.length_range import LengthRange
from common.queries.page import Query
from common.queries.questionnaire import Questionnaire
from common.queries.seed_choice import SeedChoice
from common.queries.sketch import Sketch
from common.queries.terms import READ_CHARACTERS, READ_WORDS
from common.queries.votes import Votes, VotesSpec
from common.schedule import seconds
from simulations.laboratory.audit.federation import Axes, plan_of
from simulations.laboratory.audit.timed_questions import DIMENSIONS, KNOWN, questions, slowest_choices, unit
from simulations.laboratory.output import show

Call = Callable[[m.Parcel], m.Parcel]

NASTY = ("\u0301\u0323", "\u0301\u0323 ", "\ufdfa", "\u3317")
"""Strings that take long to normalise when repeated: combining marks, and characters that become 18 or 5 others."""
CANDIDATES, RECORDS, DECLARED = 3000, 100, 200


class _Fixed(Encoder):
    """An encoder that embeds nothing, since this module makes the vectors itself."""

    digest = Axes.digest
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Create an encoder that loads no model."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; return exit code 1 if the schedule does not hide the record, or if a reply would be late."""
    parser = argparse.ArgumentParser(prog="timing", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--answers", type=int, default=60, help="of each service, for each line")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds of a round trip on the slow line")
    options = parser.parse_args(arguments)
    show("schedule  round trip  without the record, ms  with it, ms  longer with it\n")
    hidden = True
    for scheduled in (False, True):
        for delay in (0.0, options.delay):
            without, beside = measure_answers(options.answers, delay=delay, scheduled=scheduled)
            longer = share_longer(without, beside)
            medians = (1e3 * statistics.median(times) for times in (without, beside))
            cells = (f"{'yes' if scheduled else 'no':8}", f"{delay:8.2f} s", *(f"{ms:20.2f}" for ms in medians))
            show(f"{'  '.join(cells)}  {longer:8.2f}\n")
            # The share of a sound schedule has a standard deviation of about sqrt(1 / (6 n)).
            hidden = hidden and (not scheduled or abs(longer - 0.5) < 5 * math.sqrt(1 / (6 * options.answers)))
    show(f"{'query':40}of its time\n")
    for kind, share in shares_of_time():
        show(f"{kind:40}{share:11.2f}\n")
        hidden = hidden and share < 1
    return 0 if hidden else 1


def shares_of_time(records: int = 1000) -> Iterator[tuple[str, float]]:
    """Yield each kind of question, and the fraction of its scheduled time that the answer takes.

    The party has the declared number of records, `records`. The time for the ledger and the noise is not included.
    """
    target, votes, others = _attack()
    rows = np.concatenate([others] * (records // RECORDS + 1))[:records]
    texts = tuple(
        f"{' '.join(f'word{(number * place) % 997}' for place in range(READ_WORDS))}" for number in range(records)
    )
    for query in (votes, *questions(others)):
        slowest = np.repeat(target, records, axis=0) if query is votes else rows
        read = (" ".join(KNOWN * (READ_WORDS // len(KNOWN) + 1)),) * records if isinstance(query, Vocabulary) else texts
        private = EmbeddedRecords(vectors=slowest, labels=np.zeros(records, dtype=np.int32), texts=read)
        repeated = [(text * (READ_CHARACTERS // len(text)),) * records for text in NASTY]
        kinds = [read, *(repeated if isinstance(query, Questionnaire | Sketch | Vocabulary) else [])]
        mechanism = query.spec.mechanisms[0]
        scale = 0.0 if mechanism in mechanisms.SUMMED else 1.0  # the time for the noise of a sum is not included
        planned = PlannedQuery(name="timed", spec=query.spec, mechanism=mechanism, scale=scale)
        yield query.spec.kind, _share(query, planned, [replace(private, texts=kind) for kind in kinds])
    for query, planned, private in slowest_choices(records):
        yield f"{len(query.vectors)} seeds, {planned.mechanism}, {planned.scale}", _share(query, planned, [private])


def _share(query: Query, planned: PlannedQuery, parties: Sequence[EmbeddedRecords]) -> float:
    """Return the fraction of the question's scheduled time that the slowest of these parties takes."""
    due = seconds(m.Ask(query), len(parties[0].texts), _plan(math.inf, planned))
    assert due is not None
    return max(_taken(query, planned, private) for private in parties) / due


def _taken(query: Query, planned: PlannedQuery, private: EmbeddedRecords) -> float:
    """Return the seconds that it takes to compute a party's contribution."""
    began = time.perf_counter()
    if isinstance(query, SeedChoice):
        replacement = planned.mechanism == "exponential"
        seed_choices.choose_seeds(query, private, planned.scale, bytes(32), replacement=replacement)
    elif isinstance(query, LengthRange):
        mechanisms.length_range(counts.lengths(private), query.spec.cap, planned.scale, bytes(32))
    else:
        contribution(query, private)
    return time.perf_counter() - began


def share_longer(without: Sequence[float], beside: Sequence[float]) -> float:
    """Return the fraction of pairs whose second value is larger, with ties as half: the area under the ROC curve."""
    difference = np.subtract.outer(np.array(beside), np.array(without))
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def measure_answers(answers: int, *, delay: float, scheduled: bool) -> tuple[list[float], list[float]]:
    """Ask a service without the record and one with it alternately; return the seconds that each answer took."""
    target, query, others = _attack()
    plan = _plan(4.0, PlannedQuery(name="votes", spec=query.spec, times=answers))
    beside = np.concatenate([others[:-1], target])
    times: tuple[list[float], list[float]] = [], []
    with tempfile.TemporaryDirectory() as folder:
        services = [
            _service(Path(folder) / f"{number}.db", vectors, scheduled=scheduled)
            for number, vectors in enumerate((others, beside))
        ]
        with _relayed_calls(services, delay) as calls:
            for call in calls:
                _sent(call, plan, m.Open(plan.to_json()), 0)
            for index in range(answers):
                for seconds, call in zip(times, calls, strict=True):
                    seconds.append(_sent(call, plan, m.Ask(query), index))
    return times


def _plan(epsilon: float, planned: PlannedQuery) -> Plan:
    """Return a plan of one party for one query, without noise if epsilon is infinite."""
    return plan_of(epsilon, (planned,), labels=("a",), parties=1, secure=False)


def _attack() -> tuple[NDArray[np.float32], Votes, NDArray[np.float32]]:
    """Return the vector of a known record, a question with candidates equally far from it, and other vectors."""
    generator = np.random.default_rng(0)
    target = unit(generator.normal(size=(1, DIMENSIONS)))
    directions = generator.normal(size=(CANDIDATES, DIMENSIONS))
    directions -= (directions @ target.T) * target
    candidates = unit(0.95 * target + math.sqrt(1 - 0.95**2) * unit(directions))
    others = unit(generator.normal(size=(RECORDS, DIMENSIONS)) + 0.5 * generator.normal(size=(1, DIMENSIONS)))
    query = Votes(spec=VotesSpec(top=8), vectors=candidates, labels=np.zeros(CANDIDATES, dtype=np.int32))
    return target, query, others


def _service(path: Path, vectors: NDArray[np.float32], *, scheduled: bool) -> PartyService:
    private = PartyRecords(
        records=tuple(Record(str(number), "a") for number in range(len(vectors))), vectors=vectors, encoder=_Fixed()
    )
    limits = Limits(lifetime_epsilon=None, min_survivors=1, malicious_coordinator=False)
    schedule = Schedule(DECLARED) if scheduled else None
    return PartyService(
        party=0,
        private=private,
        declared=DECLARED,
        terms=partial(HospitalTerms, limits=limits),
        ledger=Ledger(path),
        schedule=schedule,
    )


@contextmanager
def _relayed_calls(services: Sequence[PartyService], delay: float) -> Iterator[list[Call]]:
    """Yield functions that call the services at a common address; half of the delay passes on each way."""

    def handle(data: bytes, _: grpc.ServicerContext) -> bytes:
        time.sleep(delay / 2)
        parcel, partition = wire.unpack_parcel(data)
        reply = wire.pack_parcel(services[partition].handle(parcel), partition)
        time.sleep(delay / 2)
        return reply

    options = [("grpc.max_receive_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(2), options=options)
    method = {"Handle": grpc.unary_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("caucus.Party", method),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/caucus.Party/Handle")
            yield [partial(_called, call, number) for number in range(len(services))]
    finally:
        server.stop(None).wait()


def _called(call: Callable[[bytes], bytes], number: int, parcel: m.Parcel) -> m.Parcel:
    return wire.unpack_parcel(call(wire.pack_parcel(parcel, number)))[0]


def _sent(call: Call, plan: Plan, body: m.Request, index: int) -> float:
    """Send a message, and return the seconds until its reply arrives."""
    envelope = m.Envelope(run="timing", party=0, plan_digest=plan.digest(), index=index, body=body)
    parcel, began = wire.pack(envelope), time.perf_counter()
    reply = call(parcel)
    seconds = time.perf_counter() - began
    answer = wire.unpack(reply).body
    assert not isinstance(answer, m.Refusal), answer
    return seconds


if __name__ == "__main__":
    sys.exit(main())
