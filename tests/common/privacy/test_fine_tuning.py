"""DP-SGD in a plan: what its steps cost together, against other accountants, and what a ledger is charged."""

import math
import warnings
from dataclasses import replace

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from common.errors import ConfigError
from common.plan.guarantee import epsilon_released, verify
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy.accountant import ReleasedAnswers, epsilon, epsilon_by_norm
from common.privacy.sensitivity import Sensitivity
from common.queries.texts import MOST_TRAINABLE, FineTunedSpec
from server.planning.calibration import calibrate
from tests.support.lanes import slow
from tests.support.plans import plan_of_one

DELTA = 1e-5
INFINITE = math.inf


def query(steps=100, rate=0.05, **spec):
    planned = FineTunedSpec(texts=10, steps=steps, **spec)
    return PlannedQuery(name="texts", spec=planned, mechanism="dp-sgd", rate=rate, redraw=rate < 1)


def priced(multiplier, rate, steps):
    (release,) = plan_of_one(replace(query(steps, rate), scale=multiplier * 4096), epsilon=1e9).releases()
    return release


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps"), [(1.4, 0.01, 1000), slow(0.94, 0.05, 100), slow(0.59, 0.01, 1000)]
)
def test_steps_cost_what_other_accountants_say(multiplier, rate, steps):
    ours = epsilon([priced(multiplier, rate, steps)], DELTA)
    one = pld.from_gaussian_mechanism(multiplier, sampling_prob=rate, use_connect_dots=True)
    assert ours == pytest.approx(one.self_compose(steps).get_epsilon_for_delta(DELTA), rel=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.accountants import PRVAccountant

        prv = PRVAccountant()
        prv.history = [(multiplier, rate, steps)]
        theirs = prv.get_epsilon(DELTA, eps_error=0.005)
    assert ours == pytest.approx(theirs, rel=0.01, abs=0.006)
    assert ours <= epsilon_by_norm([priced(multiplier, rate, steps)], DELTA)


@pytest.mark.parametrize(("target", "steps", "rate"), [slow(4, 100, 0.05), (8, 20, 1.0)])
def test_a_calibrated_plan_costs_epsilon_and_hardly_less(target, steps, rate):
    made = calibrate(plan_of_one(query(steps, rate)), target)
    assert 0.9999 * target < verify(made) <= target
    assert epsilon_released(made) == verify(made)
    multiplier = made.queries[0].scale / 4096
    lighter = replace(made, queries=(replace(made.queries[0], scale=0.999 * made.queries[0].scale),))
    assert epsilon(lighter.releases(), DELTA) > target
    mechanism = pld.from_gaussian_mechanism(multiplier, sampling_prob=rate, use_connect_dots=True)
    assert mechanism.self_compose(steps).get_epsilon_for_delta(DELTA) == pytest.approx(target, rel=2e-3)


def test_users_of_many_records_and_finer_whole_numbers_need_noise_in_proportion():
    (one,) = calibrate(plan_of_one(query(rate=1.0)), 4).queries
    (users,) = calibrate(plan_of_one(query(rate=1.0, max_records=3), unit="user"), 4).queries
    (finer,) = calibrate(plan_of_one(query(rate=1.0, resolution=8192)), 4).queries
    assert users.scale == pytest.approx(3 * one.scale, rel=1e-6)
    assert finer.scale == pytest.approx(2 * one.scale, rel=1e-6)
    assert query(max_records=3).spec.sensitivity == Sensitivity(
        l1=3 * 4096 * 2**14, l2_squared=(3 * 4096) ** 2, touched=MOST_TRAINABLE
    )


def test_each_attempt_has_subsamples_of_its_own_and_a_charge_of_its_own():
    made = plan_of_one(replace(query(20), times=2, scale=1.5 * 4096), max_attempts=2, epsilon=4.0)
    charges = [made.answer_release(index) for index in range(4)]
    assert [charge.draws for charge in charges] == [20] * 4
    assert len({charge.draw for charge in charges}) == 4
    assert sum(release.draws for release in made.releases()) == 80
    assert epsilon(charges, DELTA) == epsilon(made.releases(), DELTA) <= 4
    assert epsilon(charges[:1], DELTA) < epsilon(charges[:2], DELTA) < epsilon(charges, DELTA)


def test_steps_over_all_units_are_gaussians_of_all_units():
    made = calibrate(plan_of_one(query(20, 1.0)), 4)
    (release,) = made.releases()
    assert (release.times, release.draws, release.draw) == (20, 1, "")
    assert made.answer_release(0) == release


def test_a_release_of_many_draws_travels_and_means_as_many_releases():
    release = priced(1.0, 0.1, 7)
    assert ReleasedAnswers.from_dict(release.to_dict()) == release
    apart = [replace(release, draw=f"step {step}", draws=1) for step in range(7)]
    assert epsilon([release], DELTA) == epsilon(apart, DELTA)
    before = release.to_dict()
    del before["draws"]
    assert ReleasedAnswers.from_dict(before) == replace(release, draws=1)


def test_no_noise_has_no_guarantee():
    assert verify(calibrate(plan_of_one(query()), INFINITE)) == INFINITE
    assert not query().unproven
    assert not query().summed


def test_draws_need_a_name_and_one_count_a_name():
    release = priced(1.0, 0.1, 7)
    with pytest.raises(ConfigError, match="draws"):
        replace(release, draw="", rate=1.0)
    with pytest.raises(ConfigError, match="subsample"):
        epsilon([release, replace(release, draws=8)], DELTA)


@pytest.mark.parametrize(("rate", "redraw"), [(0.5, False), (1.0, True)])
def test_one_subsample_for_all_steps_is_no_plan(rate, redraw):
    with pytest.raises(ConfigError, match="subsampling"):
        replace(query(), rate=rate, redraw=redraw)


def test_a_plan_with_training_travels_as_it_is():
    made = plan_of_one(replace(query(clip=1, top_p=1, learning_rate=1), scale=4096.0), epsilon=4.0)
    assert Plan.from_dict(made.to_dict()) == made
    assert Plan.from_dict(made.to_dict()).digest() == made.digest()
    assert plan_of_one(replace(query(clip=1.0, top_p=1.0, learning_rate=1.0), scale=4096.0), epsilon=4.0) == made
