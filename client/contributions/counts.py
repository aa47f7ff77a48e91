"""A party's contributions to histograms, before noise: labels, lengths, terms of a vocabulary."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.records import EmbeddedRecords
from common.queries import histograms
from common.queries.terms import Extractor, decode_terms


def of_labels(query: histograms.LabelHistogram, records: EmbeddedRecords) -> NDArray[np.int64]:
    """(labels,) number of records with each label."""
    labels = records.labels[records.labels < query.spec.labels]
    return np.bincount(labels, minlength=query.spec.labels).astype(np.int64)


def of_lengths(query: histograms.LengthHistogram, records: EmbeddedRecords) -> NDArray[np.int64]:
    """(bins,) number of records with a length in each bin."""
    bins = np.searchsorted(query.edges, lengths(records), side="right")
    return np.bincount(bins, minlength=query.spec.bins).astype(np.int64)


def of_terms(query: histograms.Vocabulary, records: EmbeddedRecords) -> NDArray[np.int64]:
    """(terms,) number of records in which each term is among the first k distinct ones."""
    term_lists = first_terms(decode_terms(query.terms), records.texts, query.spec.first)
    occurrences = [term for terms in term_lists for term in terms]
    return np.bincount(np.array(occurrences, dtype=np.int64), minlength=query.length).astype(np.int64)


def lengths(records: EmbeddedRecords) -> NDArray[np.int64]:
    """(records,) lengths in words, separated by white space."""
    return np.array([len(text.split()) for text in records.texts], dtype=np.int64)


def first_terms(terms: Sequence[str], texts: Sequence[str], k: int) -> list[tuple[int, ...]]:
    """For each text the positions of its first k distinct terms, in order of appearance."""
    extractor = Extractor(terms)
    return [extractor.first(text, k) for text in texts]
