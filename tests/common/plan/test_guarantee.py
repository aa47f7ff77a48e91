import math
from dataclasses import replace

import pytest

from common.errors import ConfigError, PlanError
from common.plan.guarantee import (
    corrupt_for_readers,
    epsilon_against,
    epsilon_alone,
    epsilon_if_all_add_noise,
    epsilon_released,
    guesses_against,
    guesses_alone,
    guesses_planned,
    guesses_released,
    verify,
)
from common.plan.planned import PlannedQuery
from common.privacy import accountant
from common.queries.histograms import LabelHistogramSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.texts import FineTunedSpec
from common.queries.votes import VotesSpec
from server.planning.calibration import calibrate
from tests.support.federations import each_kind
from tests.support.plans import plan_with

SMALL = VotesSpec(top=5)
VOTES = PlannedQuery(name="votes", spec=SMALL, times=4)
COUNT = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace", times=2)
RANGE = PlannedQuery(name="range", spec=LengthRangeSpec(cap=30), mechanism="sparse vector")


def calibrated(*queries, epsilon=4.0, **changes):
    return calibrate(plan_with(queries=queries or (VOTES,), epsilon=math.inf, **changes), epsilon)


def test_too_little_noise_is_found():
    honest = calibrated()
    (query,) = honest.queries
    assert verify(honest) <= 4
    for less in (replace(query, scale=query.scale * 0.9), replace(query, times=5)):
        with pytest.raises(PlanError, match=r"epsilon 4; got epsilon [45]\."):
            verify(replace(honest, queries=(less,)))
    with pytest.raises(PlanError, match=r"epsilon 4"):
        verify(replace(honest, max_attempts=2))


def test_epsilon_against_a_colluding_coordinator():
    plan = calibrated()
    against = [epsilon_against(plan, colluders) for colluders in range(10)]
    assert against[3] == verify(plan) <= 4
    assert sorted(against) == against
    share = plan.share_sigma(plan.queries[0])

    def exact(shares):
        release = accountant.ReleasedAnswers(
            mechanism="gaussian", sensitivity=SMALL.sensitivity, scale=share * math.sqrt(shares), times=4
        )
        return accountant.epsilon([release], 1e-5)

    assert against[0] == pytest.approx(exact(9), rel=1e-3)
    assert against[6] == pytest.approx(exact(3), rel=5e-3)
    # Seven can lift a mask: what is left is the party's own share.
    assert against[7:] == [pytest.approx(exact(1), rel=0.02)] * 3
    for colluders in (-1, 10):
        with pytest.raises(ConfigError, match="0 to 9"):
            epsilon_against(plan, colluders)


def test_with_the_highest_threshold_all_other_survivors_may_collude():
    plan = calibrated(threshold=9)
    against = [epsilon_against(plan, colluders) for colluders in range(10)]
    assert against[8] == against[9] > against[7] > against[6]


def test_colluders_beyond_what_secure_aggregation_is_planned_for_may_lift_a_mask():
    trusting = calibrated(colluders=1)
    assert trusting.largest_coalition == 6
    signed = calibrated(colluders=1, roster=32 * "ab")
    assert signed.largest_coalition == 1
    alone = epsilon_against(signed, 9)
    assert epsilon_against(signed, 1) < epsilon_against(signed, 2) == pytest.approx(alone)
    assert epsilon_against(trusting, 2) < alone
    assert calibrated(degree=6, threshold=5, colluders=2).largest_coalition == 2


def test_without_secure_aggregation_no_colluder_matters():
    bare = calibrated(secure=False, threshold=1, colluders=0)
    assert {epsilon_against(bare, colluders) for colluders in range(10)} == {verify(bare)}
    # The world sees the sum of ten whole noises, or nine.
    assert epsilon_released(bare) < verify(bare) / 2.5


@pytest.mark.parametrize("query", [VOTES, COUNT], ids=["gaussian", "laplace"])
def test_readers_face_the_noise_of_all_but_the_corrupt_and_colluders_know_theirs(query):
    plan = calibrated(query, epsilon=2.0)
    assert epsilon_released(plan) == verify(plan) == epsilon_against(plan, 3) <= 2
    everybody = epsilon_if_all_add_noise(plan)
    assert everybody == epsilon_against(plan, 0) <= verify(plan)
    assert (everybody < verify(plan)) == (query is VOTES)  # more Laplace shares are not counted as less
    assert verify(plan) < epsilon_against(plan, 4) < epsilon_against(plan, 6) < math.inf
    nobody = calibrated(query, epsilon=2.0, colluders=0, corrupt=0, max_dropouts=0)
    assert epsilon_released(nobody) == epsilon_if_all_add_noise(nobody) == epsilon_against(nobody, 0) == verify(nobody)


@pytest.mark.parametrize("query", [VOTES, COUNT, RANGE], ids=["gaussian", "laplace", "own noise"])
@pytest.mark.parametrize(("colluders", "corrupt"), [(3, 3), (1, 4), (0, 2)])
def test_a_reader_s_epsilon_holds_if_the_corrupt_leave_out_their_noise(query, colluders, corrupt):
    signed = {"roster": 32 * "ab", "threshold": 9, "max_dropouts": 0}
    plan = calibrated(query, epsilon=2.0, colluders=colluders, corrupt=corrupt, **signed)
    assert corrupt_for_readers(plan) == corrupt
    assert corrupt_for_readers(replace(plan, roster="")) == colluders
    faced = plan.releases(plan.survivors - corrupt)
    assert accountant.epsilon(faced, plan.delta) <= epsilon_released(plan)
    assert accountant.trade_off(faced, plan.delta).even_guess <= guesses_released(plan).right / 100


def test_guesses_are_tighter_than_epsilon_alone_and_grow_with_what_is_known():
    plan = calibrated()
    views = [guesses_planned(plan), guesses_against(plan, 5), guesses_alone(plan)]
    assert guesses_released(plan) == views[0] == guesses_against(plan, 3)
    assert [view.right for view in views] == sorted(view.right for view in views)
    assert views[0].right == pytest.approx(67.82, abs=0.02)
    assert all(view.right < view.worst for view in views)
    assert [view.strength for view in views] == ["moderate", "moderate", "weak"]


def test_what_a_party_noises_by_itself_is_as_private_against_everybody():
    plan = calibrated(RANGE, epsilon=1.0)
    assert epsilon_released(plan) == verify(plan)
    assert [epsilon_against(plan, colluders) for colluders in range(10)] == pytest.approx([1] * 10, rel=1e-4)


def test_several_queries_against_colluders():
    mixed = [replace(query, share=1 / 3) for query in (VOTES, COUNT, RANGE)]
    plan = calibrated(*mixed, epsilon=2.0)
    against = [epsilon_against(plan, colluders) for colluders in range(10)]
    assert sorted(against) == against
    assert epsilon_released(plan) <= against[3] <= 2 < against[4]


def test_a_coalition_of_all_other_survivors_leaves_the_own_share_of_noise():
    sparse = calibrated(max_dropouts=8, colluders=0, degree=4, threshold=5, corrupt=4)
    assert (sparse.survivors, sparse.largest_coalition) == (2, 4)
    assert (
        epsilon_against(sparse, 1) == epsilon_against(sparse, 2) == epsilon_against(sparse, 9) == epsilon_alone(sparse)
    )
    assert epsilon_against(sparse, 0) < epsilon_alone(sparse) < math.inf


def test_user_level():
    users = calibrated(replace(VOTES, spec=VotesSpec(top=5, max_records=8)), unit="user")
    assert verify(users) <= 4
    assert epsilon_against(users, 0) < epsilon_against(users, 3) < epsilon_against(users, 9)


def test_no_noise():
    open_plan = calibrated(epsilon=math.inf)
    assert open_plan.share_sigma(open_plan.queries[0]) == 0
    assert verify(open_plan) == epsilon_released(open_plan) == epsilon_against(open_plan, 0) == math.inf


@pytest.mark.parametrize("records", [2, 5])
@pytest.mark.parametrize("kind", sorted(each_kind()))
def test_records_of_one_person_cost_at_least_what_a_plan_for_persons_proves(kind, records):
    single, together = each_kind()[kind].spec.sensitivity, each_kind(max_records=records)[kind].spec.sensitivity
    group = single.of_group(records)
    assert group.l1 >= together.l1
    assert group.l2_squared >= together.l2_squared
    assert group.touched >= min(together.touched, single.touched)
    assert group.shifts == ()


@pytest.mark.parametrize("query", [VOTES, COUNT, RANGE], ids=lambda query: query.name)
def test_epsilon_of_a_persons_records_grows_at_least_in_proportion(query):
    plan = calibrated(query)
    assert epsilon_released(plan, 1) == epsilon_released(plan)
    assert epsilon_against(plan, 2, 1) == epsilon_against(plan, 2)
    for records in (2, 4):
        assert epsilon_released(plan, records) >= records * epsilon_released(plan)
        assert epsilon_against(plan, 9, records) >= epsilon_against(plan, 2, records) >= records * 3


@pytest.mark.parametrize("redraw", [False, True])
def test_a_person_with_several_records_takes_part_more_often(redraw):
    one, two, many = (
        epsilon_released(calibrated(replace(VOTES, rate=0.1, redraw=redraw)), records) for records in (1, 2, 20)
    )
    assert 2 * one <= two < math.inf
    assert many > 10 * one  # at 10 records and more, one of them is as good as always there


def test_training_steps_of_a_person_with_many_records_are_all_priced():
    query = PlannedQuery(name="texts", spec=FineTunedSpec(texts=4, steps=5), mechanism="dp-sgd", rate=0.2, redraw=True)
    plan = calibrated(query)
    assert epsilon_released(plan, 5) >= 5 * epsilon_released(plan)
