"""Allocation of texts to models and labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InternalError
from server.llm.orders import allocate, dealt, per_label


@settings(deadline=None)
@given(st.integers(0, 10_000), st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(lambda w: sum(w) > 1e-6))
def test_counts_are_exact_and_within_one_of_the_share(total, weights):
    weights = np.array(weights)
    counts = allocate(total, weights)
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert (np.abs(counts - total * weights / weights.sum()) < 1 + 1e-6).all()
    assert (counts[weights == 0] == 0).all()


def test_what_is_left_goes_to_the_largest_fractions_and_of_equals_to_the_first():
    assert list(allocate(100, np.full(3, 1 / 3))) == [34, 33, 33]
    assert list(allocate(10, np.array([0.55, 0.27, 0.18]))) == [5, 3, 2]
    assert list(allocate(2, np.full(3, 1 / 3))) == [1, 1, 0]
    assert list(allocate(1200, np.array([0.1, 0.2, 0.7]))) == [120, 240, 840]
    assert list(allocate(5, np.array([0.3, 0.1 + 0.2, 0.4]))) == [2, 1, 2]


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -0.5], [np.nan, 1.0]])
def test_impossible_weights_are_our_bug(weights):
    with pytest.raises(InternalError, match="weights"):
        allocate(10, np.array(weights))


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 40))
def test_labels_get_even_parts(counts, label_count, before):
    parts = per_label(np.array(counts), label_count, before)
    assert parts.shape == (len(counts), label_count)
    assert list(parts.sum(axis=1)) == counts
    assert (parts.max(axis=1) - parts.min(axis=1) <= 1).all()
    assert np.ptp(parts.sum(axis=0)) <= 1
    assert (parts >= 0).all()


def test_dealing_goes_on_where_it_stopped():
    assert per_label(np.array([2, 2]), 3).tolist() == [[1, 1, 0], [1, 0, 1]]
    assert per_label(np.array([2]), 3, dealt_before=4).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(
    ("counts", "labels"),
    [
        ([7, 3], [1, 9]),
        ([0, 5], [5, 0]),
        ([5], [2, 3]),
        ([100, 50, 1], [90, 11, 50]),
        ([60, 30, 10], [50, 30, 20]),
        ([0], [0]),
    ],
)
def test_models_and_labels_get_all_of_theirs(counts, labels):
    shares = dealt(np.array(counts), np.array(labels))
    assert shares.sum(axis=1).tolist() == counts
    assert shares.sum(axis=0).tolist() == labels
    assert shares.min() >= 0


def test_each_model_gets_about_its_part_of_each_label():
    shares = dealt(np.array([60, 30, 10]), np.array([50, 30, 20]))
    assert np.abs(shares - np.outer([60, 30, 10], [0.5, 0.3, 0.2])).max() <= 1
