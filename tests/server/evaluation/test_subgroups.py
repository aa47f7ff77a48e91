import numpy as np
import pytest

from server.evaluation import subgroups
from server.metrics.intervals import share_interval


def test_worst_group_is_named_with_an_interval_that_holds_for_all():
    hits = np.array([1.0] * 18 + [0.0] * 2 + [1.0] * 5 + [0.0] * 5 + [0.0] * 9)
    labels = ["good"] * 20 + ["bad"] * 10 + ["rare"] * 9
    figure = subgroups.worst(hits, {"label": labels})["worst_label"]
    assert (figure.value, figure.rows) == (0.5, 10)
    assert figure.interval == share_interval(5, 10, level=0.975)
    assert all(fact in figure.definition for fact in ("bad: ", "of 2", "10 rows"))


def test_worst_group_may_be_the_highest_and_small_groups_have_no_figure():
    leaked = np.array([0.0] * 10 + [1.0] * 10)
    of = {"hospital": ["a"] * 10 + ["b"] * 10, "label": [str(number) for number in range(20)]}
    figures = subgroups.worst(leaked, of, highest=True)
    assert list(figures) == ["worst_hospital"]
    assert figures["worst_hospital"].value == 1.0


def test_lengths_are_thirds_and_texts_of_one_length_are_one_group():
    texts = [" ".join(["word"] * number) for number in range(1, 10)]
    thirds = subgroups.lengths(texts)
    assert [thirds.index(group) for group in thirds] == [0] * 3 + [3] * 3 + [6] * 3
    assert len(set(subgroups.lengths(["two words"] * 4))) == 1


def test_interval_of_the_worst_of_equal_groups_misses_in_a_twentieth_at_most():
    rng = np.random.default_rng(3)
    labels = np.repeat([*"abcdefghij"], 40)
    lowest, misses = [], 0
    for _ in range(200):
        figure = subgroups.worst(rng.binomial(1, 0.8, 400).astype(float), {"label": [*labels]})["worst_label"]
        lowest.append(figure.value)
        misses += not figure.interval[0] <= 0.8 <= figure.interval[1]
    assert misses <= 20  # 10 expected at most; a false alarm in 1 of 600 cases
    assert np.mean(lowest) == pytest.approx(0.7, abs=0.02)  # as the module says; 8 standard errors
