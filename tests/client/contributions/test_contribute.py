"""All queries alike: integers of the query's length, and sums over parties that equal the whole."""

from dataclasses import replace

import numpy as np
import pytest

from client.contributions.contribute import CONTRIBUTIONS, contribution
from client.records import embed_records
from common.privacy.mechanisms import SUMMED
from common.queries import closed_set, correct_count, self_similarity
from common.queries.correct_count import CorrectCountSpec
from tests.support.asking import chosen, embedded, every_summed_query, random_records, unit
from tests.support.federations import ENCODER, LABELS, each_kind
from tests.support.federations import records as notes

_DIM = 24


def test_there_is_a_query_of_each_kind_here():
    queries = every_summed_query(np.random.default_rng(1), _DIM)
    assert {type(query) for query in queries} == set(CONTRIBUTIONS)
    assert set(CONTRIBUTIONS) == {query for spec, query in closed_set.QUERIES if spec.mechanisms == SUMMED}


@pytest.mark.parametrize("place", range(11))
def test_parties_sum_to_the_whole_and_the_answer_has_the_querys_length(place):
    rng = np.random.default_rng(1)
    query = every_summed_query(rng, _DIM)[place]
    records = random_records(rng, 150, _DIM)
    whole = contribution(query, records)
    assert (whole.shape, whole.dtype) == ((query.length,), np.int64)
    assert whole.any()
    none = contribution(query, chosen(records, []))
    assert (none.shape, none.dtype) == ((query.length,), np.int64)
    assert not none.any()
    for parties in (1, 2, 5, 40):
        split = np.array_split(rng.permutation(150), parties)
        total = sum(contribution(query, chosen(records, part)) for part in split)
        # Pairs are within a party.
        if parties == 1 or not isinstance(query, self_similarity.SelfSimilarity):
            assert np.array_equal(total, whole)


@pytest.mark.parametrize("place", range(11))
def test_one_record_adds_at_most_the_largest_value(place):
    rng = np.random.default_rng(2)
    query = every_summed_query(rng, _DIM)[place]
    records = random_records(rng, 30, _DIM)
    for record in range(30):
        assert np.abs(contribution(query, chosen(records, [record]))).max() <= query.spec.largest


WILD = [[value] for exponent in range(1, 39) for value in (10.0**exponent, -(10.0**exponent))]
WILD += [[np.nan], [np.inf], [-np.inf], [0.1, np.nan, 0.2], [np.nan, np.inf, 3e38, -np.inf, 1e13, 0.1]]
"""Entries of vectors that no encoder returns, one after another."""


@pytest.mark.parametrize("kind", [kind for kind, query in each_kind().items() if type(query) in CONTRIBUTIONS])
def test_a_record_whose_vector_is_none_moves_no_coordinate_further_than_any_and_changes_no_others_part(kind):
    query, records = each_kind()[kind], embed_records(notes(0, 10), ENCODER).for_plan(LABELS)
    function, generator = CONTRIBUTIONS[type(query)], np.random.default_rng(0)
    for entries in WILD:
        vectors = records.vectors.copy()
        place = generator.integers(10)
        vectors[place] = np.float32(np.resize(entries, vectors.shape[1]) * generator.uniform(0.1, 1, vectors.shape[1]))
        wild = replace(records, vectors=vectors)
        others, alone = chosen(wild, np.flatnonzero(np.arange(10) != place)), chosen(wild, [place])
        moved = [
            int(after) - int(before)
            for after, before in zip(function(query, wild), function(query, others), strict=True)
        ]
        assert max(map(abs, moved)) <= query.spec.largest, entries
        if not isinstance(query, self_similarity.SelfSimilarity):  # whose pairs are of two records
            assert moved == function(query, alone).tolist(), entries


def _classifier(weights, intercepts):
    return correct_count.CorrectCount(
        spec=CorrectCountSpec(),
        weights=np.array(weights, np.float32),
        intercepts=np.array(intercepts, np.float32),
    )


def test_a_classifier_is_right_where_its_highest_score_is_the_label():
    vectors = unit([[1, 0], [0, 1], [1, 1], [-1, 0.5]])
    records = embedded("abcd", [0, 1, 0, 1], vectors)
    assert contribution(_classifier([[1, 0], [0, 1]], [0, 0]), records).tolist() == [4, 4]
    assert contribution(_classifier([[1, 0], [0, 1]], [-5, 0]), records).tolist() == [2, 4]
    # Equal scores go to the first, large and equal weights too.
    assert contribution(_classifier([[9e5, 7], [9e5, 7], [9e5, 7]], [0, 0, 0]), records).tolist() == [2, 4]
    # A label that the classifier does not have is never right.
    assert contribution(_classifier([[1, 0]], [0]), records).tolist() == [2, 4]
