"""What a party's records add to each query that is a sum over parties, before noise.

A function of the records alone, in integers: contributions of disjoint records add up to that of all of them, but for
self-similarity, whose pairs are within a party.
"""

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from client import histograms, products, similarity, sketch, votes
from client.records import Embedded
from common import asked
from common.errors import ProtocolError


def contribution(query: asked.Summed, records: Embedded) -> NDArray[np.int64]:  # noqa: PLR0911 a case for each query
    """This party's contribution.

    Args:
        query: What was asked.
        records: This party's records; of each owner at most `query.spec.max_records` (`Embedded.limited`).

    Returns:
        (query.length,) int64, in grid units.

    Raises:
        ProtocolError: The query's vectors have another dimension than the records'.
    """
    match query:
        case asked.Votes():
            return votes.contribution(query, records.vectors, records.labels)
        case asked.LabelHistogram():
            return histograms.of_labels(query, records)
        case asked.LengthHistogram():
            return histograms.of_lengths(query, records)
        case asked.Vocabulary():
            return histograms.of_terms(query, records)
        case asked.Sketch():
            return sketch.contribution(query, records)
        case asked.SelfSimilarity():
            return similarity.contribution(query, records)
        case asked.CorrectCount():
            return _correct(query, records)
        case _:
            assert_never(query)


def _correct(query: asked.CorrectCount, records: Embedded) -> NDArray[np.int64]:
    """On how many records the classifier is right, and how many there are."""
    if query.weights.shape[1] != records.vectors.shape[1]:
        raise ProtocolError(
            "dimension of the classifier", expected=records.vectors.shape[1], got=query.weights.shape[1],
            do="Coordinator and parties must use one encoder.",
        )  # fmt: skip
    rows, units = products.of_rows(query.weights)
    scores = products.of_vectors(records.vectors) @ rows.T * units + query.intercepts
    right = np.count_nonzero(scores.argmax(axis=1) == records.labels)
    return np.array([right, len(records.labels)], dtype=np.int64)
