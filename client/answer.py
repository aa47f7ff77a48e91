"""One private answer, end to end: the mirror of `server/federation/ask.py`.

1. Check that the query is the planned one.
2. Reserve: within this party's lifetime limits its charge is on disk before a private record is touched, and the
   answers before it are closed.
3. Units: at user level so many records of each user; of a subsample, those that its secret key draws.
4. Contribute: integer counts from these records alone.
5. Bound: no count exceeds what the ring was planned for.
6. Noise: this party's one share, from the operating system's entropy; or the whole of it, inside the party, and there
   by what writes texts (`client/writers/base.py`).
7. Keep: the noised answer is on disk before it leaves.

What leaves afterwards is counts + noise, masked under secure aggregation (`client/secagg.py`), or an answer of this
party's own that needs no masks.

A round that was interrupted may be asked again under its number. It then gets the answer that was kept, to the last
bit: the coordinator learns nothing new and nothing is paid, also if the records have changed since. Fresh noise would
be a second look at the same records; the same noise over changed records would show what changed.

A further attempt has a number of its own, with fresh noise and a charge of its own, if the plan has paid for it.

The answer is kept until the next query of the run, or the run's end, is asked for. An honest coordinator asks for
either only once this query's total is on its own disk, from where it reads it ever after; so wherever it crashes, what
it asks again is never closed here, and what is closed here it never asks again. A party that was away when the next
query was asked keeps the answer until it answers one, or until the end.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from client.contributions import contribute, histograms, seed_choices
from client.guard import Limits
from client.records import EmbeddedRecords
from client.session import RefusalError
from client.writers.base import PartyWriter
from common.errors import RefusedError
from common.ledger.ledger import Ledger
from common.messages import Reason
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import mechanisms
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.queries import text_codec
from common.queries.closed_set import Query, Summed, digest
from common.queries.correct_count import CorrectCount
from common.queries.in_party import LengthRange, SeedChoice
from common.queries.texts import Texts
from common.queries.votes import Votes
from common.rng import secure_bytes

_UNSEEN = 2.0**-40
"""Scale of noise that is none: inside a party it shows with probability below exp(-2^19)."""

LARGEST_ANSWER = 2**24
LARGEST_CHOICE = 2**30
"""Coordinates, and utilities of a seed choice: a question must not keep a party busy for hours."""


def answer(
    query: Query,
    *,
    run: str,
    index: int,
    plan: Plan,
    records: EmbeddedRecords,
    ledger: Ledger,
    limits: Limits,
    data_set: str,
    encoder: Encoder,
    writers: Mapping[str, PartyWriter],
) -> NDArray[np.int64]:
    """This party's noised answer.

    Args:
        query: What is asked.
        run: Identity of the run.
        index: Number of the attempt in the plan.
        plan: The agreed plan.
        records: This party's private records.
        ledger: This party's own ledger.
        limits: This party's own limits.
        data_set: What the ledger calls the records.
        encoder: The agreed one.
        writers: By kind of query.

    Returns:
        (length,): integer counts plus noise, in grid units; or what a mechanism inside the party chose.

    Raises:
        RefusalError: The query is not the planned one, or the lifetime limits leave no room for it.
        RefusedError: The ledger holds another query at this place, or has closed it.
        LedgerError: The ledger was edited, or cannot be written.
    """
    planned = plan.query(index)
    _check(query, plan, planned, records)

    entry = ledger.reserve(
        run=run,
        index=index,
        plan_digest=plan.digest(),
        query_digest=digest(query),
        release=plan.answer_release(index, limits.unknown_shares(plan)),
        data_set=data_set,
        allow=limits.allow,
    )
    close(ledger, run, before=index)
    if entry.committed:
        raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
    if entry.answer is not None:
        return _words(entry.answer)

    units = records.limited(planned.spec.max_records)
    if isinstance(query, Texts):  # what fine-tunes draws a subsample for each step itself
        written = writers[query.spec.kind].write(
            planned, units, labels=plan.labels, encoder=encoder, key=secure_bytes(32)
        )
        noised = text_codec.encode(written, query.spec.texts, query.spec.longest)
    else:
        if draw := plan.draw(index):
            units = units.sampled(planned.rate, ledger.sample_key(run, draw, secure_bytes(32)))
        noised = _noised(query, plan, planned, units)
    if planned.scale == 0 and planned.summed:
        return noised
    return _words(ledger.keep(run, index, noised.astype("<i8").tobytes()))


def close(ledger: Ledger, run: str, *, before: int) -> None:
    """Erase the answers to the run's queries below that number: they can never be given again."""
    for entry in ledger.entries(run):
        if entry.index < before and not entry.committed:
            ledger.commit(run, entry.index)


def _noised(
    query: Summed | LengthRange | SeedChoice, plan: Plan, planned: PlannedQuery, units: EmbeddedRecords
) -> NDArray[np.int64]:
    key = secure_bytes(32)
    match query:
        case LengthRange():
            lengths, scale = histograms.lengths(units), planned.scale or _UNSEEN
            return np.array(mechanisms.length_range(lengths, query.spec.cap, scale, key), dtype=np.int64)
        case SeedChoice():
            replacement = planned.mechanism == "exponential"
            return seed_choices.choose(query, units, planned.scale or _UNSEEN, key, replacement=replacement)
    counts = contribute.contribution(query, units)

    # Cutting off each count moves no two answers apart. Leaving out records beyond a number would: with one record gone
    # another takes its place. And a refusal would tell the coordinator how many records there are.
    most = query.spec.largest * plan.max_records_per_party
    counts = np.clip(counts, -most, most)

    if planned.scale == 0:
        return counts
    if planned.mechanism == "laplace":
        return counts + discrete_laplace(planned.scale, len(counts), key, shares=plan.shares(planned))
    return counts + discrete_gaussian(plan.share_sigma(planned), len(counts), key)


def _check(query: Query, plan: Plan, planned: PlannedQuery, records: EmbeddedRecords) -> None:
    """The query is the planned one and fits the plan's labels and encoder."""
    if query.spec != planned.spec or (isinstance(query, Votes | SeedChoice) and query.labels.max() >= len(plan.labels)):
        raise RefusalError(Reason.UNPLANNED, "query", expected=planned.spec, got=query.spec)
    if query.length > LARGEST_ANSWER or (
        isinstance(query, SeedChoice) and query.length * len(query.vectors) > LARGEST_CHOICE
    ):
        raise RefusalError(Reason.OVER_LIMIT, "coordinates of the answer", expected=f"at most {LARGEST_ANSWER}")
    dimensions = records.vectors.shape[1]
    match query:
        case Votes() | SeedChoice():
            got = query.vectors.shape[1]
        case CorrectCount():
            got = query.weights.shape[1]
            if len(query.weights) != len(plan.labels):
                raise RefusalError(Reason.UNPLANNED, "labels", expected=len(plan.labels), got=len(query.weights))
        case _:
            return
    if got != dimensions:
        raise RefusalError(Reason.UNPLANNED, "dimensions", expected=dimensions, got=got)


def _words(answer: bytes) -> NDArray[np.int64]:
    return np.frombuffer(answer, dtype="<i8").astype(np.int64)
