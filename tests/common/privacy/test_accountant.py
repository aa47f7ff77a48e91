import math
import random

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from common.errors import ConfigError, PlanError
from common.privacy import accountant
from common.privacy.accountant import (
    ReleasedAnswers,
    calibrate,
    continuous_sigma,
    epsilon,
    epsilon_by_norm,
    paper_sigma,
)
from common.privacy.gaussian import gaussian_epsilon, gaussian_mu, sum_gap
from common.privacy.norms import amplified_epsilon
from common.privacy.sensitivity import Sensitivity
from common.queries.votes import VotesSpec

VOTES = VotesSpec(top=8)
SHIFTS = VOTES.sensitivity
ONE = Sensitivity.of((1,), 1)
DELTA = 1e-5


def _votes(sigma, **release):
    return ReleasedAnswers(**{"mechanism": "gaussian", "sensitivity": SHIFTS, "scale": sigma, "times": 4, **release})


def _gaussian(shifts, sigma, **release):
    return ReleasedAnswers(mechanism="gaussian", sensitivity=Sensitivity.of(shifts, 1), scale=sigma, **release)


def _calibrate(**changes):
    target = {
        "mechanism": "gaussian",
        "sensitivity": SHIFTS,
        "times": 4,
        "shares": 1,
        "rate": 1.0,
        "redraw": False,
        "epsilon": 1.0,
        "delta": DELTA,
    }
    return calibrate(**target | changes)


@pytest.mark.parametrize(
    ("target", "paper", "tight", "ratio", "really"),
    [
        (1, 38.76, 12.184, 3.18, 0.283),
        (2, 19.38, 6.512, 2.98, 0.602),
        (4, 9.69, 3.531, 2.74, 1.287),
        (8, 4.85, 1.960, 2.47, 2.788),
    ],
)
def test_calibration_for_four_rounds_of_eight_votes(target, paper, tight, ratio, really):
    sigma = _calibrate(epsilon=target)
    by_paper = paper_sigma(VOTES.paper_l1 * VOTES.grid, 4, target, DELTA)
    assert by_paper / 128 == pytest.approx(paper, abs=0.006)
    assert sigma / 128 == pytest.approx(tight, abs=6e-4)
    assert by_paper / sigma == pytest.approx(ratio, abs=0.006)
    assert epsilon([_votes(by_paper)], DELTA) == pytest.approx(really, abs=6e-4)
    # Never more than asked; and the grid costs next to nothing against the continuous Gaussian.
    assert target * (1 - 1e-5) < epsilon([_votes(sigma)], DELTA) <= target
    assert sigma / continuous_sigma(SHIFTS, 4, target, DELTA) == pytest.approx(1, abs=2e-5)


def test_exact_epsilon_at_the_reference_scale():
    """The lattice's own value, and ours: the two differ by what a grid of losses costs."""
    oracle = pld.identity()
    for shift in sorted(set(SHIFTS.shifts)):
        one = pld.from_discrete_gaussian_mechanism(1559.5647, sensitivity=shift, use_connect_dots=True)
        oracle = oracle.compose(one.self_compose(8))
    assert oracle.get_epsilon_for_delta(DELTA) == pytest.approx(1.0000008, abs=5e-8)
    assert 1 - 5e-7 < epsilon([_votes(1559.5647)], DELTA) <= 1.0000008


@pytest.mark.parametrize("sigma", [251.0, 1559.5647])
def test_the_bound_by_norm_lies_just_above_the_exact_value(sigma):
    exact, bound = epsilon([_votes(sigma)], DELTA), epsilon_by_norm([_votes(sigma)], DELTA)
    assert exact <= bound == pytest.approx(exact, rel=1e-4)


def test_user_level_is_accounted_by_norm_and_composes_with_the_rest():
    users = _votes(8 * 1560.0, sensitivity=VotesSpec(top=8, max_records=8).sensitivity)
    assert epsilon([users], DELTA) == epsilon_by_norm([users], DELTA) == pytest.approx(1, abs=1e-3)
    for sigma, times in ((1560.0, 4), (195.0, 1)):
        # A sixteenth of the noise in a quarter of the rounds, of which the lattice is computed.
        both = epsilon([users, _votes(sigma, times=times, sensitivity=Sensitivity.of((4, 8), 1))], DELTA)
        more = math.hypot(gaussian_mu(1, DELTA), math.sqrt(80 * times) / sigma)
        assert both == pytest.approx(gaussian_epsilon(DELTA, more), abs=2e-3)


def test_any_directions_of_a_users_records_stay_below_the_bound():
    """Exact epsilon of shifts that are no multiple of one record's: below the bound by norm, small grid or not."""
    for top, sigma in ((1, 3.0), (2, 5.0)):
        spec = VotesSpec(top=top, max_records=2)
        bound = epsilon([ReleasedAnswers(mechanism="gaussian", sensitivity=spec.sensitivity, scale=sigma)], DELTA)
        one = [2**q for q in range(top)]
        for second in (one, one[::-1], [*one[1:], one[0]]):
            together = tuple(first + other for first, other in zip(one, second, strict=True)) * 2
            assert epsilon([_gaussian(together, sigma)], DELTA) <= bound
        assert epsilon([_gaussian((*one, *one) * 2, sigma)], DELTA) <= bound


def test_composition_counts_answers_not_objects():
    few = _gaussian((1, 2), 20.0, times=4)
    once, twice = (_gaussian((1, 2), 20.0, times=times) for times in (1, 2))
    together = epsilon([few], DELTA)
    assert epsilon([once] * 4, DELTA) == epsilon([twice, twice], DELTA) == together
    assert epsilon([few, once], DELTA) > together
    assert epsilon([few, _gaussian((1,), 200.0)], DELTA) > together


def test_the_order_and_the_names_of_answers_do_not_matter():
    """To the last digit: a plan and the ledger of its run agree."""
    kinds = [
        _gaussian((1, 2), 20.0),
        _gaussian((3,), 30.0, shares=4),
        ReleasedAnswers(mechanism="laplace", sensitivity=ONE, scale=7.0),
        ReleasedAnswers(mechanism="pure", sensitivity=ONE, scale=5.0),
        _gaussian((1,), 6.0, rate=0.5, draw="b"),
        ReleasedAnswers(mechanism="laplace", sensitivity=ONE, scale=3.0, rate=0.5, draw="b"),
    ]
    plan = [ReleasedAnswers(**{**_fields(kind), "times": 3}) for kind in kinds]
    rounds = [_gaussian((2,), 9.0, rate=0.25, draw=f"round {i}") for i in range(3)]
    ledger = [
        *kinds * 3,
        *(ReleasedAnswers(**{**_fields(release), "draw": release.draw + " of a run"}) for release in rounds),
    ]
    random.Random(1).shuffle(ledger)
    for account in (epsilon, epsilon_by_norm):
        assert account([*plan, *rounds], DELTA) == account(ledger, DELTA) < math.inf


def _fields(release):
    return {name: getattr(release, name) for name in release.__slots__}


def test_releases_survive_json():
    release = ReleasedAnswers(
        mechanism="laplace", sensitivity=SHIFTS, scale=7.5, times=3, shares=4, rate=0.5, draw="once"
    )
    assert ReleasedAnswers.from_dict(release.to_dict()) == release


def test_nothing_released_costs_nothing_and_no_noise_costs_everything():
    for account in (epsilon, epsilon_by_norm):
        assert account([], DELTA) == 0
        for mechanism in ("gaussian", "laplace", "pure"):
            assert account([_votes(0.0, mechanism=mechanism)], DELTA) == math.inf
            assert account([_votes(1560.0), _votes(0.0, mechanism=mechanism)], DELTA) == math.inf


@pytest.mark.parametrize("sigma", [1.4, 5.0, 40.0])
def test_noise_that_hides_nothing_costs_everything(sigma):
    assert epsilon([_votes(sigma)], DELTA) == math.inf
    assert epsilon_by_norm([_votes(sigma)], DELTA) == math.inf
    assert epsilon([_votes(sigma / 4, mechanism="laplace")], DELTA) == math.inf


def test_answers_that_hide_something_each_may_hide_nothing_together():
    apart = [_gaussian((14,), 1.0, rate=0.9, draw=f"{i}") for i in range(4)]
    assert epsilon(apart, DELTA) == math.inf


def test_very_large_noise_costs_nothing():
    assert epsilon_by_norm([_votes(1e12)], DELTA) == pytest.approx(0, abs=1e-15)


def test_many_thousand_releases_are_bounded_in_a_moment():
    many = [_votes(50_000.0 + i % 40, draw=f"{i % 90}", rate=0.5) for i in range(5000)]
    assert 0.1 < epsilon_by_norm(many, DELTA) < math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"mechanism": "uniform"},
        {"scale": -1.0},
        {"scale": math.nan},
        {"scale": math.inf},
        {"times": 0},
        {"shares": 0},
        {"rate": 0.0, "draw": "once"},
        {"rate": 1.1},
        {"rate": 0.5},
        {"draw": "once"},
    ],
)
def test_impossible_releases_are_refused(wrong):
    with pytest.raises(ConfigError):
        _votes(**{"sigma": 1.0, **wrong})


def test_one_subsample_has_one_rate():
    with pytest.raises(ConfigError, match="once"):
        epsilon([_gaussian((1,), 4.0, rate=rate, draw="once") for rate in (0.5, 0.6)], DELTA)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_impossible_delta_is_refused(delta):
    for account in (epsilon, epsilon_by_norm):
        with pytest.raises(ConfigError):
            account([_votes(1560.0)], delta)
    with pytest.raises(ConfigError):
        _calibrate(delta=delta)


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan])
def test_impossible_epsilon_is_refused(target):
    with pytest.raises(ConfigError):
        _calibrate(epsilon=target)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "pure"])
def test_infinite_epsilon_means_no_noise(mechanism):
    assert _calibrate(mechanism=mechanism, epsilon=math.inf) == 0


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_what_cannot_be_proved_cannot_be_calibrated(mechanism, rate):
    with pytest.raises(PlanError, match="delta 1e-40"):
        _calibrate(mechanism=mechanism, sensitivity=ONE, times=1, rate=rate, delta=1e-40)


def test_a_tiny_delta_is_reached_by_norm():
    sigma = _calibrate(sensitivity=SHIFTS, delta=1e-20)
    assert sigma == pytest.approx(continuous_sigma(SHIFTS, 4, 1.0, 1e-20), rel=1e-5)


def test_calibration_on_the_smallest_grids():
    sigma = _calibrate(sensitivity=ONE, times=1, epsilon=8.0)
    assert sigma == pytest.approx(continuous_sigma(ONE, 1, 8.0, DELTA))
    # Between integers noise hides a little more.
    assert 6.5 < epsilon([_gaussian((1,), sigma)], DELTA) <= 8
    users = Sensitivity.of((1,), 2)
    sigma = _calibrate(sensitivity=users, times=1, epsilon=8.0)
    assert sigma == pytest.approx(math.hypot(1.5, continuous_sigma(users, 1, 8.0, DELTA)), rel=1e-6)


@pytest.mark.parametrize("mechanism", ["laplace", "pure"])
@pytest.mark.parametrize("target", [0.1, 0.3, 1.0, 7.7])
def test_pure_noise_is_the_quotient_to_the_last_digit(mechanism, target):
    scale = _calibrate(mechanism=mechanism, times=3, shares=10, epsilon=target, delta=1e-20)
    assert 0 <= scale - 3 * 510 / target <= 2 * math.ulp(scale)
    spent = epsilon([_votes(scale, mechanism=mechanism, times=3, shares=10)], 1e-20)
    assert target * (1 - 1e-15) <= spent <= target


@pytest.mark.parametrize("redraw", [False, True])
def test_pure_noise_under_subsampling_inverts_the_amplification(redraw):
    scale = _calibrate(mechanism="laplace", sensitivity=ONE, times=5, rate=0.3, redraw=redraw, epsilon=2.0)
    spent = 5 * amplified_epsilon(1 / scale, 0.3) if redraw else amplified_epsilon(5 / scale, 0.3)
    assert 2 * (1 - 1e-9) < spent <= 2


@pytest.mark.parametrize(("rate", "redraw"), [(0.8, False), (0.8, True), (0.1, True)])
def test_gaussian_noise_under_subsampling(rate, redraw):
    sigma = _calibrate(sensitivity=ONE, times=10, rate=rate, redraw=redraw)

    def spent(scale):
        return epsilon([_gaussian((1,), scale, rate=rate, draw=f"{i}" if redraw else "once") for i in range(10)], DELTA)

    assert spent(sigma) <= 1 < spent(sigma * (1 - 1e-3))
    assert sigma < _calibrate(sensitivity=ONE, times=10)


def test_gaussian_noise_of_a_subsample_of_nearly_all_on_the_smallest_grid():
    """Between integers noise hides more than its continuous likeness, from which the search starts."""
    sigma = _calibrate(sensitivity=ONE, times=1, rate=0.95, epsilon=8.0)
    assert sigma < 0.95 * continuous_sigma(ONE, 1, 8.0, DELTA)
    assert epsilon([_gaussian((1,), sigma, rate=0.95, draw="once")], DELTA) <= 8


def test_shares_are_paid_for():
    ideal = epsilon([_votes(1560.0)], DELTA)
    assert epsilon([_votes(1560.0, shares=10)], DELTA) == pytest.approx(ideal, rel=1e-8)
    gap = 2 * sum_gap(1.0, 36)
    assert epsilon([_gaussian((1, 1), 6.0, shares=36)], DELTA) >= epsilon([_gaussian((1, 1), 6.0)], DELTA) + 2 * gap
    assert epsilon([_gaussian((1, 1), 3.7, shares=100)], DELTA) == math.inf
    # A sum of Polya shares is exactly a discrete Laplace.
    laplace = [ReleasedAnswers(mechanism="laplace", sensitivity=ONE, scale=1.0, shares=shares) for shares in (1, 1000)]
    assert epsilon(laplace[:1], DELTA) == pytest.approx(epsilon(laplace[1:], DELTA), rel=1e-8)


@pytest.mark.parametrize(
    ("mechanism", "subsample"), [("gaussian", {}), ("gaussian", {"rate": 0.5, "draw": "once"}), ("laplace", {})]
)
def test_failing_samplers_are_paid_for(monkeypatch, mechanism, subsample):
    sensitivity = Sensitivity.of((1, 2), 1)
    release = ReleasedAnswers(mechanism=mechanism, sensitivity=sensitivity, scale=7.25, shares=2, **subsample)
    ideal = epsilon([release], DELTA)

    def failing(probability):
        monkeypatch.setattr(accountant, "gaussian_tv", lambda _: probability)
        monkeypatch.setattr(accountant, "laplace_tv", lambda *_: probability)
        accountant._at_delta.cache_clear()
        return epsilon([release], DELTA)

    assert ideal <= failing(1e-10) < ideal * 1.001
    assert failing(1e-6) == math.inf
    accountant._at_delta.cache_clear()
