"""The composed privacy loss against its definition, and against plans made to be expensive."""

import functools
import itertools
import math
import time

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from common.privacy import losses
from common.privacy.accountant import ReleasedAnswers, epsilon, epsilon_by_norm, trade_off
from common.privacy.gaussian import gaussian_delta, gaussian_epsilon, rounded_mu_squared
from common.privacy.norms import amplified_epsilon
from common.privacy.sensitivity import Sensitivity
from common.queries.votes import VotesSpec
from tests.support.lanes import slow

DELTA = 1e-5
ONE = Sensitivity.of((1,), 1)


def _outcomes(mechanism, scale, shift):
    """Probabilities of all outcomes with the unit, (n,), and without it."""
    if mechanism == "pure":
        truth = 1 / (1 + math.exp(-shift / scale))
        return np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    reach = math.ceil((9 if mechanism == "gaussian" else 30) * scale) + shift
    values = np.arange(-reach, reach + 1)

    def around(center):
        away = np.abs(values - center)
        weights = np.exp(-(away**2) / (2 * scale**2) if mechanism == "gaussian" else -away / scale)
        return weights / weights.sum()

    return around(shift), around(0)


def _together(parts):
    return functools.reduce(
        lambda one, other: tuple(np.outer(p, q).ravel() for p, q in zip(one, other, strict=True)), parts
    )


def _true_delta(pair, eps):
    one, other = pair
    return max(np.maximum(p - math.exp(eps) * q, 0).sum() for p, q in ((one, other), (other, one)))


def _assert_tight(releases, pair, delta=DELTA):
    claimed = epsilon(releases, delta)
    assert claimed <= epsilon_by_norm(releases, delta)
    assert _true_delta(pair, claimed) <= delta * (1 + 1e-6)
    assert _true_delta(pair, claimed * 0.998 - 1e-4) > delta
    variation, bound = _true_delta(pair, 0.0), trade_off(releases, delta).delta(0.0)
    assert variation - 1e-9 <= bound <= variation * 1.002 + 1e-4


MIXTURES = {
    "fine Gaussian": [("gaussian", 0.6, 1)],
    "Gaussian": [("gaussian", 1.5, 1)],
    "Gaussians": [("gaussian", 2.5, 3), ("gaussian", 8.0, 2)],
    "Laplace": [("laplace", 2.0, 1), ("laplace", 2.0, 3)],
    "pure": [("pure", 1.0, 1), ("pure", 3.0, 1), ("pure", 0.7, 1)],
    "Gaussian and Laplace": [("gaussian", 3.0, 2), ("laplace", 4.0, 2)],
    "all": [("gaussian", 4.0, 2), ("laplace", 3.0, 1), ("pure", 2.0, 1), ("pure", 2.0, 1)],
}


def _releases(mixture, **subsample):
    return [
        ReleasedAnswers(mechanism=mechanism, scale=scale, sensitivity=Sensitivity.of((shift,), 1), **subsample)
        for mechanism, scale, shift in mixture
    ]


@pytest.mark.parametrize("delta", [1e-3, 1e-7])
@pytest.mark.parametrize("name", MIXTURES)
def test_composition_against_its_definition(name, delta):
    mixture = MIXTURES[name]
    _assert_tight(_releases(mixture), _together([_outcomes(*part) for part in mixture]), delta)


@pytest.mark.parametrize("rate", [0.01, 0.8])
@pytest.mark.parametrize("name", MIXTURES)
def test_one_subsample_against_its_definition(name, rate):
    mixture = MIXTURES[name]
    one, other = _together([_outcomes(*part) for part in mixture])
    _assert_tight(_releases(mixture, rate=rate, draw="once"), (rate * one + (1 - rate) * other, other))


@pytest.mark.parametrize(("first", "second"), [("Gaussian", "Gaussian"), ("Gaussian", "pure")])
def test_two_subsamples_and_the_rest_against_their_definition(first, second):
    pairs, releases = [_outcomes("laplace", 3.0, 1)], _releases([("laplace", 3.0, 1)])
    for name, rate, draw in ((first, 0.2, "a"), (second, 0.5, "b")):
        one, other = _together([_outcomes(*part) for part in MIXTURES[name]])
        pairs.append((rate * one + (1 - rate) * other, other))
        releases += _releases(MIXTURES[name], rate=rate, draw=draw)
    _assert_tight(releases, _together(pairs))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_unit_that_moves_less_is_hidden_too(mechanism):
    release = ReleasedAnswers(mechanism=mechanism, scale=3.0, sensitivity=Sensitivity.of((2, 3), 1))
    claimed = epsilon([release], DELTA)
    for shifts in itertools.product((0, 1, 2), (0, 1, 2, 3)):
        pair = _together([_outcomes(mechanism, 3.0, shift) for shift in shifts])
        assert _true_delta(pair, claimed) <= DELTA * (1 + 1e-6)


def test_random_mixtures_against_their_definition():
    """Twenty mixtures drawn once for all: never less than the truth, and near it."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        mixture = [
            (str(rng.choice(["gaussian", "laplace", "pure"])), float(rng.uniform(1.8, 4)), int(rng.integers(1, 4)))
            for _ in range(rng.integers(1, 3))
        ]
        rate = float(rng.choice([1.0, rng.uniform(0.05, 0.95)]))
        one, other = _together([_outcomes(*part) for part in mixture])
        releases = _releases(mixture, rate=rate, draw="once" if rate < 1 else "")
        _assert_tight(releases, (rate * one + (1 - rate) * other, other))


def test_ten_rounds_on_subsamples_of_their_own_against_the_library():
    sensitivity = Sensitivity(l1=1000, l2_squared=10**6, touched=1)
    rounds = [
        ReleasedAnswers(mechanism="gaussian", sensitivity=sensitivity, scale=2000.0, rate=0.1, draw=f"round {i}")
        for i in range(10)
    ]
    oracle = pld.from_gaussian_mechanism(2.0, sampling_prob=0.1).self_compose(10).get_epsilon_for_delta(DELTA)
    assert epsilon(rounds, DELTA) == pytest.approx(oracle, rel=1e-4)
    assert epsilon(rounds, DELTA) < epsilon_by_norm(rounds, DELTA)


@pytest.mark.parametrize("rate", [0.05, 0.8])
def test_one_subsample_for_all_rounds_costs_at_most_the_classical_amplification(rate):
    """METHODS, DPGA: ln(1 + q (e^epsilon - 1)) at q delta, from the epsilon without subsampling."""
    plain = ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=4.0, times=10)
    sampled = ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=4.0, times=10, rate=rate, draw="once")
    classical = amplified_epsilon(epsilon([plain], DELTA / rate), rate)
    assert epsilon([sampled], DELTA) <= classical * (1 + 1e-4)
    apart = [
        ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=4.0, rate=rate, draw=f"{i}") for i in range(10)
    ]
    assert epsilon(apart, DELTA) < classical


def test_laplace_needs_no_delta_alone_and_gains_from_one_together():
    votes = VotesSpec(top=8).sensitivity
    assert epsilon([ReleasedAnswers(mechanism="laplace", sensitivity=votes, scale=510.0)], 1e-20) == 1
    sketch = Sensitivity.of((90,) * 1000, 1)
    release = ReleasedAnswers(mechanism="laplace", sensitivity=sketch, scale=90 * 1000 / 5)
    assert epsilon_by_norm([release], DELTA) == 5
    # A thousand answers of 1/200: about a Gaussian of mu = sqrt(1000) / 200.
    assert epsilon([release], DELTA) == pytest.approx(gaussian_epsilon(DELTA, math.sqrt(1000) / 200), rel=0.01)
    only_l1 = Sensitivity(l1=sketch.l1, l2_squared=sketch.l2_squared, touched=1000)
    assert epsilon([ReleasedAnswers(mechanism="laplace", sensitivity=only_l1, scale=release.scale)], DELTA) > 4.9
    coarse = Sensitivity.of((20_000, 20_000), 1)
    assert epsilon([ReleasedAnswers(mechanism="laplace", sensitivity=coarse, scale=40_000.0)], DELTA) == pytest.approx(
        1, abs=1e-4
    )


def test_many_small_answers_are_not_blown_up_by_the_grid():
    many = ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=1e3, times=10_000)
    assert epsilon([many], DELTA) == pytest.approx(gaussian_epsilon(DELTA, 0.1), rel=1e-3)


@functools.cache
def _hostile():
    wide = Sensitivity(l1=2**60, l2_squared=2**80, touched=2**50)
    votes = VotesSpec(top=20).sensitivity
    gaussians = [ReleasedAnswers(mechanism="gaussian", sensitivity=votes, scale=1e6 + i, times=5) for i in range(3000)]
    return {
        "huge noise": [ReleasedAnswers(mechanism="gaussian", sensitivity=wide, scale=1e300, times=10**9, shares=10**9)],
        "huge times": [ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=1e7, times=10**12)],
        "many scales": gaussians,
        "small scales": [
            ReleasedAnswers(mechanism="gaussian", sensitivity=votes, scale=900 + i / 9) for i in range(3000)
        ],
        "many Laplace": [ReleasedAnswers(mechanism="laplace", sensitivity=votes, scale=1e8 + i) for i in range(3000)],
        "many pure": [ReleasedAnswers(mechanism="pure", sensitivity=wide, scale=2**70 + 1e12 * i) for i in range(3000)],
        "many shifts": [
            ReleasedAnswers(mechanism="laplace", sensitivity=Sensitivity.of((1,) * 2**20, 1), scale=2.0**21)
        ],
        "subsamples": [
            ReleasedAnswers(mechanism="gaussian", sensitivity=votes, scale=1e6 + i, rate=1e-6, draw=f"{i}")
            for i in range(500)
        ],
        "rates": [
            ReleasedAnswers(mechanism="gaussian", sensitivity=ONE, scale=5.0, rate=rate, draw=f"{rate}")
            for rate in (1e-12, 1 - 1e-16)
        ],
        "very many subsamples": [
            ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=1e6, rate=0.5, draw=f"{i // 3}")
            for i in range(3000)
        ],
        "many equal": [ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=1e9, times=10**12)],
        "equal": [ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=1e5, times=200_000)],
        "as many as are computed": [
            _releases([("gaussian", 900.0 + i, 250)], rate=0.5, draw=f"{i}")[0] for i in range(6)
        ],
        "tiny noise": [ReleasedAnswers(mechanism="gaussian", sensitivity=wide, scale=1e-300)],
        "small noise": [ReleasedAnswers(mechanism="laplace", sensitivity=wide, scale=1e-200)],
        "tiny Laplace": [ReleasedAnswers(mechanism="laplace", sensitivity=wide, scale=1e-300)],
    }


@pytest.mark.parametrize("name", _hostile())
def test_hostile_plans_are_priced_in_bounded_time(name):
    releases = _hostile()[name]
    started = time.process_time()
    exact, bound = epsilon(releases, DELTA), epsilon_by_norm(releases, DELTA)
    assert time.process_time() - started < 10
    assert 0 <= exact <= bound


def test_the_continuous_gaussian_beyond_the_lattice():
    near = ReleasedAnswers(mechanism="gaussian", sensitivity=Sensitivity.of((500,), 1), scale=1000.0)
    beyond = ReleasedAnswers(mechanism="gaussian", sensitivity=Sensitivity.of((500,), 1), scale=1000.1)
    assert epsilon([beyond], DELTA) == pytest.approx(
        gaussian_epsilon(DELTA, math.sqrt(rounded_mu_squared(500**2, 1000.1)))
    )
    assert epsilon([near], DELTA) == pytest.approx(epsilon([beyond], DELTA), rel=2e-4)


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 10_001), (400.0, 20_000), (1000.0, 12_000)])
@pytest.mark.parametrize("rate", [1.0, 0.1, 1e-3])
def test_gaussian_noise_is_never_taken_for_pure(scale, shift, rate):
    # Shifts above the lattice's limit, at a sigma below its own: by norm, never epsilon = l1 / sigma.
    moved = Sensitivity.of((shift,), 1)
    release = ReleasedAnswers(
        mechanism="gaussian", sensitivity=moved, scale=scale, rate=rate, draw="" if rate == 1 else "draw"
    )
    claimed = epsilon([release], 1e-5)
    mu = shift / scale
    true = 0.0 if math.isinf(claimed) else rate * gaussian_delta(math.log1p(math.expm1(claimed) / rate), mu)
    assert true <= 1e-5 * 1.001


STEP = 3.3e-4
LIBRARY = {
    "gaussian": lambda piece: pld.from_discrete_gaussian_mechanism(
        piece.scale, sensitivity=piece.shift, value_discretization_interval=STEP, use_connect_dots=True
    ),
    "laplace": lambda piece: pld.from_discrete_laplace_mechanism(
        1 / piece.scale, sensitivity=piece.shift, value_discretization_interval=STEP, use_connect_dots=True
    ),
    "normal": lambda piece: pld.from_gaussian_mechanism(1 / piece.spread, value_discretization_interval=STEP),
}


@pytest.mark.parametrize("kind", LIBRARY)
@pytest.mark.parametrize(("scale", "shift"), [(0.7, 1), (2.5, 3), slow(31.4, 128), (180.0, 16), (900.0, 1)])
def test_a_loss_has_the_deltas_of_the_librarys(kind, scale, shift):
    piece = losses._Piece(kind, scale, shift, shift / scale, 1)
    ours, theirs = losses._MAKERS[kind](piece, STEP), LIBRARY[kind](piece)
    at = np.linspace(-1, 3, 100) * piece.spread
    assert np.allclose(ours.deltas(at), theirs.get_delta_for_epsilon(at), rtol=1e-9, atol=1e-12)


def test_a_pure_loss_has_the_deltas_of_randomised_response():
    loss = losses._pure(losses._Piece("pure", 1.0, 1, 0.7, 1), STEP)
    at = np.floor(np.linspace(-0.69, 0.69, 50) / STEP) * STEP
    truth = 1 / (1 + math.exp(-0.7))
    deltas = loss.deltas(at)
    assert np.all(deltas >= truth - np.exp(at) * (1 - truth) - 1e-12)
    assert np.allclose(deltas, truth - np.exp(at) * (1 - truth), atol=STEP)
