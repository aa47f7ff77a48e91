"""A party's contribution to nearest and furthest votes, before noise.

The result is a pure function of the similarities of all (record, candidate) pairs, independent of chunking, order and
the machine's matrix library, so that the parties' sums equal the votes of all records in one place. Similarities are
therefore *defined* on vectors rounded to multiples of 2^-24, whose inner products are exact in float64 in any order of
summation (they stay below 2^49). Rough products (`client/contributions/rough_products.py`), whose error has a proved
bound, only list a few candidates and order those they can separate; close calls are computed again exactly:

1. rough products for a block of records, and their highest (lowest) Q + `_SPARE` candidates;
2. candidates closer to a neighbour in that order than the products' error allows: exact value of these pairs;
3. records for which the list may be too short (many near-equal candidates): exact values of all their pairs.

Step 1 is most of the time; step 3, needed for many copies of one text, costs several times as much.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from client.contributions.rough_products import Rough, check_precision, rough_products
from client.records import EmbeddedRecords
from common.errors import InternalError, ProtocolError
from common.queries.votes import Votes

_GRID = 2.0**24
_DECIMALS = 1e5
_SPARE = 8
_GROUP = 8
_ROWS, _PAIRS, _COLUMNS = 64, 32, 512
_FAR = (-math.inf, math.inf)
"""What fills columns without a candidate while the largest, and the smallest, are looked for."""


def contribution(query: Votes, records: EmbeddedRecords) -> npt.NDArray[np.int64]:
    """Sum of this party's votes; see `votes_of`."""
    return votes_of(query, records.vectors, records.labels)


def votes_of(
    query: Votes,
    record_vectors: npt.NDArray[np.float32],
    record_labels: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:
    """Sum of this party's votes, in grid units (`query.spec.grid` of them are one vote).

    A record votes for candidates of its own label by l2 distance, which for unit vectors is the order of their inner
    products, rounded to 5 decimals; ties go to the lower candidate index, among the furthest too. Records of a label
    without candidates vote for nothing.

    Args:
        query: The query.
        record_vectors: (records, dim) float32, unit norm.
        record_labels: (records,) int32, positions in the plan's labels.

    Returns:
        (candidates,) int64, or (2 * candidates,) with the furthest votes after the nearest.

    Raises:
        ProtocolError: If the query's vectors have another dimension than the records'.
        InternalError: If the arguments' shapes disagree.
        RefusalError: SETTINGS, if this process multiplies float32 numbers with fewer bits than they have.
    """
    check_precision()
    if record_vectors.ndim != 2 or record_labels.shape != record_vectors.shape[:1]:
        raise InternalError("record vectors and labels disagree in shape")
    if record_vectors.shape[1] != query.vectors.shape[1]:
        raise ProtocolError(
            "dimension of the candidates' vectors",
            expected=record_vectors.shape[1],
            got=query.vectors.shape[1],
            do="Coordinator and parties must use one encoder.",
        )
    answer = np.zeros((2 if query.spec.furthest else 1, len(query.labels)), dtype=np.int64)
    for label in np.unique(record_labels):
        columns = np.flatnonzero(query.labels == label)
        if len(columns):
            voters = np.flatnonzero(record_labels == label)
            candidates = _on_grid(query.vectors[columns])
            answer[:, columns] = _votes_of_label(record_vectors, voters, candidates, query.spec.top, len(answer))
    return answer.ravel() * query.spec.fine


def _votes_of_label(
    records: npt.NDArray[np.float32], voters: npt.NDArray[np.int64], right: torch.Tensor, top: int, directions: int
) -> npt.NDArray[np.int64]:
    """(directions, candidates) int64 votes of those records that are `voters`, for the candidates of one label."""
    columns = len(right)
    ranks = min(top, columns)
    votes = np.zeros((directions, columns), dtype=np.int64)
    products = rough_products(right, len(voters), width=-(-columns // _GROUP**2) * _GROUP**2)
    for start in range(0, len(voters), products.rows):
        left = _on_grid(records[voters[start : start + products.rows]])
        # No name holds the products, so that their memory is free for the next ones.
        for direction, ranked in enumerate(_rankings(products(left), left, right, ranks, directions)):
            for q in range(ranks):
                votes[direction] += np.bincount(ranked[:, q], minlength=columns) << (top - 1 - q)
    return votes


def _on_grid(vectors: npt.NDArray[np.float32]) -> torch.Tensor:
    """Round vectors to multiples of 2^-24, in place; exact in float32 for entries up to slightly above 1."""
    return torch.from_numpy(vectors).mul_(_GRID).round_().div_(_GRID)


def _rankings(
    rough: Rough, left: torch.Tensor, right: torch.Tensor, ranks: int, directions: int
) -> Iterator[npt.NDArray[np.int64]]:
    """For each direction, the first `ranks` candidates of each record."""
    listed = _listed(rough.values, len(right), min(len(right), ranks + _SPARE), directions)
    for direction, places in enumerate(listed):
        yield _ranked(rough, places, left, right, ranks, furthest=direction == 1)


def _ranked(
    rough: Rough, places: torch.Tensor, left: torch.Tensor, right: torch.Tensor, ranks: int, *, furthest: bool
) -> npt.NDArray[np.int64]:
    """(records, ranks) int64: the first `ranks` candidates of each record, in order, of those listed as `places`.

    The similarities may differ from the exact products by less than their error; the result does not depend on it.
    """
    columns = len(right)
    values, indices = _sorted(rough.values.gather(1, places), places, largest=not furthest)
    values = values * rough.unit
    # Candidates further apart than this differ in the fifth decimal, and in the right direction.
    margin = 2 * rough.error + 1.01 / _DECIMALS
    behind_last = np.abs(values - values[:, ranks - 1 : ranks])
    short = np.flatnonzero(behind_last[:, -1:] < margin) if places.shape[1] < columns else np.empty(0, dtype=np.int64)

    close = np.abs(np.diff(values, axis=1)) < margin
    unsettled = np.zeros(values.shape, dtype=np.bool_)
    unsettled[:, 1:] |= close
    unsettled[:, :-1] |= close
    unsettled[:, ranks:] &= behind_last[:, ranks:] < margin
    unsettled[short] = False
    row, place = np.nonzero(unsettled)
    values[row, place] = _exact_pairs(left, right, row, indices[row, place])
    ordered = _in_order(values, indices, columns, ranks, furthest=furthest)

    if len(short):
        exact = _exact_rows(left[short], right)
        ordered[short] = _in_order(exact, np.arange(columns), columns, ranks, furthest=furthest)
    return ordered


def _listed(values: torch.Tensor, columns: int, count: int, directions: int) -> Iterator[torch.Tensor]:
    """Columns of the `count` largest values of each row, then of the smallest, of the first `columns`, in any order."""
    extremes = values.new_empty(directions, len(values), values.shape[1] // _GROUP)
    for first in range(0, len(values) if values.device.type == "cpu" else 0, _ROWS):
        # Some rows at a time, which the processor's cache still holds for the second direction.
        some = values[first : first + _ROWS]
        for direction, found in enumerate(extremes[:, first : first + _ROWS]):
            some[:, columns:] = _FAR[direction]
            _grouped(some, largest=direction == 0, out=found)
    for direction, found in enumerate(extremes):
        values[:, columns:] = _FAR[direction]
        yield _foremost(values, count, largest=direction == 0, extremes=found)


def _foremost(values: torch.Tensor, count: int, *, largest: bool, extremes: torch.Tensor | None = None) -> torch.Tensor:
    """Columns of the `count` largest (smallest) values of each row, in any order.

    Through the extremes of groups of columns, and of groups of those: an unlisted group's is no better than `count`
    others, so none of its columns needs listing. That, and partitions by numpy, are less than half of the time of
    `torch.topk` on whole rows.
    """
    if values.device.type != "cpu":
        return values.topk(count, largest=largest).indices
    width = values.shape[1]
    groups = width // _GROUP
    if width % _GROUP or groups <= count:
        places = np.argpartition(values.numpy(), width - count if largest else count - 1, axis=1)
        return torch.from_numpy(places[:, -count:] if largest else places[:, :count])
    if extremes is None:
        extremes = _grouped(values, largest=largest)
    best = _foremost(extremes, count, largest=largest)
    members = (best[:, None] + groups * torch.arange(_GROUP)[:, None]).flatten(1)
    return members.gather(1, _foremost(values.gather(1, members), count, largest=largest))


def _grouped(values: torch.Tensor, *, largest: bool, out: torch.Tensor | None = None) -> torch.Tensor:
    """The extremes of groups of columns."""
    members = values.view(len(values), _GROUP, -1)
    return torch.amax(members, dim=1, out=out) if largest else torch.amin(members, dim=1, out=out)


def _sorted(
    values: torch.Tensor, places: torch.Tensor, *, largest: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Listed values and their columns, best first."""
    found = values.cpu().numpy()
    order = np.argsort(-found if largest else found, axis=1)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(places.cpu().numpy(), order, axis=1)


def _exact_pairs(
    left: torch.Tensor, right: torch.Tensor, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Exact inner products of single pairs; a few at a time, which stay in the processor's cache."""
    lefts, rights, products = left.numpy(), right.numpy(), np.empty(len(row))
    for first in range(0, len(row), _PAIRS):
        some = slice(first, first + _PAIRS)
        products[some] = np.vecdot(lefts[row[some]].astype(np.float64), rights[column[some]].astype(np.float64))
    return products


def _exact_rows(left: torch.Tensor, right: torch.Tensor) -> npt.NDArray[np.float64]:
    """Exact inner products of all pairs; candidates a few at a time, since they need twice the memory."""
    rows = left.double()
    return torch.cat([rows @ columns.double().T for columns in torch.split(right, _COLUMNS)], dim=1).numpy()


def _in_order(
    values: npt.NDArray[np.float64], indices: npt.NDArray[np.int64], columns: int, ranks: int, *, furthest: bool
) -> npt.NDArray[np.int64]:
    """Candidates sorted by similarity rounded to 5 decimals, then by index: one integer key, without ties, for both."""
    rounded = np.floor(values * _DECIMALS + 0.5).astype(np.int64)
    keys = (rounded if furthest else -rounded) * columns + indices
    if keys.shape[1] > 4 * ranks:
        keys = np.partition(keys, ranks - 1, axis=1)[:, :ranks]
    keys.sort(axis=1)
    return keys[:, :ranks] % columns
