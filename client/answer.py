"""How a party answers a query, from the query's arrival to the sent answer.

The coordinator's side is `server/federation/ask.py`.

1. Check that the query is the planned one and fits the plan's labels and encoder.
2. Reserve: check that the answer's charge is within this party's lifetime limits, write the charge to disk before any
   private record is accessed, and close all earlier answers.
3. Choose the records: at user level, at most m records of each user; under subsampling, the records drawn with a secret
   key.
4. Compute the answer from these records alone, with noise from the operating system's entropy:
   - a sum (`_sum`): this party's integer counts, clipped to the planned bound, plus its share of the noise;
   - inside the party (`_inside`): the output of a mechanism that adds all of the noise;
   - texts (`_texts`): the texts of a writer that adds all of the noise (`client/writers/base.py`). A fine-tuning
     writer draws its own subsample for each training step, so nothing is drawn in step 3.
5. Store: write the noised answer to disk before it is sent.

The party then sends its answer, masked under secure aggregation (`client/secagg.py`) if it is part of a sum, and
otherwise without masks.

A coordinator may repeat an interrupted round under the same number. It then gets exactly the stored answer, so it
learns nothing new and no budget is spent, even if the records have changed since. Fresh noise would reveal more about
the same records; the same noise over changed records would reveal the change.

A further attempt has its own number, fresh noise and its own charge; the plan must provide for it.

The answer is stored until the coordinator requests the next query of the run or the end of the run. An honest
coordinator requests either of these only once this query's total is on its own disk, and from then on reads the total
from that disk. So wherever the coordinator crashes, it never repeats a query that is closed here. A party that missed
the next query stores the answer until it answers another query, or until the run ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from client.contributions import contribute, counts, seed_choices
from client.guard import Limits
from client.records import EmbeddedRecords
from client.session import RefusalError
from client.writers.base import PartyWriter
from common.errors import InternalError, ProtocolError, RefusedError
from common.ledger.ledger import Ledger
from common.messages import Reason
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import mechanisms
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.queries import text_codec
from common.queries.length_range import LengthRange
from common.queries.page import Query
from common.queries.seed_choice import SeedChoice
from common.queries.texts import Texts
from common.rng import secure_bytes

_UNSEEN = 2.0**-40
"""Noise scale of a mechanism inside a party if none is planned; it has an effect with probability below exp(-2^19)."""

_WRITING = Lock()
"""Lock of the writers, which seed torch's process-wide generators, so that simulated parties write one after another.
"""

LARGEST_ANSWER = 2**24
LARGEST_CHOICE = 2**30
"""Maximum number of coordinates in an answer (`LARGEST_ANSWER`), and of utilities in a seed choice (`LARGEST_CHOICE`),
so that no query keeps a party busy for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The attributes of a party that are the same for all answers of a run.

    Attributes:
        ledger: The party's own ledger.
        limits: The party's own limits.
        data_set: Name of the records in the ledger.
        encoder: The agreed encoder.
        writers: The party's writers of texts, keyed by kind of query.
    """

    ledger: Ledger
    limits: Limits
    data_set: str
    encoder: Encoder
    writers: Mapping[str, PartyWriter]


def answer(
    query: Query, *, digest: bytes, run: str, index: int, plan: Plan, records: EmbeddedRecords, party: Party
) -> NDArray[np.int64]:
    """Compute this party's noised answer.

    Args:
        query: The query.
        digest: The query's digest, for the ledger.
        run: ID of the run.
        index: Index of the attempt in the plan.
        plan: The agreed plan.
        records: This party's private records.
        party: The attributes that are the same for all answers of the run.

    Returns:
        (length,): integer counts plus noise, in grid units; or the output of a mechanism or writer inside the party.

    Raises:
        RefusalError: The query is not the planned one, or the lifetime limits leave no room for it.
        RefusedError: The ledger has a different query at this index, or has closed it.
        LedgerError: The ledger was edited, or cannot be written.
    """
    planned = plan.query(index)
    check_query(query, plan, planned, dimensions=records.vectors.shape[1])

    entry = party.ledger.reserve(
        run=run,
        index=index,
        plan_digest=plan.digest(),
        query_digest=digest,
        release=plan.answer_release(index, party.limits.unknown_shares(plan)),
        attempts=plan.max_attempts,
        data_set=party.data_set,
        allow=party.limits.allow,
    )
    party.ledger.commit_before(run, index)
    if entry.committed:
        raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
    if entry.answer is not None:
        return _words(entry.answer)

    units = records.limited(planned.spec.max_records, planned.spec.labels_per_record)
    if (draw := plan.draw(index)) and not isinstance(query, Texts):
        units = units.sampled(planned.rate, party.ledger.sample_key(run, draw, secure_bytes(32)))
    if isinstance(query, Texts):
        noised = _texts(query, plan, planned, units, party)
    elif planned.summed:
        noised = _sum(query, plan, planned, units)
    else:
        noised = _inside(query, planned, units)
    if planned.scale == 0 and planned.summed:
        return noised
    return _words(party.ledger.keep(run, index, noised.astype("<i8").tobytes()))


def _sum(query: Query, plan: Plan, planned: PlannedQuery, units: EmbeddedRecords) -> NDArray[np.int64]:
    """Return this party's bounded counts plus its share of the noise, in grid units."""
    key = secure_bytes(32)
    sums = contribute.contribution(query, units)

    # Clipping each count does not increase the distance of two answers. Dropping records beyond a number would: if one
    # record is removed another takes its place. And a refusal would reveal the number of records to the coordinator.
    assert planned.spec.largest is not None
    bound = planned.spec.largest * plan.max_records_per_party
    sums = np.clip(sums, -bound, bound)

    if planned.scale == 0:
        return sums
    if planned.mechanism == "laplace":
        return sums + discrete_laplace(planned.scale, len(sums), key, shares=plan.shares(planned))
    return sums + discrete_gaussian(plan.share_sigma(planned), len(sums), key)


def _inside(query: Query, planned: PlannedQuery, units: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the output of a mechanism that runs inside this party and adds all of the noise."""
    key, scale = secure_bytes(32), planned.scale or _UNSEEN
    match query:
        case LengthRange():
            lengths = counts.lengths(units)
            return np.array(mechanisms.length_range(lengths, query.spec.cap, scale, key), dtype=np.int64)
        case SeedChoice():
            replacement = planned.mechanism == "exponential"
            return seed_choices.choose_seeds(query, units, scale, key, replacement=replacement)
    raise InternalError("query inside a party", got=query.spec.kind)


def _texts(query: Texts, plan: Plan, planned: PlannedQuery, units: EmbeddedRecords, party: Party) -> NDArray[np.int64]:
    """Have this party's writer answer the query, and return the texts, encoded as integers."""
    with _WRITING:
        texts = party.writers[query.spec.kind].write(
            planned, units, labels=plan.labels, encoder=party.encoder, key=secure_bytes(32)
        )
    return text_codec.encode(texts, query.spec.texts, query.spec.longest)


def check_query(query: Query, plan: Plan, planned: PlannedQuery, *, dimensions: int) -> None:
    """Raise a RefusalError if a query differs from the planned one or does not fit the plan; use only public facts.

    Raises:
        RefusalError: The query is refused; the error has the reason.
    """
    if query.spec != planned.spec:
        raise RefusalError(Reason.UNPLANNED, "query", expected=planned.spec, got=query.spec)
    try:
        query.check(len(plan.labels), dimensions)
    except ProtocolError as error:
        raise RefusalError(Reason.UNPLANNED, error.what, expected=error.expected, got=error.got) from error
    choices = query.length * len(query.vectors) if isinstance(query, SeedChoice) else 0
    for what, number, most in (
        ("coordinates of the answer", query.length, LARGEST_ANSWER),
        ("utilities of the choices", choices, LARGEST_CHOICE),
    ):
        if number > most:
            raise RefusalError(Reason.OVER_LIMIT, what, expected=f"at most {most:,}", got=f"{number:,}")


def _words(answer: bytes) -> NDArray[np.int64]:
    return np.frombuffer(answer, dtype="<i8").astype(np.int64)
