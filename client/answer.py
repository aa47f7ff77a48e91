"""One private answer, end to end: the mirror of `server/ask.py`.

1. Check that the query is the planned one.
2. Reserve: its charge is on disk before a private record is touched, and the answers before it are closed.
3. Contribute: integer counts from this party's records alone.
4. Bound: no count exceeds what the ring was planned for.
5. Noise: this party's one share, from the operating system's entropy.
6. Keep: the noised answer is on disk before it leaves.

What leaves afterwards is counts + noise, masked under secure aggregation (`client/secagg.py`).

A round that was interrupted may be asked again. It then gets the answer that was kept, to the last bit: the coordinator
learns nothing new and nothing is paid, also if the records have changed since. Fresh noise would be a second look at
the same records; the same noise over changed records would show what changed.

The answer is kept until the next query of the run, or the run's end, is asked for. An honest coordinator asks for
either only once this query's total is on its own disk, from where it reads it ever after; so wherever it crashes, what
it asks again is never closed here, and what is closed here it never asks again. A party that was away when the next
query was asked keeps the answer until it answers one, or until the end.
"""

import numpy as np
from numpy.typing import NDArray

from client import votes
from client.records import Embedded
from client.session import RefusalError
from common.errors import RefusedError
from common.messages import Reason
from common.privacy.ledger import Ledger
from common.privacy.plan import Plan
from common.privacy.samplers import discrete_gaussian
from common.queries import Votes
from common.rng import secure_bytes


def answer(query: Votes, *, run: str, index: int, plan: Plan, records: Embedded, ledger: Ledger) -> NDArray[np.int64]:
    """This party's noised counts.

    Args:
        query: The candidates to vote on.
        run: Identity of the run.
        index: Number of the query in the plan.
        plan: The agreed plan.
        records: This party's private records.
        ledger: This party's own ledger.

    Returns:
        Integer counts plus noise, in units of 2^-(Q-1) votes, (length,).

    Raises:
        RefusalError: The query is not the planned one.
        RefusedError: The ledger holds another query at this place, or has closed it.
    """
    planned = plan.query(index)
    if query.spec != planned.spec or query.labels.max() >= len(plan.labels):
        raise RefusalError(Reason.UNPLANNED, "query", expected=planned.spec, got=query.spec)
    if query.vectors.shape[1] != records.vectors.shape[1]:
        raise RefusalError(Reason.UNPLANNED, "dimensions", expected=records.vectors.shape[1], got=query.vectors.shape)

    entry = ledger.reserve(
        run=run,
        index=index,
        plan_digest=plan.digest(),
        query_digest=query.digest(),
        release=plan.answer_release(index),
    )
    close(ledger, run, before=index)
    if entry.committed:
        raise RefusedError("this answer is closed", where=f"run {run}, answer {index}")
    if entry.answer is not None:
        return _words(entry.answer)

    # At user level the party is the user: all its records have one owner.
    owners = [0] * len(records.labels) if plan.unit == "user" else None
    counts = votes.contribution(query, records.vectors, records.labels, owners)

    # Cutting off each count moves no two answers apart. Leaving out records beyond a number would: with one record gone
    # another takes its place. And a refusal would tell the coordinator how many records there are.
    counts = np.minimum(counts, planned.spec.largest(plan.max_records_per_party))

    share_sigma = plan.share_sigma(planned)
    if share_sigma == 0:
        return counts
    noised = counts + discrete_gaussian(share_sigma, len(counts), secure_bytes(32))
    return _words(ledger.keep(run, index, noised.astype("<i8").tobytes()))


def close(ledger: Ledger, run: str, *, before: int) -> None:
    """Erase the answers to the run's queries below that number: they can never be given again."""
    for entry in ledger.entries(run):
        if entry.index < before and not entry.committed:
            ledger.commit(run, entry.index)


def _words(answer: bytes) -> NDArray[np.int64]:
    return np.frombuffer(answer, dtype="<i8").astype(np.int64)
