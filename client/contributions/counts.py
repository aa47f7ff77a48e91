"""A party's contributions to queries that count records or add up one number per record, before noise.

These queries are histograms of labels, lengths and terms, the cosines of pairs of records, and the number of records
that a released classifier labels correctly.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.records import EmbeddedRecords
from common.queries import closed_set, histograms
from common.queries.correct_count import CorrectCount
from common.queries.label_sets import LabelSets
from common.queries.section_order import SectionOrder
from common.queries.self_similarity import SelfSimilarity
from common.queries.terms import Extractor, decode_terms


def count_labels(query: histograms.LabelHistogram, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the number of records with each label: (labels,) int64."""
    labels = records.labels[records.labels < query.spec.labels]
    return np.bincount(labels, minlength=query.spec.labels).astype(np.int64)


def count_label_sets(query: LabelSets, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return how many records have each number of labels, each label, and each pair of labels, in grid units.

    Returns:
        (labels_per_record + labels + pairs,) int64.
    """
    spec, labels, numbers = query.spec, records.labels, records.record_numbers
    sizes = np.unique(numbers, return_counts=True)[1]
    pairs = np.zeros((spec.labels, spec.labels), np.int64)
    for step in range(1, spec.labels_per_record):  # pairs of rows of one record, so many rows apart
        rows = np.flatnonzero(numbers[step:] == numbers[:-step])
        one, other = labels[rows], labels[rows + step]
        np.add.at(pairs, (np.minimum(one, other), np.maximum(one, other)), 1)
    counted = (
        np.bincount(sizes - 1, minlength=spec.labels_per_record),
        np.bincount(labels, minlength=spec.labels),
        pairs[np.triu_indices(spec.labels, 1)],
    )
    return spec.grid * np.concatenate(counted)


def count_section_orders(query: SectionOrder, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return how many sections begin a record, follow each other section, and end a record, in grid units.

    Returns:
        (labels * (labels + 1),) int64.
    """
    labels, numbers, outside = records.labels, records.record_numbers, query.spec.labels
    counted = np.zeros((outside + 1, outside + 1), np.int64)
    if len(labels):
        follows = numbers[1:] == numbers[:-1]  # a row of the same record as the row before
        before = np.concatenate([[outside], np.where(follows, labels[:-1], outside)])
        np.add.at(counted, (before, labels), 1)
        np.add.at(counted, (labels[~np.append(follows, [False])], outside), 1)
    return query.spec.grid * counted[~np.eye(outside + 1, dtype=np.bool_)]


def count_lengths(query: histograms.LengthHistogram, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the number of records with a length in each bin: (bins,) int64."""
    bins = np.searchsorted(query.edges, lengths(records), side="right")
    return np.bincount(bins, minlength=query.spec.bins).astype(np.int64)


def count_terms(query: histograms.Vocabulary, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the number of records in which each term is among the first k distinct terms: (terms,) int64."""
    term_lists = first_terms(decode_terms(query.terms), records.texts, query.spec.first)
    occurrences = [term for terms in term_lists for term in terms]
    return np.bincount(np.array(occurrences, dtype=np.int64), minlength=query.length).astype(np.int64)


def sum_pair_cosines(query: SelfSimilarity, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the sum of the pairs' cosines, each rounded toward zero, and the number of pairs, both in grid units.

    The key that assigns records to buckets is the query's digest, which is public. That is safe: a record changes only
    one bucket for any key, and knowing the key beforehand only allows somebody to write records that share a bucket.

    Returns:
        (2,) int64.
    """
    spec = query.spec
    buckets = (records.digests(closed_set.digest(query)) % np.uint64(spec.buckets)).astype(np.int64)
    in_pair = np.bincount(buckets, minlength=spec.buckets)[buckets] == 2
    members = np.flatnonzero(in_pair)
    pairs = members[np.argsort(buckets[members], kind="stable")].reshape(-1, 2)
    left, right = (exact_products.vectors_to_integers(records.vectors[side]) for side in pairs.T)
    cosines = np.einsum("pd,pd->p", left, right) * exact_products.STEP**2
    rounded = np.trunc(spec.grid * cosines).clip(-spec.largest, spec.largest)
    return np.array([rounded.sum(), spec.grid * len(pairs)], dtype=np.int64)


def count_correct(query: CorrectCount, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the number of records that the classifier labels correctly, and the number of all records: (2,) int64."""
    rows, units = exact_products.rows_to_integers(query.weights)
    scores = exact_products.vectors_to_integers(records.vectors) @ rows.T * units + query.intercepts
    right = np.count_nonzero(scores.argmax(axis=1) == records.labels)
    return np.array([right, len(records.labels)], dtype=np.int64)


def lengths(records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the number of words, separated by white space, of each record: (records,) int64."""
    return np.array([len(text.split()) for text in records.texts], dtype=np.int64)


def first_terms(terms: Sequence[str], texts: Sequence[str], k: int) -> list[tuple[int, ...]]:
    """Return the indices in `terms` of the first k distinct terms of each text, in order of appearance."""
    extractor = Extractor(terms)
    return [extractor.first(text, k) for text in texts]
