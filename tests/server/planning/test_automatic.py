"""Numbers in place of `auto`."""

import math

import pytest

from server.planning import automatic


@pytest.mark.parametrize(
    ("ratio", "number"), [(0.0, 16), (1.04, 16), (2.2, 16), (2.3, 32), (3.6, 32), (9.6, 128), (math.inf, 128)]
)
def test_more_signal_bears_more_directions(ratio, number):
    assert automatic.directions(ratio) == number


@pytest.mark.parametrize(
    ("ratios", "number"),
    [
        ({2: 9.0, 3: 4.0, 4: 2.0, 5: 0.6}, 5),
        ({2: 1.0, 3: 0.6, 4: 0.4, 5: 0.3}, 3),
        ({2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}, 2),
        ({2: 1.0, 3: 0.9, 4: 0.8, 5: -math.inf}, 4),
    ],
)
def test_as_many_rounds_as_have_a_signal(ratios, number):
    assert automatic.rounds(ratios.__getitem__) == number
