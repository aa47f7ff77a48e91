"""A party's contribution to each query that is a sum over parties, before noise.

The contribution is a vector of integers that depends on the records alone. The contributions of disjoint sets of
records add up to the contribution of their union, except for self-similarity, which uses only pairs of records of the
same party.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.contributions import class_sums, counts, sketch, votes
from client.records import EmbeddedRecords
from common.queries.class_sums import ClassSums
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram, LengthHistogram, Vocabulary
from common.queries.label_sets import LabelSets
from common.queries.page import Query
from common.queries.questionnaire import Questionnaire
from common.queries.section_order import SectionOrder
from common.queries.self_similarity import SelfSimilarity
from common.queries.sketch import Sketch
from common.queries.votes import Votes

CONTRIBUTIONS: Mapping[type[Query], Callable[[Any, EmbeddedRecords], NDArray[np.int64]]] = {
    Votes: votes.contribution,
    LabelHistogram: counts.count_labels,
    LabelSets: counts.count_label_sets,
    SectionOrder: counts.count_section_orders,
    LengthHistogram: counts.count_lengths,
    Vocabulary: counts.count_terms,
    Sketch: sketch.contribution,
    ClassSums: class_sums.contribution,
    Questionnaire: class_sums.contribution_with_answers,
    SelfSimilarity: counts.sum_pair_cosines,
    CorrectCount: counts.count_correct,
}
"""The function that computes the contribution, keyed by type of query, for each query that is a sum over the parties.
"""


def contribution(query: Query, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return this party's contribution to the answer of a query.

    Args:
        query: The query, one of `CONTRIBUTIONS`, for the records' encoder (`Query.check`).
        records: This party's records, as `EmbeddedRecords.limited` keeps them for the query.

    Returns:
        (query.length,) int64, in grid units.
    """
    return CONTRIBUTIONS[type(query)](query, records)
