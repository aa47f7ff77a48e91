import numpy as np
import pytest

from server.operators.selection import draw_exemplars, good_and_bad, model_weights, top_per_label


def test_the_best_of_each_label_with_ties_to_the_first():
    scores = np.array([5, 9, 5, -1, 9, 5, 7])
    labels = np.array([0, 1, 0, 0, 1, 0, 0])
    best = top_per_label(scores, labels, 3, 3)
    assert [list(chosen) for chosen in best] == [[6, 0, 2], [1, 4], []]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("candidates", range(24))
def test_good_and_bad_pools_are_halves_at_most_and_share_no_candidate(candidates, size):
    draws = np.random.default_rng([candidates, size])
    # A second label lies between, and few different scores make many ties.
    labels = draws.permutation(np.repeat([0, 1, 2], [candidates, 5, 0]))
    alike = draws.integers(4, size=len(labels)).astype(float)
    for near, far in ((alike, -alike), (alike, alike), draws.normal(size=(2, len(labels)))):
        good, bad = good_and_bad((near, far), labels, size, 3)
        plain = [top_per_label(scores, labels, size, 3) for scores in (near, far)]
        for label, number in enumerate((candidates, 5, 0)):
            assert len(good[label]) == min(size, max(1, number // 2), number)
            assert len(bad[label]) == min(size, number // 2)
            assert {*labels[good[label]], *labels[bad[label]]} <= {label}
            assert not {*good[label]} & {*bad[label]}
            if not {*plain[0][label]} & {*plain[1][label]}:  # as in WASP's Algorithm 1
                assert (list(good[label]), list(bad[label])) == tuple(list(pools[label]) for pools in plain)
        alone, none = good_and_bad((near,), labels, size, 3)
        assert list(map(list, alone)) == list(map(list, good))
        assert list(map(list, none)) == [[], [], []]


def test_weights_follow_the_paper():
    # s = H / 20; w = (.6 / (2/5), .2 / (2/5), .2 / (1/5)) = (1.5, .5, 1), normalised by 3.
    weights = model_weights(np.array([4, 8, 1, 3, 4]), np.array([0, 0, 1, 1, 2]), 3)
    np.testing.assert_allclose(weights, [1.5 / 3, 0.5 / 3, 1 / 3])


def test_a_sum_below_zero_counts_as_zero():
    weights = model_weights(np.array([4.0, -6.0, 1.0, 1.0]), np.array([0, 1, 2, 2]), 3)
    np.testing.assert_allclose(weights, [4 / 5, 0, 1 / 5])  # though the votes sum to 0
    weights = model_weights(np.array([4.0, -60.0]), np.array([0, 1]), 2)
    np.testing.assert_allclose(weights, [1, 0])  # though they sum to less than 0


@pytest.mark.parametrize("votes", [[0, 0], [-1.5, 0.0], [-3, -4]])
def test_without_a_vote_there_are_no_weights(votes):
    assert model_weights(np.array(votes), np.array([0, 1]), 2) is None


def test_a_model_without_candidates_counts_as_average():
    # Votes a text: 3, 1 and, of all four texts, 2 for the one that wrote none.
    weights = model_weights(np.array([3, 3, 1, 1]), np.array([0, 0, 1, 1]), 3)
    np.testing.assert_allclose(weights, [3 / 6, 1 / 6, 2 / 6])


def test_exemplars_are_half_of_each_pool():
    good, bad = draw_exemplars(range(8), range(10, 18), 7, np.random.default_rng(0))
    assert (len(set(good)), len(set(bad))) == (4, 3)
    assert set(good) <= set(range(8))
    assert set(bad) <= set(range(10, 18))


def test_small_pools_are_used_up_and_an_empty_one_gives_nothing():
    good, bad = draw_exemplars(["a", "b"], [], 8, np.random.default_rng(0))
    assert sorted(good) == ["a", "b"]
    assert bad == []


def test_no_exemplar_is_good_and_bad():
    for size in range(2, 9):
        good, bad = draw_exemplars(["a", "b", "c"], ["c", "d", "a"], size, np.random.default_rng(size))
        assert set(bad) <= {"d"}
        assert len(good) == min(3, size - size // 2)


def test_every_exemplar_of_a_pool_is_drawn_equally_often_and_in_any_place():
    generator = np.random.default_rng(1)
    drawn = np.array([draw_exemplars(range(8), range(8), 8, generator)[0] for _ in range(2000)])
    # 250 of each number expected in each place; 5 standard deviations, and the seed is fixed.
    for place in range(4):
        counts = np.bincount(drawn[:, place], minlength=8)
        assert (np.abs(counts - 250) < 5 * np.sqrt(2000 * (1 / 8) * (7 / 8))).all()
