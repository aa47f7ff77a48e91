import dataclasses
import json
import math

import pytest

from common.errors import ConfigError, PlanError
from common.privacy import accountant, plan
from common.privacy.plan import Plan, PlannedQuery, calibrate, epsilon_against, verify
from common.queries import VotesSpec

SPEC, SMALL = VotesSpec(top=8), VotesSpec(top=5)
QUERY = PlannedQuery(name="votes", spec=SPEC, times=4, sigma=1560.0)
NUMBERS = {
    "method": "wasp", "labels": ("a", "b"), "encoder": "e5", "parties": 10, "max_dropouts": 1, "colluders": 3,
    "threshold": 7, "secure": True, "epsilon": 1.0, "delta": 1e-5, "unit": "sample",
}  # fmt: skip


def _plan(**changes):
    values = {**NUMBERS, "queries": (QUERY,), **changes}
    if values["secure"] and type(values["parties"]) is int:
        values.setdefault("degree", max(values["parties"] - 1, 0))
        values.setdefault("corrupt", values["colluders"])
    return Plan(**values)


def _calibrated(**changes):
    return calibrate(**{**NUMBERS, "epsilon": 4.0, "name": "votes", "spec": SMALL, "times": 4, **changes})


def test_default_noise():
    calibrated = _calibrated(spec=SPEC, parties=3, max_dropouts=0, colluders=0, threshold=2)
    assert calibrated.queries[0].sigma / SPEC.scale == pytest.approx(3.531, abs=5e-4)
    assert 4 * (1 - 1e-6) < verify(calibrated) <= 4


def test_shares_of_noise_make_up_the_planned_noise_among_fewest_honest_survivors():
    noisy = _plan()
    assert noisy.survivors == 9
    assert noisy.noise_parties == 6
    assert noisy.share_sigma(QUERY) == pytest.approx(1560 / math.sqrt(6))
    (release,) = noisy.releases()
    assert release == dataclasses.replace(noisy.release(QUERY), times=4)
    assert noisy.release(QUERY).times == 1
    assert release.sigma == pytest.approx(1560)
    assert (release.shares, release.records, release.shifts) == (6, 1, SPEC.shifts)
    # Tolerating 10 % dropouts and 30 % colluders costs sqrt(1 / 0.6) in standard deviation.
    least = _plan(max_dropouts=0, colluders=0)
    assert noisy.share_sigma(QUERY) / least.share_sigma(QUERY) == pytest.approx(1.29, abs=0.002)


def test_answers_are_numbered_over_all_queries():
    other = dataclasses.replace(QUERY, name="more", times=2, sigma=2000.0)
    two = _plan(queries=(QUERY, other))
    assert two.total_queries == 6
    assert [two.query(index).name for index in range(6)] == ["votes"] * 4 + ["more"] * 2
    assert two.answer_release(5) == two.release(other)
    assert two.answer_release(5).times == 1
    for index in (-1, 6):
        with pytest.raises(PlanError, match="0 to 5"):
            two.query(index)


def test_without_secure_aggregation_each_party_adds_all_noise():
    bare = _plan(secure=False)
    assert bare.noise_parties == 1
    assert bare.share_sigma(QUERY) == QUERY.sigma
    assert len({epsilon_against(bare, colluders) for colluders in range(10)}) == 1
    assert epsilon_against(bare, 9) == verify(_plan(secure=False, epsilon=1.1))
    # Colluders and threshold mean nothing then.
    _plan(secure=False, parties=1, max_dropouts=0, colluders=5, threshold=1)


def test_epsilon_against_a_colluding_coordinator():
    calibrated = _calibrated()
    against = [epsilon_against(calibrated, colluders) for colluders in range(10)]
    assert against[3] == verify(calibrated) <= 4
    assert sorted(against) == against
    share = calibrated.share_sigma(calibrated.queries[0])

    def exact(shares):
        release = accountant.Release(shifts=SMALL.shifts, sigma=share * math.sqrt(shares), times=4)
        return accountant.epsilon([release], 1e-5)

    assert against[0] == pytest.approx(exact(9), rel=1e-3)
    assert against[6] == pytest.approx(exact(3), rel=5e-3)
    # Seven can lift a mask: what is left is the party's own share.
    assert against[7:] == [pytest.approx(exact(1), rel=0.02)] * 3
    for colluders in (-1, 10):
        with pytest.raises(ConfigError, match="0 to 9"):
            epsilon_against(calibrated, colluders)


def test_with_the_highest_threshold_all_other_survivors_may_collude():
    calibrated = _calibrated(threshold=9)
    against = [epsilon_against(calibrated, colluders) for colluders in range(10)]
    assert against[8] == against[9] > against[7] > against[6]


def test_no_noise():
    open_plan = _calibrated(epsilon=math.inf)
    assert open_plan.queries[0].sigma == 0
    assert open_plan.share_sigma(open_plan.queries[0]) == 0
    assert verify(open_plan) == math.inf
    assert epsilon_against(open_plan, 0) == math.inf
    assert Plan.from_dict(json.loads(json.dumps(open_plan.to_dict()))) == open_plan
    assert open_plan.to_dict()["epsilon"] == "inf"


def test_user_level():
    users = _calibrated(unit="user", spec=VotesSpec(top=5, max_records=8))
    assert users.queries[0].sigma == pytest.approx(8 * _calibrated().queries[0].sigma, rel=1e-4)
    assert verify(users) <= 4
    assert users.releases()[0].records == 8
    assert epsilon_against(users, 0) < epsilon_against(users, 3) < epsilon_against(users, 9)


def test_too_little_noise_is_found():
    assert verify(_plan(epsilon=1.0)) <= 1
    with pytest.raises(PlanError, match=r"enough for epsilon 0\.9"):
        verify(_plan(epsilon=0.9))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": ""}, "method"),
        ({"labels": ()}, "labels"),
        ({"labels": ("a", "a")}, "each name once"),
        ({"queries": ()}, "queries"),
        ({"queries": (QUERY, QUERY)}, "each name once"),
        ({"parties": 0}, "parties"),
        ({"parties": 10.0}, "an integer"),
        ({"max_dropouts": -1}, "max_dropouts"),
        ({"colluders": True}, "colluders"),
        ({"threshold": 0}, "threshold"),
        ({"max_records_per_party": 0}, "max_records_per_party"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"unit": "patient"}, "unit"),
        ({"secure": 1}, "secure"),
    ],
)
def test_values_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        _plan(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_dropouts": 10}, "10 parties - 10 dropouts = 0"),
        ({"secure": False, "max_dropouts": 12}, "10 parties - 12 dropouts = -2"),
        ({"max_dropouts": 4, "colluders": 6}, "10 parties - 4 dropouts - 6 colluders = 0"),
        ({"parties": 1, "max_dropouts": 0, "colluders": 0, "threshold": 1}, "at least 2; got 1"),
        ({"threshold": 5}, "6 to 9.*got 5"),
        ({"threshold": 10}, "6 to 9.*got 10"),
        ({"colluders": 7, "threshold": 7}, "8 to 9.*got 7"),
        ({"parties": 4, "max_dropouts": 2, "colluders": 0, "threshold": 2}, "3 to 2"),
        ({"epsilon": math.inf}, "0 for epsilon inf"),
        ({"queries": (dataclasses.replace(QUERY, sigma=0.0),)}, "0 for epsilon inf"),
        ({"queries": (dataclasses.replace(QUERY, sigma=4.8),)}, "at least 2 grid units; got 1.96"),
        ({"queries": (dataclasses.replace(QUERY, spec=VotesSpec(top=8, max_records=2)),)}, "1 at sample level"),
        ({"max_records_per_party": 2**53}, "below 2\\^63"),
        ({"queries": (dataclasses.replace(QUERY, sigma=1e18),)}, "below 2\\^63"),
    ],
)
def test_values_that_do_not_go_together_are_refused(changes, message):
    with pytest.raises(PlanError, match=message):
        _plan(**changes)


@pytest.mark.parametrize("wrong", [{"name": ""}, {"times": 0}, {"times": 2.0}, {"sigma": -1.0}, {"sigma": math.nan}])
def test_impossible_queries_are_refused(wrong):
    with pytest.raises(ConfigError):
        dataclasses.replace(QUERY, **wrong)


def test_limits_that_are_just_allowed():
    _plan(threshold=6)
    _plan(threshold=9)
    _plan(queries=(dataclasses.replace(QUERY, sigma=4.9),))
    _plan(parties=2, max_dropouts=0, colluders=0, threshold=2)
    _plan(max_records_per_party=2**52)


def test_a_grid_too_coarse_for_the_parties_is_refused_not_drowned_in_noise(monkeypatch):
    def never(*_, **__):
        raise AssertionError("calibrated before it was checked")

    monkeypatch.setattr(plan.accountant, "calibrate_gaussian", never)
    with pytest.raises(PlanError, match="grid units"):
        _calibrated(
            spec=VotesSpec(top=1, furthest=False), times=1, epsilon=1.0, parties=100, max_dropouts=0, colluders=0,
            threshold=67,
        )  # fmt: skip


def test_round_trip_and_digest():
    one = _plan(epsilon=2)
    again = Plan.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    assert again.digest() == one.digest() == _plan(epsilon=2.0).digest()
    assert len(one.digest()) == 32
    changed = [
        {"method": "other"}, {"labels": ("b", "a")}, {"encoder": "other"}, {"parties": 11}, {"max_dropouts": 2},
        {"colluders": 2}, {"threshold": 8}, {"secure": False}, {"epsilon": 2.5}, {"delta": 2e-5}, {"unit": "user"},
        {"max_records_per_party": 1000}, {"degree": 8}, {"corrupt": 4},
        {"roster": 32 * "ab"}, {"queries": (dataclasses.replace(QUERY, times=3),)},
        {"queries": (dataclasses.replace(QUERY, sigma=1561.0),)},
        {"queries": (dataclasses.replace(QUERY, spec=VotesSpec(top=7)),)},
    ]  # fmt: skip
    assert {next(iter(change)) for change in changed} == {field.name for field in dataclasses.fields(Plan)}
    digests = {_plan(**{"epsilon": 2, **change}).digest() for change in changed}
    assert len(digests | {one.digest()}) == len(changed) + 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.pop("colluders"),
        lambda plain: plain.pop("max_records_per_party"),
        lambda plain: plain.update(extra=1),
        lambda plain: plain.update(epsilon="much"),
        lambda plain: plain.update(epsilon="1.0"),
        lambda plain: plain.update(epsilon=None),
        lambda plain: plain.update(queries=3),
        lambda plain: plain.update(queries=[3]),
        lambda plain: plain.update(labels="ab"),
        lambda plain: plain.update(unit=[]),
        lambda plain: plain["queries"][0].pop("times"),
        lambda plain: plain["queries"][0]["spec"].pop("top"),
        lambda plain: plain["queries"][0]["spec"].update(top="8"),
        lambda plain: plain["queries"][0].update(sigma="8"),
    ],
)
def test_a_plan_from_elsewhere_that_is_not_one_is_refused(spoil):
    plain = _plan().to_dict()
    spoil(plain)
    with pytest.raises((PlanError, ConfigError)):
        Plan.from_dict(plain)


def test_a_sparse_graph_has_a_threshold_among_its_neighbours():
    sparse = _plan(degree=6, threshold=5)
    assert Plan.from_dict(sparse.to_dict()) == sparse
    for wrong in ({"degree": 6, "threshold": 8}, {"degree": 7, "threshold": 5}, {"degree": 0, "threshold": 5}):
        with pytest.raises(PlanError, match=r"threshold|degree"):
            _plan(**wrong)


def test_signed_survivors_need_more_than_half_of_parties_and_corrupt_ones():
    assert _plan(roster=32 * "ab", corrupt=6).malicious
    assert not _plan().malicious
    with pytest.raises(PlanError, match="at least 10"):
        _plan(roster=32 * "ab", corrupt=8, colluders=8, threshold=9)
    with pytest.raises(PlanError, match="64 hex digits"):
        _plan(roster="ab")


def test_colluders_beyond_what_secure_aggregation_is_planned_for_may_lift_a_mask():
    trusting = _plan(colluders=1)
    assert trusting.largest_coalition == 6
    signed = _plan(colluders=1, roster=32 * "ab")
    assert signed.largest_coalition == 1
    alone = epsilon_against(signed, 9)
    assert epsilon_against(signed, 1) < epsilon_against(signed, 2) == pytest.approx(alone)
    assert epsilon_against(trusting, 2) < alone
    assert _plan(degree=6, threshold=5, colluders=2).largest_coalition == 2


def test_what_secure_aggregation_needs_is_refused_without_it():
    with pytest.raises(PlanError, match="without secure aggregation"):
        _plan(secure=False, roster=32 * "ab")
    with pytest.raises(PlanError, match="at least the 3 colluders"):
        _plan(corrupt=2)
