"""Orders for labels that want different numbers of texts."""

import numpy as np
import pytest

from server.llm.orders import dealt


@pytest.mark.parametrize(
    ("counts", "labels"),
    [
        ([7, 3], [1, 9]),
        ([4, 4, 4], [4, 4, 4]),
        ([0, 5], [5, 0]),
        ([5], [2, 3]),
        ([100, 50, 1], [90, 11, 50]),
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
