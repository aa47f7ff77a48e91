"""The synthetic texts that are nearest to the most held-out texts."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from common.domain import Record
from server.domain import Candidate
from server.evaluation.figures import Measured
from server.evaluation.nearness import NEAREST, nearest_texts
from tests.support.measured_texts import measured_parts


def measured_of(ours, theirs):
    """Return texts and held-out texts with these vectors, (texts, dim)."""
    vectors = {f"{name} {at}": row for name, rows in (("our", ours), ("their", theirs)) for at, row in enumerate(rows)}
    texts = [Candidate(text=f"our {at}", label="a", model="m", round=0) for at in range(len(ours))]
    test = [Record(f"their {at}", "a") for at in range(len(theirs))]

    def embed(wanted):
        return np.array([vectors[text] for text in wanted], dtype=np.float32)

    return Measured(**measured_parts(candidates=texts, test=test, embed=embed))


@pytest.mark.parametrize("nothing", [0.0, float("nan"), float("inf")])
@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (7, 3), (12, 40)])
def test_texts_without_a_direction_neither_vote_nor_get_votes(ours, theirs, nothing):
    """Otherwise those without words would vote for the first text, and those unlike all texts for an empty one."""
    random = np.random.default_rng(ours)
    ours, theirs = random.normal(size=(ours, 3)), random.normal(size=(theirs, 3))
    ours[1::3] = theirs[1::3] = nothing
    directed = [row for at, row in enumerate(theirs) if at % 3 != 1]
    cosines = [
        [-np.inf if at % 3 == 1 else row @ text / np.linalg.norm(text) for at, text in enumerate(ours)]
        for row in directed
    ]
    votes = np.bincount(np.argmax(cosines, axis=1), minlength=len(ours))
    found = dict(nearest_texts(measured_of(ours, theirs))[NEAREST])
    assert found == {at: number for at, number in enumerate(votes) if number}
    assert nearest_texts(measured_of(ours, theirs * nothing)) == {}
    assert nearest_texts(measured_of(ours * nothing, theirs)) == {}


def test_many_texts_take_little_memory():
    random = np.random.default_rng(0)
    measured = measured_of(random.normal(size=(2000, 2)), random.normal(size=(3000, 2)))
    assert len(measured.vectors) + len(measured.test_vectors) == 5000  # kept, as for the other figures
    tracemalloc.start()
    nearest_texts(measured)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6  # all similarities are 24 MB


def test_texts_with_most_votes_come_first_and_nothing_is_listed_without_votes_or_of_sections():
    measured = measured_of([(10, 0), (0, 0.5), (1, 1), (0, 0)], [(0, 1), (0.1, 3), (1, 0.9)])
    assert nearest_texts(measured) == {NEAREST: [[1, 2], [2, 1]]}
    for nothing in ({"test": []}, {"candidates": []}, {"released": ["one text of four sections"]}):
        assert nearest_texts(replace(measured, **nothing)) == {}
