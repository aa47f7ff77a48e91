"""Brute force over all neighbouring data sets of small instances, through the real contribution.

For every data set of up to two records and every unit that can be added to it, the change of the answer must lie within
the declared sensitivities, and the largest change over all of them must reach them: a declared value that is too small
leaks, one that is too large wastes noise.
"""

import itertools

import numpy as np
import pytest

from client.votes import contribution
from common.queries import Votes, VotesSpec

_DIRECTIONS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], dtype=np.float32)
_RECORDS = list(itertools.product(range(4), range(2)))


def _query(candidates, **spec):
    # Candidates 0 and 2 (if there) are equal, and one candidate has the other label.
    vectors = _DIRECTIONS[[0, 3, 0, 2, 1, 1][: candidates + 1]]
    labels = np.array([0] * candidates + [1], dtype=np.int32)
    return Votes(spec=VotesSpec(**spec), vectors=vectors, labels=labels)


def _answer(query, records, owners=None):
    vectors = _DIRECTIONS[[direction for direction, _ in records]].reshape(-1, 2)
    labels = np.array([label for _, label in records], dtype=np.int32)
    return contribution(query, vectors, labels, owners)


def _data_sets(largest):
    return itertools.chain.from_iterable(
        itertools.combinations_with_replacement(_RECORDS, size) for size in range(largest + 1)
    )


@pytest.mark.parametrize("furthest", [True, False])
@pytest.mark.parametrize(
    ("top", "candidates"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 4), (3, 2), (3, 3), (3, 5), (4, 3)]
)
def test_sample_level(top, candidates, furthest):
    query = _query(candidates, top=top, furthest=furthest)
    shifts = sorted(query.spec.shifts, reverse=True)
    l1, l2, reached = 0, 0, set()
    for data in _data_sets(1):
        before = _answer(query, data)
        for record in _RECORDS:
            change = np.abs(_answer(query, [*data, record]) - before)
            touched = sorted(change[change > 0].tolist(), reverse=True)
            # Sorted, each coordinate within its declared shift: then every monotone function of them is too.
            assert len(touched) <= len(shifts)
            assert all(got <= most for got, most in zip(touched, shifts, strict=False))
            l1, l2 = max(l1, change.sum()), max(l2, (change**2).sum())
            reached.add(tuple(touched))
    assert l1 <= query.spec.grid_l1
    assert l2 <= round(query.spec.grid_l2**2)
    ranks, halves = min(top, candidates), 2 if furthest else 1
    assert l1 == halves * (2**top - 2 ** (top - ranks))
    assert 3 * l2 == halves * (4**top - 4 ** (top - ranks))
    if candidates >= top:
        assert tuple(shifts) in reached
        assert l1 == query.spec.grid_l1
        assert l2 == round(query.spec.grid_l2**2)


@pytest.mark.parametrize(("top", "candidates", "furthest"), [(1, 3, True), (2, 1, True), (2, 3, False), (3, 4, True)])
def test_user_level(top, candidates, furthest):
    most = 2
    query = _query(candidates, top=top, furthest=furthest, max_records=most)
    others = [(0, 0), (2, 1), (3, 0)]
    before = _answer(query, others, owners=["a", "b", "a"])
    l1 = l2 = 0
    # Users with up to one record more than is kept, in every order, spread among other users' records.
    for size in range(1, most + 2):
        for user in itertools.product(_RECORDS, repeat=size):
            data, owners = [*user[:1], *others, *user[1:]], ["u", "a", "b", "a", *["u"] * (size - 1)]
            change = np.abs(_answer(query, data, owners=owners) - before)
            assert np.count_nonzero(change) <= most * len(query.spec.shifts)
            assert change.max() <= max(query.spec.shifts)
            l1, l2 = max(l1, change.sum()), max(l2, (change**2).sum())
    assert l1 <= query.spec.grid_l1
    assert l2 <= round(query.spec.grid_l2**2)
    if candidates >= top:
        assert l1 == query.spec.grid_l1
        assert l2 == round(query.spec.grid_l2**2)


def test_the_halves_in_one_histogram_would_exceed_the_bound():
    query = _query(2, top=8)
    nearest, furthest = _answer(query, [(0, 0)]).reshape(2, -1)
    common = nearest + furthest
    assert np.sqrt((common**2).sum()) / query.spec.scale == pytest.approx(2.121, abs=1e-3)
    assert np.sqrt((common**2).sum()) > query.spec.grid_l2
