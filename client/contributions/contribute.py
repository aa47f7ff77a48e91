"""What a party's records add to each query that is a sum over parties, before noise.

A function of the records alone, in integers: contributions of disjoint records add up to that of all of them, but for
self-similarity, whose pairs are within a party.
"""

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from client.contributions import correct_count, histograms, similarity, sketch, votes
from client.records import EmbeddedRecords
from common.queries import closed_set, self_similarity
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram, LengthHistogram, Vocabulary
from common.queries.sketch import Sketch
from common.queries.votes import Votes


def contribution(query: closed_set.Summed, records: EmbeddedRecords) -> NDArray[np.int64]:  # noqa: PLR0911 a case for each query
    """This party's contribution.

    Args:
        query: What was asked.
        records: This party's records; of each owner at most `query.spec.max_records` (`EmbeddedRecords.limited`).

    Returns:
        (query.length,) int64, in grid units.

    Raises:
        ProtocolError: The query's vectors have another dimension than the records'.
    """
    match query:
        case Votes():
            return votes.contribution(query, records.vectors, records.labels)
        case LabelHistogram():
            return histograms.of_labels(query, records)
        case LengthHistogram():
            return histograms.of_lengths(query, records)
        case Vocabulary():
            return histograms.of_terms(query, records)
        case Sketch():
            return sketch.contribution(query, records)
        case self_similarity.SelfSimilarity():
            return similarity.contribution(query, records)
        case CorrectCount():
            return correct_count.contribution(query, records)
        case _:
            assert_never(query)
