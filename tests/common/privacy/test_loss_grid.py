"""Losses on a grid: the library's numbers, from the library's distributions."""

import functools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from common.errors import InternalError
from common.privacy.gaussian import gaussian_delta
from common.privacy.loss_grid import TAIL, LossGrid
from tests.support.lanes import slow, slow_but

STEP = 3e-4
MECHANISMS = {
    "gaussian": lambda: pld.from_discrete_gaussian_mechanism(20.3, sensitivity=9, value_discretization_interval=STEP),
    "laplace": lambda: pld.from_discrete_laplace_mechanism(0.13, sensitivity=7, value_discretization_interval=STEP),
    "two losses": lambda: pld.from_randomized_response(0.6, 2, value_discretization_interval=STEP),
    "a subsample, with": lambda: pld.from_gaussian_mechanism(
        1.3, value_discretization_interval=STEP, sampling_prob=0.2
    ),
}


@functools.cache
def dense(mechanism):
    """The library's distribution, and ours of the same numbers."""
    theirs = MECHANISMS[mechanism]()._pmf_remove.to_dense_pmf()
    return theirs, LossGrid(STEP, theirs._lower_loss, theirs._probs.copy(), theirs._infinity_mass)


def same(ours, theirs):
    assert (ours.first, ours.probabilities.size) == (theirs._lower_loss, theirs.size)
    assert np.allclose(ours.probabilities, theirs._probs, rtol=1e-10, atol=TAIL)
    assert ours.infinite == pytest.approx(theirs._infinity_mass, rel=1e-12)


# In the other order they are the same sums.
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (one, other) if at <= beside else slow(one, other)
        for at, one in enumerate(MECHANISMS)
        for beside, other in enumerate(MECHANISMS)
    ],
)
def test_two_losses_compose_as_in_the_library(one, other):
    (theirs, ours), (their_other, our_other) = dense(one), dense(other)
    same(ours.composed(our_other), theirs.compose(their_other, 1e-15))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("times", slow_but({2, 200}, [1, 2, 9, 200]))
def test_a_loss_composes_with_itself_as_in_the_library(mechanism, times):
    theirs, ours = dense(mechanism)
    same(ours.repeated(times), theirs if times == 1 else theirs.self_compose(times))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("times", [1, 9])
def test_deltas_and_epsilons_are_the_librarys(mechanism, times):
    theirs, ours = dense(mechanism)
    if times > 1:
        theirs, ours = theirs.self_compose(times), ours.repeated(times)
    epsilons = np.arange(-3000, 6001, 7) * STEP
    assert np.allclose(ours.deltas(epsilons), theirs.get_delta_for_epsilon(epsilons), rtol=1e-10, atol=1e-14)
    for delta in (1e-9, 1e-6, 0.03, 0.2, 0.9):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-6, abs=1e-12)


def test_an_infinite_loss_allows_no_smaller_delta():
    grid = LossGrid(STEP, -1, np.full(3, 0.3), 0.1)
    assert grid.epsilon(0.0999) == math.inf
    assert grid.epsilon(0.1) == pytest.approx(STEP)
    assert grid.epsilon(0.5) == 0


@pytest.mark.parametrize(
    ("probabilities", "infinite"), [([0.1, math.nan, 0.9], 0.0), ([0.1, 0.9], math.nan), ([0.1, 0.8], 0.05)]
)
def test_losses_that_were_lost_or_are_no_numbers_give_no_epsilon(probabilities, infinite):
    with pytest.raises(InternalError, match="all losses"):
        LossGrid(0.1, -1, np.array(probabilities), infinite).epsilon(1e-6)


def test_losses_on_different_grids_do_not_compose():
    one, other = (LossGrid(step, 0, np.array([0.5, 0.5]), 0.0) for step in (0.1, 0.2))
    with pytest.raises(InternalError, match="same step"):
        one.composed(other)


def test_what_is_connected_has_the_deltas_that_it_was_made_of():
    points = np.array([-40, -7, 0, 3, 50])
    deltas = np.array([gaussian_delta(point * 0.02, 1.3) for point in points])
    connected = LossGrid.connected(0.02, points, deltas)
    assert connected.probabilities.sum() + connected.infinite == pytest.approx(1)
    assert np.allclose(connected.deltas(points * 0.02), deltas)


def test_rounding_errors_only_ever_raise_a_delta():
    deltas = np.array([0.6, 0.3, 0.3 + 1e-9, 0.1])
    connected = LossGrid.connected(0.5, np.arange(4), deltas)
    assert np.all(connected.deltas(np.arange(4) * 0.5) >= deltas - 1e-15)
