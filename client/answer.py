"""One private answer, end to end: the mirror of `server/ask.py`.

1. Check that the query is the planned one.
2. Contribute: integer counts from this party's records alone.
3. Bound: no count may exceed what the ring was planned for.
4. Reserve: the charge is on disk before anything leaves.
5. Noise: this party's share, from the key that stands with the charge.

What leaves afterwards is counts + noise, masked under secure aggregation (`client/secagg.py`).

A round that was interrupted may be asked again. The ledger then returns the first charge with its noise key, so counts
and noise are the same to the last bit: the coordinator learns nothing new and nothing is paid. Fresh noise would be a
second look at the same records. The key lives until the next query of the run: the coordinator asks that one only after
it has put this one's total on its own disk, so nobody honest will ask for this one again.
"""

import numpy as np
from numpy.typing import NDArray

from client import votes
from client.records import Embedded
from client.session import RefusalError
from common.errors import InternalError
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
        RefusedError: The ledger holds another query at this place.
    """
    planned = plan.query(index)
    if query.spec != planned.spec or (len(query.labels) and query.labels.max() >= len(plan.labels)):
        raise RefusalError(Reason.UNPLANNED, "query", expected=planned.spec, got=query.spec)

    kept = _first_of_unit(records, plan)
    counts = votes.contribution(query, kept.vectors, kept.labels)

    if counts.max(initial=0) > planned.spec.largest(plan.max_records_per_party):
        raise InternalError("contribution", expected="counts within the planned bound", got="a larger one")

    entry = ledger.reserve(
        run=run,
        index=index,
        plan_digest=plan.digest(),
        query_digest=query.digest(),
        release=plan.answer_release(index),
        noise_key=secure_bytes(32),
    )
    for earlier in ledger.entries(run):
        if earlier.index < index and not earlier.committed:
            ledger.commit(run, earlier.index)

    share_sigma = plan.share_sigma(planned)
    if share_sigma == 0:
        return counts
    assert entry.noise_key is not None  # the ledger refuses a closed answer
    return counts + discrete_gaussian(share_sigma, len(counts), entry.noise_key)


def _first_of_unit(records: Embedded, plan: Plan) -> Embedded:
    """At user level the party is the user: at most `max_records` of its records, the first in its file, take part."""
    limit = plan.query(0).spec.max_records if plan.unit == "user" else plan.max_records_per_party
    return Embedded(vectors=records.vectors[:limit], labels=records.labels[:limit])
