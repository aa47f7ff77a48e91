"""A record that goes leaves all others where they were, wherever in a party's file it stood.

Neighbours differ in one record. If one that goes moved others, into another pair, or under a bound on their number,
the answer would change by more than that one record's part.
"""

import numpy as np
import pytest

from client.contributions.contribute import contribution
from client.records import EmbeddedRecords
from common.queries import histograms, self_similarity, terms, votes
from common.queries.histograms import LabelHistogramSpec, VocabularySpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.votes import VotesSpec
from tests.support import asking

_WORDS = ("fever", "cough", "rash", "chest pain")
_AXES = np.eye(4, dtype=np.float32)
_QUERIES = (
    votes.Votes(spec=VotesSpec(top=2), vectors=_AXES, labels=np.zeros(4, dtype=np.int32)),
    histograms.LabelHistogram(spec=LabelHistogramSpec(labels=2)),
    histograms.Vocabulary(spec=VocabularySpec(first=2), terms=terms.encode_terms(_WORDS)),
    asking.sums(_AXES[:3], [[0.5, 0, 0, 0.25]] * 2, 0.5, grid=100, count=60),
    *(self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(buckets=buckets, grid=100)) for buckets in (1, 3, 6)),
)


def _records(generator):
    """6 records, equal ones among them, in any order."""
    kinds = generator.integers(0, 4, size=6)
    return EmbeddedRecords(
        vectors=_AXES[kinds],
        labels=generator.integers(0, 2, size=6).astype(np.int32),
        texts=tuple(f"{_WORDS[kind]} and {_WORDS[kind - 1]}" for kind in kinds),
    )


@pytest.mark.parametrize("query", _QUERIES, ids=lambda query: f"{query.spec.kind} {getattr(query.spec, 'buckets', '')}")
def test_one_record_that_goes_moves_the_answer_within_the_bounds(query):
    sensitivity = query.spec.sensitivity
    for seed in range(40):
        records = _records(np.random.default_rng(seed))
        whole = contribution(query, records)
        for gone in range(6):
            change = np.abs(whole - contribution(query, records._only(np.arange(6) != gone)))
            assert np.count_nonzero(change) <= sensitivity.touched
            assert change.sum() <= sensitivity.l1
            assert (change**2).sum() <= sensitivity.l2_squared
