import numpy as np
import pytest

from server.domain import Task
from server.operators.selection import choose_parents, offspring

TASK = Task(name="t", kind="note", labels={"a": "A", "b": "B"})
LABELS = np.array([0, 1, 0, 1, 0, 1])


def chosen(votes, counts=(2, 2), *, select="rank", threshold=0.0, seed=0, labels=LABELS):
    rng = np.random.default_rng(seed)
    return choose_parents(
        np.array(votes, dtype=float), labels, counts, select=select, threshold=threshold, rng=rng, task=TASK
    )


def test_the_most_voted_of_each_label_best_first_of_equals_the_first():
    assert chosen([1, 5, 3, 5, 3, 6]) == ([[2, 4], [5, 1]], [])


def test_fewer_where_fewer_exceed_the_threshold():
    assert chosen([1, 5, 3, 2, 2, 2], threshold=2) == ([[2], [1]], [])


@pytest.mark.parametrize("select", ["rank", "sample"])
def test_a_label_without_votes_above_the_threshold_is_drawn_uniformly_without_replacement_and_says_so(select):
    parents, notes = chosen([-1, 5, 0, 4, -2, 3], select=select)
    assert len(parents[0]) == len(set(parents[0])) == 2
    assert set(parents[0]) <= {0, 2, 4}
    assert [note[:3] for note in notes] == ["a: "]
    drawn = {tuple(chosen([-1, 5, 0, 4, -2, 3], select=select, seed=seed)[0][0]) for seed in range(40)}
    assert drawn == {(0, 2), (0, 4), (2, 4)}


def test_uniform_survivors_are_no_more_than_there_are():
    assert chosen([0] * 6, (5, 5))[0] == [[0, 2, 4], [1, 3, 5]]


def test_draws_are_in_proportion_to_votes_above_the_threshold():
    # 4000 draws with probabilities 1/4, 3/4: standard deviation 27. The generator's seed is fixed, so is the outcome.
    parents, _ = chosen([3, 1, 5, 2, -9, 1.5], (4000, 10), select="sample", threshold=2)
    counts = np.bincount(parents[0], minlength=6)
    assert counts[[1, 3, 4, 5]].sum() == 0
    assert abs(counts[0] - 1000) < 4 * 27
    assert parents[0] == sorted(parents[0])


def test_a_label_without_candidates_has_no_parents():
    assert chosen([1, 2], (1, 1), labels=np.array([0, 0]))[0] == [[1], []]


@pytest.mark.parametrize(
    ("parents", "count", "families"),
    [
        ([4, 2], 5, [(4, 3), (2, 2)]),
        ([1, 1, 7], 3, [(1, 2), (7, 1)]),
        ([3, 5, 6], 2, [(3, 1), (5, 1), (6, 0)]),
        ([3], 0, [(3, 0)]),
        ([], 4, []),
    ],
)
def test_variations_are_dealt_in_turn(parents, count, families):
    assert offspring(parents, count) == families
