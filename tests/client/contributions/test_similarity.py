"""Pairs by buckets: what they are, and that a record more, duplicates included, moves one bucket alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.contributions.counts import sum_pair_cosines
from common.queries import self_similarity
from common.queries.self_similarity import SelfSimilaritySpec
from tests.support.asking import embedded, random_units, unit

_TEXTS = "abcdef"
# Their cosines are halves.
_VECTORS = dict(
    zip(
        _TEXTS,
        unit([[1, 0, 0, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [1, 1, 1, 1], [1, -1, 1, 1], [1, 0, 0, 0]]),
        strict=True,
    )
)


def _query(**spec):
    return self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(**spec))


def _records(pairs):
    vectors = np.array([_VECTORS[text] for text, _ in pairs], np.float32).reshape(-1, 4)
    return embedded([text for text, _ in pairs], [label for _, label in pairs], vectors)


_RECORD = st.tuples(st.sampled_from(_TEXTS), st.integers(0, 1))


@given(st.lists(_RECORD, max_size=12), _RECORD, st.integers(1, 6), st.randoms())
def test_one_record_more_changes_one_pair(data, record, buckets, order):
    query = _query(buckets=buckets, grid=50)
    before = sum_pair_cosines(query, _records(data))
    more = [*data, record]
    order.shuffle(more)
    cosines, pairs = sum_pair_cosines(query, _records(more)) - before
    if pairs == 0:
        assert cosines == 0
    else:
        assert abs(pairs) == 50
        assert cosines in (-50, -25, 0, 25, 50)


@given(st.lists(_RECORD, max_size=12), st.integers(1, 6), st.randoms())
def test_the_order_of_records_does_not_matter(data, buckets, order):
    query, shuffled = _query(buckets=buckets), list(data)
    order.shuffle(shuffled)
    assert np.array_equal(sum_pair_cosines(query, _records(data)), sum_pair_cosines(query, _records(shuffled)))


def test_exactly_two_records_in_a_bucket_make_a_pair():
    query = _query(buckets=1, grid=1000)
    data = [("a", 0), ("e", 0), ("d", 1)]
    assert sum_pair_cosines(query, _records([])).tolist() == [0, 0]
    assert sum_pair_cosines(query, _records(data[:1])).tolist() == [0, 0]
    assert sum_pair_cosines(query, _records(data[:2])).tolist() == [500, 1000]
    assert sum_pair_cosines(query, _records(data)).tolist() == [0, 0]
    # A record and its copy are two records.
    assert sum_pair_cosines(query, _records([("b", 0), ("b", 0)])).tolist() == [1000, 1000]


@pytest.mark.parametrize(("other", "cosine"), [("c", -999), ("b", 0), ("d", 499), ("f", 999)])
def test_cosines_are_rounded_toward_zero_and_reach_both_ends(other, cosine):
    query = _query(buckets=1, grid=999)
    assert sum_pair_cosines(query, _records([("a", 0), (other, 0)])).tolist() == [cosine, 999]


def test_a_third_of_the_records_are_in_pairs_and_their_mean_is_that_of_all_pairs():
    rng = np.random.default_rng(1)
    count = 4000
    vectors = random_units(rng, count, 4)
    vectors[:, 0] = np.abs(vectors[:, 0])
    records = embedded([str(i) for i in range(count)], vectors=vectors)
    cosines, pairs = sum_pair_cosines(_query(buckets=count), records)
    # Records in pairs: 37%; 5 standard errors of their mean cosine. Fixed records: no false alarm.
    assert 2 * pairs / 64 / count == pytest.approx(np.exp(-1), abs=0.03)
    all_pairs = (np.linalg.norm(vectors.astype(np.float64).sum(axis=0)) ** 2 - count) / (count * (count - 1))
    assert cosines / pairs == pytest.approx(all_pairs, abs=5 * 0.5 / (pairs / 64) ** 0.5)


def test_who_shares_a_bucket_depends_on_the_query():
    records = embedded([str(i) for i in range(50)], vectors=random_units(np.random.default_rng(2), 50, 3))
    answers = {tuple(sum_pair_cosines(_query(buckets=50 + i), records)) for i in range(5)}
    assert len(answers) > 1
