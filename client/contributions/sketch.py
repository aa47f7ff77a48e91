"""A party's contribution to the sketch of a kernel density, before noise (DP-KPS, sections 2 and A.2).

The terms' inner products with the frequencies are exact (`client/contributions/exact_products.py`), and the rest is
computed for each record and coordinate separately, in a fixed order, so a record adds the same integers in any batch,
party or chunk. The cosines are computed by numpy and do not depend on an angle's position in its array. On another
machine the cosines may differ in the last bit, which can change by 1 a coordinate that is within 1e-14 of an integer.
The bound on a record's own values does not depend on any of this.

Each chunk of frequencies is processed for all records at once, so that the features of a term are computed once.
"""

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.contributions.counts import first_terms
from client.records import EmbeddedRecords
from common.queries import sketch
from common.queries.sketch import features
from common.queries.terms import decode_terms

_CHUNK_BYTES = 96 << 20
_ROWS = 2048


def contribution(query: sketch.Sketch, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the sum of the records' features, in grid units.

    Returns:
        (labels * features,) int64, label by label; if features are paired, all cosines of a label come before its
        sines.
    """
    spec = query.spec
    labelled_rows = np.flatnonzero(records.labels < spec.labels)
    texts = [records.texts[record] for record in labelled_rows]
    record_terms = first_terms(decode_terms(query.terms), texts, spec.prefix or spec.first)
    labels = records.labels[labelled_rows][[bool(terms) for terms in record_terms]]
    record_terms = [terms for terms in record_terms if terms]
    answer = np.zeros((spec.labels, spec.features), dtype=np.int64)
    for rows in _chunks(query, record_terms):
        values = _of_prefixes(query, record_terms, rows) if spec.prefix else _of_single_terms(query, record_terms, rows)
        integers = np.trunc(spec.grid * values).clip(-spec.largest, spec.largest).astype(np.int64)
        coordinates = np.concatenate([rows, rows + len(query.frequencies)]) if spec.paired else rows
        for label in np.unique(labels):
            answer[label, coordinates] = integers[labels == label].sum(axis=0)
    return answer.ravel()


def _of_single_terms(
    query: sketch.Sketch, record_terms: list[tuple[int, ...]], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the mean of the features of each record's terms, (records, features for these rows)."""
    used, places = np.unique(np.concatenate(record_terms), return_inverse=True)
    integers, units = exact_products.rows_to_integers(query.frequencies[rows])
    of_terms = features(_products(query.vectors, used, integers) * units, _phases(query, rows))
    counts = np.array([len(terms) for terms in record_terms])
    starts = np.cumsum(counts) - counts
    total = np.zeros((len(record_terms), of_terms.shape[1]))
    for q in range(counts.max()):
        has = np.flatnonzero(counts > q)
        total[has] += of_terms[places[starts[has] + q]]
    total /= counts[:, None]
    return total


def _of_prefixes(
    query: sketch.Sketch, record_terms: list[tuple[int, ...]], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the concatenated features of each record's terms, (records, features for these rows)."""
    dim = query.vectors.shape[1]
    integers, units = exact_products.rows_to_integers(query.frequencies[rows], blocks=query.spec.prefix)
    total = np.zeros((len(record_terms), len(rows)))
    for q in range(max(map(len, record_terms))):
        has = np.flatnonzero([len(terms) > q for terms in record_terms])
        used, places = np.unique([record_terms[record][q] for record in has], return_inverse=True)
        total[has] += _products(query.vectors, used, integers[:, q * dim : (q + 1) * dim])[places]
    return features(total * units, _phases(query, rows))


def _phases(query: sketch.Sketch, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    return query.phases if query.spec.paired else query.phases[rows]


def _products(
    vectors: NDArray[np.float32], used: NDArray[np.int64], integers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the exact (used, rows) products of the used terms' rounded vectors with the rounded rows."""
    out = np.empty((len(used), len(integers)))
    for start in range(0, len(used), _ROWS):
        part = used[start : start + _ROWS]
        out[start : start + _ROWS] = exact_products.vectors_to_integers(vectors[part]) @ integers.T
    return out


def _chunks(query: sketch.Sketch, record_terms: list[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """Split the frequencies' rows into chunks for which the arrays take about `_CHUNK_BYTES` together."""
    if not record_terms:
        return []
    terms = len({term for terms in record_terms for term in terms})
    # Products, angles, cosines and sines of each term; the same, and integers, of each record.
    most = max(1, _CHUNK_BYTES // (8 * (6 * terms + 6 * len(record_terms))))
    rows = np.arange(len(query.frequencies))
    return [rows[start : start + most] for start in range(0, len(rows), most)]
