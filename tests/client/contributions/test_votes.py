"""Votes against a slow reference in exact integers, and their independence of partition, order and chunking."""

from fractions import Fraction

import numpy as np
import pytest

from client.contributions import votes as client_votes
from client.contributions.votes import votes_of
from common.errors import InternalError
from common.queries.votes import Votes, VotesSpec
from tests.support.asking import unit


def _random(rng, count, dim, centre=0.0):
    rows = rng.standard_normal((count, dim))
    rows[:, 0] += centre * dim**0.5
    return unit(rows)


def _query(vectors, labels=None, **spec):
    labels = np.zeros(len(vectors), np.int32) if labels is None else np.asarray(labels, np.int32)
    return Votes(spec=VotesSpec(**{"top": 8, **spec}), vectors=vectors, labels=labels)


def _reference(query, records, labels):
    """The definition, one pair at a time, in rational arithmetic."""
    spec, count = query.spec, len(query.labels)
    answer = [0] * (2 * count)

    def grid(vector):
        return [round(Fraction(float(x)) * 2**24) for x in vector]

    candidates = [grid(vector) for vector in query.vectors]
    for record, label in zip(records, labels, strict=True):
        record_grid = grid(record)
        buckets = {
            j: (sum(a * b for a, b in zip(record_grid, candidates[j], strict=True)) * 2 * 10**5 + 2**48) // 2**49
            for j in range(count)
            if query.labels[j] == label
        }
        for half, sign in enumerate((-1, 1)):
            order = sorted(buckets, key=lambda j, sign=sign: (sign * buckets[j], j))
            for q, j in enumerate(order[: spec.top]):
                answer[half * count + j] += spec.fine * 2 ** (spec.top - 1 - q)
    return np.array(answer if spec.furthest else answer[:count])


def _hard_case(rng):
    """Candidates in tight clusters, with exact and near copies: many ties, and more of them than the list holds."""
    centres = _random(rng, 4, 24)
    near = unit(
        np.repeat(centres, 12, axis=0) + rng.choice([0, 2e-6, 1e-5, 1e-4], (48, 1)) * rng.standard_normal((48, 24))
    )
    vectors = np.concatenate([near, centres, centres, _random(rng, 20, 24)])
    return vectors[rng.permutation(len(vectors))], np.concatenate([centres, _random(rng, 16, 24)])


@pytest.mark.parametrize("groups", [1, 7, 30, 256])
@pytest.mark.parametrize("top", [1, 3, 8, 20])
def test_equals_the_definition(monkeypatch, top, groups):
    monkeypatch.setattr(client_votes, "_GROUPS", groups)
    rng = np.random.default_rng(top)
    vectors, records = _hard_case(rng)
    labels = rng.integers(0, 3, len(vectors))
    record_labels = rng.integers(0, 4, len(records)).astype(np.int32)
    query = _query(vectors, labels, top=top)
    np.testing.assert_array_equal(votes_of(query, records, record_labels), _reference(query, records, record_labels))
    one_label = _query(vectors, top=top)
    zeros = np.zeros(len(records), np.int32)
    np.testing.assert_array_equal(votes_of(one_label, records, zeros), _reference(one_label, records, zeros))


@pytest.mark.parametrize(("share", "harmless"), [(0.0, True), (0.9, True), (30.0, False)])
def test_errors_up_to_the_bound_change_nothing_and_larger_ones_would(monkeypatch, share, harmless):
    rng = np.random.default_rng(3)
    vectors, records = _hard_case(rng)
    query, labels = _query(vectors), np.zeros(len(records), np.int32)
    noise = np.random.default_rng(4)

    ranked = client_votes._ranked

    def with_errors(rough, candidates, records, ranks, sign):
        exact = candidates.astype(np.float64) @ records.T.astype(np.float64)
        wrong = exact + share * 1.01 * candidates.shape[1] * 2.0**-24 * noise.uniform(-1, 1, exact.shape)
        return ranked(wrong.astype(np.float32), candidates, records, ranks, sign)

    expected = _reference(query, records, labels)
    monkeypatch.setattr(client_votes, "_ranked", with_errors)
    assert np.array_equal(votes_of(query, records, labels), expected) == harmless


@pytest.mark.parametrize("centre", [0.0, 2.0])
def test_parties_sum_to_the_central_votes_whatever_the_split(monkeypatch, centre):
    rng = np.random.default_rng(5)
    vectors = _random(rng, 700, 96, centre)
    vectors[100:140] = vectors[:40]
    records = _random(rng, 400, 96, centre)
    labels = rng.integers(0, 2, 400).astype(np.int32)
    query = _query(vectors, rng.integers(0, 2, 700))
    central = votes_of(query, records, labels)
    monkeypatch.setattr(client_votes, "_BYTES", 4 * 700 * 7)
    np.testing.assert_array_equal(votes_of(query, records, labels), central)
    order = rng.permutation(400)
    for parties in (2, 5, 60):
        split = np.array_split(order, parties)
        np.testing.assert_array_equal(sum(votes_of(query, records[p], labels[p]) for p in split), central)


@pytest.mark.parametrize("dim", [384, 768])
def test_in_the_dimensions_of_pretrained_encoders_votes_equal_the_definition(dim):
    rng = np.random.default_rng(dim)
    # Sentence vectors share a direction, so many candidates are about equally near; some are copies.
    vectors, records = _random(rng, 60, dim, centre=2.0), _random(rng, 5, dim, centre=2.0)
    vectors[40:] = vectors[:20]
    query, labels = _query(vectors), np.zeros(len(records), np.int32)
    np.testing.assert_array_equal(votes_of(query, records, labels), _reference(query, records, labels))


@pytest.mark.parametrize("dim", [96, 2**14])
def test_float32_products_keep_the_bound_of_the_proof(dim):
    rng = np.random.default_rng(dim)
    normal = rng.standard_normal((20, dim))
    kinds = [
        normal,
        np.sign(normal),
        normal * np.exp(-rng.uniform(0, 20, normal.shape)),
        np.abs(normal),
        np.eye(20, dim),
    ]
    vectors = client_votes._on_grid(unit(np.concatenate(kinds)))
    wide = vectors.astype(np.float64)
    off = np.abs(vectors @ vectors.T - wide @ wide.T).max()
    assert 0 < off < 1.01 * dim * 2.0**-24


def test_weights_of_three_and_four_votes():
    angles = np.array([0.1, 0.4, 0.7, 1.0, 1.3])
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    record, label = np.array([[1, 0]], np.float32), np.zeros(1, np.int32)
    assert votes_of(_query(vectors, top=4), record, label).tolist() == [8, 4, 2, 1, 0, 0, 1, 2, 4, 8]
    assert votes_of(_query(vectors, top=3, furthest=False), record, label).tolist() == [4, 2, 1, 0, 0]
    assert votes_of(_query(vectors, top=3, furthest=False, fine=5), record, label).tolist() == [20, 10, 5, 0, 0]


def test_ties_go_to_the_lower_index_in_both_directions():
    vectors = np.repeat(unit([[1, 0], [0, 1]]), 30, axis=0)
    got = votes_of(_query(vectors, top=2), np.array([[1, 0]], np.float32), np.zeros(1, np.int32))
    assert np.flatnonzero(got).tolist() == [0, 1, 60 + 30, 60 + 31]
    assert got[[0, 1, 90, 91]].tolist() == [2, 1, 2, 1]


def test_fewer_candidates_than_votes_no_candidates_and_no_records():
    query = _query(unit([[1, 0], [0, 1]]), [0, 0], top=4)
    record = np.array([[1, 0]], np.float32)
    assert votes_of(query, record, np.zeros(1, np.int32)).tolist() == [8, 4, 4, 8]
    assert not votes_of(query, record, np.ones(1, np.int32)).any()
    empty = votes_of(query, np.empty((0, 2), np.float32), np.empty(0, np.int32))
    assert empty.tolist() == [0, 0, 0, 0]
    assert empty.dtype == np.int64


def test_mismatched_arguments_are_refused():
    query, labels = _query(unit([[1, 0]])), np.zeros(2, np.int32)
    with pytest.raises(InternalError):
        votes_of(query, np.ones((3, 2), np.float32), labels)
