import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.operators.genetic import suppress
from tests.support.asking import unit
from tests.support.lanes import slow


def plain(votes, vectors, count, tau, step):
    """The paper's words, one candidate and one pair at a time."""
    wide = vectors.astype(np.float64)
    order = sorted(range(len(votes)), key=lambda i: (-votes[i], i))
    steps = 0
    while True:
        threshold = min(1.0, tau + steps * step)
        chosen = []
        for i in order:
            if len(chosen) < count and (threshold >= 1 or all(wide[i] @ wide[j] <= threshold for j in chosen)):
                chosen.append(i)
        if len(chosen) >= min(count, len(order)) or threshold >= 1 or not step:
            return chosen, threshold
        steps += 1


@st.composite
def populations(draw):
    n, dimensions = draw(st.integers(1, 40)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = rng.normal(size=(draw(st.integers(1, n)), dimensions))
    spread = draw(st.sampled_from([0.0, 0.1, 1.0]))
    vectors = unit(centres[rng.integers(len(centres), size=n)] + spread * rng.normal(size=(n, dimensions)))
    return np.round(rng.normal(0, 2, n)), vectors, draw(st.integers(1, n + 3))


@settings(max_examples=100, deadline=None)
@given(populations(), st.floats(-1, 1), st.sampled_from([0.0, 0.01, 0.1]))
def test_the_same_elites_as_the_plain_definition(population, tau, step):
    votes, vectors, count = population
    elites = suppress(votes, vectors, count, tau=tau, step=step)
    assert (elites.positions.tolist(), elites.tau) == plain(votes, vectors, count, tau, step)


@pytest.mark.parametrize("tau", [slow(0.0), 0.3, slow(0.6)])
def test_the_same_over_several_blocks_of_rows(tau):
    rng = np.random.default_rng(1)
    vectors = unit(rng.normal(size=(40, 16))[rng.integers(40, size=450)] + 0.4 * rng.normal(size=(450, 16)))
    votes = np.round(rng.normal(0, 3, 450))
    elites = suppress(votes, vectors, 160, tau=tau)
    expected, threshold = plain(votes, vectors, 160, tau, 0.01)
    assert (elites.positions.tolist(), elites.tau) == (expected, threshold)
    assert tau < threshold < 1, "a case in which tau grows, and suppression still does something"
