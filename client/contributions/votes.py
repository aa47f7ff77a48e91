"""A party's contribution to nearest and furthest votes, before noise.

The result is a pure function of the similarities of all (record, candidate) pairs, independent of chunking, order and
the machine's matrix library, so that the parties' sums equal the votes of all records in one place. Similarities are
therefore *defined* on vectors rounded to multiples of 2^-24, whose inner products are exact in float64 in any order of
summation (they stay below 2^49). A float32 matrix product only lists a few candidates and orders those it can
separate; close calls are computed again exactly:

1. one float32 product for a chunk of records, and its highest (lowest) Q + `_SPARE` candidates;
2. candidates closer to a neighbour in that order than the product's error allows: exact value of these pairs;
3. records for which the list may be too short (many near-equal candidates): exact values of all their pairs.

Step 1 is nearly all of the time; step 3, needed for many copies of one text, costs several times as much.
"""

import os

import numpy as np
import numpy.typing as npt
import torch

from client.records import EmbeddedRecords
from client.session import RefusalError
from common.errors import InternalError, ProtocolError
from common.messages import Reason
from common.queries.votes import Votes

_GRID = 2.0**24
_DECIMALS = 1e5
_SPARE = 8
_GROUP = 16
_CHUNK_BYTES = 12 << 20
_REDUCED = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
"""Variables by which the matrix library multiplies float32 numbers with fewer bits."""


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
            voters = record_vectors[record_labels == label]
            answer[:, columns] = _votes_of_label(voters, query.vectors[columns], query.spec.top, len(answer))
    return answer.ravel() * query.spec.fine


def check_precision() -> None:
    """Refuse reduced precision, such as TF32 or bfloat16, for which `_error` is no bound.

    Raises:
        RefusalError: SETTINGS.
    """
    precision = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    modes = [name for name in _REDUCED if os.environ.get(name, "STRICT").upper() != "STRICT"]
    if precision not in {"none", "ieee"} or modes:
        what = "products of float32 numbers: unset these variables, or torch's lower precision"
        raise RefusalError(Reason.SETTINGS, what, expected="full precision", got=", ".join(modes) or precision)


def _votes_of_label(
    records: npt.NDArray[np.float32], candidates: npt.NDArray[np.float32], top: int, directions: int
) -> npt.NDArray[np.int64]:
    """(directions, candidates) int64 votes of records and candidates of one label."""
    columns = len(candidates)
    ranks = min(top, columns)
    votes = np.zeros((directions, columns), dtype=np.int64)
    right = _on_grid(candidates)
    rows = _on_grid(records)
    buffer = torch.empty(min(len(rows), max(1, _CHUNK_BYTES // (4 * columns))), columns)
    for start in range(0, len(rows), len(buffer)):
        block = rows[start : start + len(buffer)]
        similarities = torch.mm(block, right.T, out=buffer[: len(block)])
        for direction in range(directions):
            ranked = _ranked(similarities, block, right, ranks, furthest=direction == 1)
            for q in range(ranks):
                votes[direction] += np.bincount(ranked[:, q], minlength=columns) << (top - 1 - q)
    return votes


def _on_grid(vectors: npt.NDArray[np.float32]) -> torch.Tensor:
    """Vectors rounded to multiples of 2^-24, exact in float32 for entries up to slightly above 1."""
    return torch.from_numpy(vectors).mul(_GRID).round_().div_(_GRID)


def _ranked(
    similarities: torch.Tensor, left: torch.Tensor, right: torch.Tensor, ranks: int, *, furthest: bool
) -> npt.NDArray[np.int64]:
    """(records, ranks) int64: the first `ranks` candidates of each record, in order.

    `similarities` may differ from the exact products by less than `_error`; the result does not depend on it.
    """
    columns = len(right)
    listed = min(columns, ranks + _SPARE)
    values, indices = _listed(similarities, listed, largest=not furthest)
    # Candidates further apart than this differ in the fifth decimal, and in the right direction.
    margin = 2 * _error(right.shape[1]) + 1.01 / _DECIMALS
    behind_last = np.abs(values - values[:, ranks - 1 : ranks])
    short = np.flatnonzero(behind_last[:, -1] < margin) if listed < columns else np.empty(0, dtype=np.int64)

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
        exact = (left[short].double() @ right.double().T).numpy()
        ordered[short] = _in_order(exact, np.arange(columns), columns, ranks, furthest=furthest)
    return ordered


def _listed(
    similarities: torch.Tensor, listed: int, *, largest: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The first `listed` values of each row, sorted, and their columns.

    Through the extremes of groups of columns: an unlisted group's is no better than `listed` others, so none of its
    columns needs listing. That, and partitions by numpy, are less than half of the time of `torch.topk` on whole rows.
    """
    columns = similarities.shape[1]
    groups = columns // _GROUP
    members = None
    if groups > listed:
        grouped = similarities[:, : groups * _GROUP].reshape(-1, _GROUP, groups)
        best = _foremost((grouped.amax(dim=1) if largest else grouped.amin(dim=1)).numpy(), listed, largest=largest)
        within = (best[:, None, :] + groups * np.arange(_GROUP)[:, None]).reshape(len(best), -1)
        rest = np.broadcast_to(np.arange(groups * _GROUP, columns), (len(best), columns - groups * _GROUP))
        members = np.concatenate([within, rest], axis=1)
        similarities = similarities.gather(1, torch.from_numpy(members))
    values = similarities.numpy()
    indices = _foremost(values, listed, largest=largest)
    values = np.take_along_axis(values, indices, axis=1)
    order = np.argsort(-values if largest else values, axis=1)
    values, indices = np.take_along_axis(values, order, axis=1), np.take_along_axis(indices, order, axis=1)
    return values.astype(np.float64), indices if members is None else np.take_along_axis(members, indices, axis=1)


def _foremost(values: npt.NDArray[np.float32], count: int, *, largest: bool) -> npt.NDArray[np.int64]:
    """Columns of the `count` largest (smallest) values of each row, in any order."""
    columns = values.shape[1]
    if count == columns:
        return np.broadcast_to(np.arange(columns), values.shape)
    places = np.argpartition(values, columns - count if largest else count - 1, axis=1)
    return places[:, -count:] if largest else places[:, :count]


def _error(dim: int) -> float:
    """Bound on |float32 product - exact product| for norms up to 1.001 and any order of summation.

    dim * 2^-24 / (1 - dim * 2^-24) times the product of the norms (Higham 2002, section 3.1).
    """
    return 1.01 * dim * 2.0**-24


def _exact_pairs(
    left: torch.Tensor, right: torch.Tensor, row: npt.NDArray[np.int64], column: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Exact inner products of single pairs."""
    products: npt.NDArray[np.float64] = np.einsum(
        "pd,pd->p", left[row].numpy(), right[column].numpy(), dtype=np.float64
    )
    return products


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
