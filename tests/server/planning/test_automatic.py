"""Numbers in place of `auto`."""

import math

import pytest

from server.planning import automatic


@pytest.mark.parametrize(
    ("records", "epsilon", "number"),
    [
        (None, 4.0, 8),
        (100, 1.0, 8),
        (100, 4.0, 16),
        (300, 1.0, 16),
        (300, 4.0, 32),
        (1000, 1.0, 32),
        (10, math.inf, 32),
    ],
)
def test_more_signal_bears_more_directions(records, epsilon, number):
    assert automatic.directions(labels=10, records=records, epsilon=epsilon, delta=1e-5) == number


def test_more_labels_share_the_records():
    asked = {"records": 300, "epsilon": 1.0, "delta": 1e-5}
    assert automatic.directions(labels=10, **asked) > automatic.directions(labels=77, **asked)


@pytest.mark.parametrize(
    ("ratios", "number"),
    [
        ({2: 9.0, 3: 4.0, 4: 2.0, 5: 0.6}, 5),
        ({2: 1.0, 3: 0.6, 4: 0.4, 5: 0.3}, 3),
        ({2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}, 2),
        ({2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1}, 5),  # rounds that ask nothing cost nothing
        ({2: 1.0, 3: 1.0, 4: 1.0, 5: -math.inf}, 4),
    ],
)
def test_as_many_rounds_as_have_a_signal(ratios, number):
    assert automatic.rounds(ratios.__getitem__) == number
