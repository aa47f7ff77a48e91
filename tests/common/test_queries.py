import math

import numpy as np
import pytest

from common.errors import ConfigError, ProtocolError
from common.queries import Votes, VotesSpec


def _votes(vectors=((1.0, 0.0), (0.0, 1.0)), labels=(0, 1), **spec):
    return Votes(
        spec=VotesSpec(**{"top": 8, **spec}),
        vectors=np.array(vectors, dtype=np.float32),
        labels=np.array(labels, dtype=np.int32),
    )


@pytest.mark.parametrize(
    ("spec", "l1", "l2"),
    [
        ({"top": 8}, 4 - 2**-6, math.sqrt(8 / 3 * (1 - 4.0**-8))),
        ({"top": 8, "furthest": False}, 2 - 2**-7, 1.154691),
        ({"top": 1, "furthest": False}, 1, 1),
        ({"top": 1}, 2, math.sqrt(2)),
        ({"top": 3, "max_records": 8}, 8 * 3.5, 8 * math.sqrt(8 / 3 * (1 - 4.0**-3))),
    ],
)
def test_sensitivities_in_votes_are_the_derived_ones(spec, l1, l2):
    votes = VotesSpec(**spec)
    assert votes.sensitivity_l1 == pytest.approx(l1, rel=1e-12)
    assert votes.sensitivity_l2 == pytest.approx(l2, rel=1e-6)


def test_the_default_grid():
    spec = VotesSpec(top=8)
    assert spec.scale == 128
    assert spec.grid_l1 == 510
    assert sum(shift**2 for shift in spec.shifts) == 43690 == 2 * (4**8 - 1) // 3
    assert spec.grid_l2**2 == pytest.approx(43690)
    assert sorted(spec.shifts) == sorted([2**q for q in range(8)] * 2)
    assert VotesSpec(top=3, furthest=False, max_records=5).shifts == (5, 10, 20)


def test_length_and_largest_value():
    assert VotesSpec(top=8).length(7) == 14 == _votes(np.eye(7), range(7)).length
    assert VotesSpec(top=8, furthest=False).length(7) == 7
    assert VotesSpec(top=8).largest(300) == 300 * 128


@pytest.mark.parametrize(
    "spec",
    [{"top": 0}, {"top": 21}, {"top": 8.0}, {"top": True}, {"top": 8, "max_records": 0}, {"top": 8, "furthest": 1}],
)
def test_impossible_specifications_are_refused(spec):
    with pytest.raises(ConfigError):
        VotesSpec(**spec)


@pytest.mark.parametrize(
    ("vectors", "labels"),
    [
        (np.eye(2, dtype=np.float64), np.zeros(2, np.int32)),
        (np.eye(2, dtype=np.float32)[0], np.zeros(2, np.int32)),
        (np.empty((0, 2), dtype=np.float32), np.zeros(0, np.int32)),
        (np.eye(2, dtype=np.float32), np.zeros(3, np.int32)),
        (np.eye(2, dtype=np.float32), np.zeros(2, np.int64)),
        (np.eye(2, dtype=np.float32), np.array([0, -1], np.int32)),
        (2 * np.eye(2, dtype=np.float32), np.zeros(2, np.int32)),
        (np.full((2, 2), np.nan, dtype=np.float32), np.zeros(2, np.int32)),
        (np.full((2, 2), np.inf, dtype=np.float32), np.zeros(2, np.int32)),
    ],
)
def test_malformed_votes_are_refused(vectors, labels):
    with pytest.raises(ProtocolError):
        Votes(spec=VotesSpec(top=1), vectors=vectors, labels=labels)


def test_digest_depends_on_every_part_and_on_nothing_else():
    reference = _votes()
    assert _votes().digest() == reference.digest()
    changed = [
        _votes(top=7),
        _votes(furthest=False),
        _votes(max_records=2),
        _votes(vectors=((0.0, 1.0), (1.0, 0.0))),
        _votes(vectors=((1.0, 1e-7), (0.0, 1.0))),
        _votes(labels=(1, 0)),
    ]
    assert len({query.digest() for query in (*changed, reference)}) == 7
    # Memory layout is not content.
    fortran = Votes(spec=reference.spec, vectors=np.asfortranarray(reference.vectors), labels=reference.labels)
    assert fortran.digest() == reference.digest()
