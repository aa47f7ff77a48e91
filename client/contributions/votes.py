"""A party's contribution to nearest and furthest votes, before noise.

The result is a pure function of the similarities of all (record, candidate) pairs, independent of chunking, order and
the machine's matrix library, so that the sum over the parties equals the votes of all records if they were in one
place. Similarities are therefore *defined* on vectors rounded to multiples of 2^-24, whose inner products are exact in
float64 in any order of summation (they stay below 2^49). Their float32 product by numpy, called `rough`, is computed
first:

    In any order of summation, with or without fused multiplication, the float32 inner product of d numbers is off by at
    most d u / (1 - d u) times the product of the norms, for u = 2^-24 (Higham 2002, section 3.1). Norms are up to
    1.001, so for d up to 2^16 the error is at most 1.01 d u. Underflow does not occur, since all numbers are multiples
    of 2^-48.

Let E be that error and M = 2 E + 1.01e-5. If one candidate's rough similarity exceeds another's by M, its similarity
exceeds the other's by more than 1e-5, and is therefore also larger after rounding to 5 decimals. Two conclusions:

1. If Q candidates have rough similarities of at least t, no candidate below t - M is among the Q nearest. The Q-th
   largest maximum of groups of candidates serves as t, so that only a few candidates are listed (`_listed`).
2. A listed candidate with no other listed candidate within M of it already has its correct rank. The similarities of
   all other listed candidates are computed again, exactly (`_ranked`).

For a record with a long list, for example because of many copies of one text, the exact similarities to all candidates
are computed, which takes about three times as long. For furthest votes, minima replace maxima.
"""

import numpy as np
from numpy.typing import NDArray

from client.records import EmbeddedRecords
from common.errors import InternalError
from common.queries.votes import Votes

_GRID = np.float32(2**24)
_DECIMALS = 1e5
_RECORDS, _BYTES = 1024, 16 << 20
"""Maximum number of records processed at a time, and maximum size in bytes of their rough similarities."""
_GROUPS = 256
"""Minimum number of groups of a label's candidates, if the label has so many candidates. More groups make shorter
lists, but take longer."""
_MANY = 4
"""A record's list is long if it has more candidates, or groups of candidates, than this number times the record's
votes."""
_APART = 4.0
"""Offset between the similarities of consecutive records, to keep them apart: similarities are within ±1.01."""
_SPAN = 2**18
"""A number larger than the number of distinct similarities rounded to 5 decimals."""
_PAIRS, _COLUMNS = 32, 512
"""Number of pairs, and of candidates, for which exact similarities are computed at a time, to fit the processor's
cache."""


def contribution(query: Votes, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return this party's votes; see `votes_of`."""
    return votes_of(query, records.vectors, records.labels)


def votes_of(query: Votes, record_vectors: NDArray[np.float32], record_labels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sum of the records' votes, in grid units (one vote is `query.spec.grid` units).

    A record votes for candidates of its own label by l2 distance. For unit vectors this is the order of their inner
    products, which are rounded to 5 decimals. Ties go to the lower candidate index, for furthest votes as well. Records
    with a label that has no candidates do not vote.

    Args:
        query: The query.
        record_vectors: (records, dim) float32, unit norm.
        record_labels: (records,) int32, index of each record's label among the plan's labels.

    Returns:
        (candidates,) int64, or (2 * candidates,) with the furthest votes after the nearest.

    Raises:
        InternalError: The arguments' shapes disagree.
    """
    if record_vectors.ndim != 2 or record_labels.shape != record_vectors.shape[:1]:
        raise InternalError("record vectors and labels disagree in shape")
    answer = np.zeros((2 if query.spec.furthest else 1, len(query.labels)), dtype=np.int64)
    for label in np.unique(record_labels):
        columns = np.flatnonzero(query.labels == label)
        if len(columns):
            voters = np.flatnonzero(record_labels == label)
            candidates = _on_grid(query.vectors[columns])
            answer[:, columns] = _votes_of_label(record_vectors, voters, candidates, query.spec.top, len(answer))
    return answer.ravel() * query.spec.fine


def _votes_of_label(
    vectors: NDArray[np.float32], voters: NDArray[np.int64], candidates: NDArray[np.float32], top: int, directions: int
) -> NDArray[np.int64]:
    """Return the votes, (directions, candidates) int64, of the records `voters` for the candidates of one label."""
    count = len(candidates)
    votes = np.zeros((directions, count), dtype=np.int64)
    step = min(len(voters), _RECORDS, max(1, _BYTES // (4 * count)))
    memory = np.empty(count * step, dtype=np.float32)  # used again, which is faster than to get it from the system
    for start in range(0, len(voters), step):
        records = _on_grid(vectors[voters[start : start + step]])
        # A row for each candidate: this way around, the matrix library is as fast with few records as with all.
        rough = np.matmul(candidates, records.T, out=memory[: count * len(records)].reshape(count, -1))
        for direction, sign in enumerate((1, -1)[:directions]):
            ranked = _ranked(rough, candidates, records, min(top, count), sign)
            for q, column in enumerate(ranked.T):
                votes[direction] += np.bincount(column, minlength=count) << (top - 1 - q)
    return votes


def _on_grid(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round vectors to multiples of 2^-24, which is exact in float32 for entries up to slightly above 1."""
    rounded: NDArray[np.float32] = np.rint(vectors * _GRID) / _GRID
    return rounded


def _ranked(
    rough: NDArray[np.float32], candidates: NDArray[np.float32], records: NDArray[np.float32], ranks: int, sign: int
) -> NDArray[np.int64]:
    """Return the indices of each record's nearest candidates (for sign -1, furthest) in order, (records, ranks) int64.

    The rows are not in the order of the records. `rough` is (candidates, records), and the error of each entry is below
    the bound in the module's docstring.
    """
    count, dim = candidates.shape
    margin = 2 * 1.01 * dim * 2.0**-24 + 1.01 / _DECIMALS
    record, candidate, many = _listed(rough, ranks, margin, sign)
    places = _APART * record + rough.take(candidate * len(records) + record)
    order = np.argsort(places)
    record, candidate, places = record[order], candidate[order], places[order]

    close = np.diff(places) < margin
    unsettled = np.flatnonzero(np.append(close, False) | np.append(False, close))
    similarities = places - _APART * record
    similarities[unsettled] = _exact_pairs(candidates, records, candidate[unsettled], record[unsettled])
    keys = np.sort(_keys(similarities, record, candidate, count, sign))
    starts = np.unique(record, return_index=True)[1]
    ranked = [keys[starts[:, None] + np.arange(ranks)]]

    if len(many):
        keys = _keys(_exact_rows(candidates, records[many]), many[:, None], np.arange(count), count, sign)
        ranked.append(np.sort(np.partition(keys, ranks - 1, axis=1)[:, :ranks], axis=1))
    first: NDArray[np.int64] = np.concatenate(ranked) % count
    return first


def _listed(
    rough: NDArray[np.float32], ranks: int, margin: float, sign: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (record, candidate) that can be among the record's first `ranks`, and the omitted records.

    Group g has the candidates g, g + groups, g + 2 groups and so on. Records with long lists (`_MANY`) are left out,
    since computing all their pairs exactly is faster.
    """
    count, records = rough.shape
    groups = min(count, max(ranks, _GROUPS))
    depth, rest = divmod(count, groups)
    extreme = np.maximum if sign > 0 else np.minimum
    best = extreme.reduce(rough[: count - rest].reshape(depth, groups, records), axis=0)
    extreme(best[:rest], rough[count - rest :], out=best[:rest])
    best = np.ascontiguousarray(sign * best.T)
    bound = np.partition(best, groups - ranks, axis=1)[:, groups - ranks] - np.float32(margin)

    reached = best >= bound[:, None]
    many = reached.sum(axis=1) > _MANY * ranks
    record, group = np.nonzero(reached & ~many[:, None])
    record = np.repeat(record, depth + 1)
    candidate = (group[:, None] + groups * np.arange(depth + 1)).ravel()
    values = sign * rough.take(candidate * records + record, mode="clip")  # past the last candidate: dropped here
    listed = np.flatnonzero((values >= bound[record]) & (candidate < count))
    many |= np.bincount(record[listed], minlength=records) > _MANY * ranks
    listed = listed[~many[record[listed]]]
    return record[listed], candidate[listed], np.flatnonzero(many)


def _exact_pairs(
    candidates: NDArray[np.float32],
    records: NDArray[np.float32],
    candidate: NDArray[np.int64],
    record: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the exact similarity of each listed pair of candidate and record."""
    exact = np.empty(len(record))
    for start in range(0, len(record), _PAIRS):
        part = slice(start, start + _PAIRS)
        left, right = candidates[candidate[part]], records[record[part]]
        exact[part] = np.vecdot(left.astype(np.float64), right.astype(np.float64))
    return exact


def _exact_rows(candidates: NDArray[np.float32], records: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the exact similarities of all pairs, (records, candidates)."""
    wide = records.astype(np.float64)
    parts = (candidates[start : start + _COLUMNS] for start in range(0, len(candidates), _COLUMNS))
    return np.concatenate([wide @ part.astype(np.float64).T for part in parts], axis=1)


def _keys(
    similarities: NDArray[np.float64],
    record: NDArray[np.int64],
    candidate: NDArray[np.int64],
    count: int,
    sign: int,
) -> NDArray[np.int64]:
    """Return integer keys that sort by record, then by similarity rounded to 5 decimals, then by candidate.

    A key modulo `count` is the index of its candidate. Higher similarities come first, or lower ones for sign -1.
    """
    rounded = np.floor(similarities * _DECIMALS + 0.5).astype(np.int64)
    return (record * _SPAN - sign * rounded) * count + candidate
