import math
from dataclasses import replace

import pytest

from client.guard import KINDS_ACCEPTED_BY_DEFAULT, Limits
from client.session import RefusalError
from common.domain import MOST_RECORDS
from common.errors import ConfigError
from common.messages import Reason
from common.plan.guarantee import epsilon_against
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import KINDS, PROVEN
from common.queries.histograms import LabelHistogramSpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.texts import AbstractedSeedsSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from common.secagg.graph import parameters, threshold_of_full_graph
from server.domain import Membership, PrivacyTarget, Task
from server.methods.wasp import Wasp
from server.planning.make_plan import make_plan
from server.prepare.compose import compose_settings
from tests.support.federations import DECLARED, lenient, plan, roster
from tests.support.lanes import slow_but


def charges(agreed, runs):
    """What so many complete runs of that plan were charged."""
    return [release for _ in range(runs) for release in agreed.releases()]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_epsilon": 3.9},
        {"max_delta": 9e-6},
        {"max_top": 3},
        {"lifetime_epsilon": 3.9, "lifetime_delta": 1e-5},
        {"min_survivors": 4},
        {"min_unit_records": 2},
        {"queries": ("label histogram",)},
    ],
)
def test_each_limit_refuses(limits):
    lenient(max_epsilon=4.0, max_delta=1e-5, max_top=4, min_survivors=3).check(plan(3), declared=DECLARED)
    with pytest.raises(RefusalError) as caught:
        lenient(**limits).check(plan(3), declared=DECLARED)
    assert caught.value.reason is Reason.OVER_LIMIT


DELTAS = [10.0**-power for power in range(2, 10)]


@pytest.mark.parametrize("declared", [1, 99, 100, 101, 20_000, MOST_RECORDS])
def test_fewer_than_one_record_may_be_expected_to_be_published(declared):
    """Even at epsilon 0, each record may be published with probability delta."""
    for delta in DELTAS:
        agreed = replace(plan(3), delta=delta)
        found = [
            error for name, error in Limits(max_delta=0.5).refusals(agreed, declared=declared) if name == "max_delta"
        ]
        assert bool(found) == (delta * declared >= 1)
        for error in found:
            assert error.reason is Reason.OVER_LIMIT
            assert f"below 1/{declared}" in str(error)
            assert f"got {delta}" in str(error)
            assert "privacy.delta" in str(error)


def test_class_sums_of_a_few_records_almost_without_noise_are_refused_where_many_are_declared():
    """The guarantee is true: at epsilon 0.001 and delta 1e-4, 18 of 200,000 records were named."""
    spec = ClassSumsSpec(labels=2, directions=8, count=512, grid=1024)
    sums = PlannedQuery(name="class sums", spec=spec, scale=spec.sensitivity.l2 / 6, rate=9e-5)
    signed = {"corrupt": 3, "colluders": 3, "threshold": threshold_of_full_graph(10, 3, malicious=True)}
    signed |= {"roster": roster(10).digest.hex(), "delta": 1e-4}
    agreed = replace(plan(10, queries=(sums,), epsilon=math.inf, **signed), queries=(sums,), epsilon=0.001)
    Limits().check(agreed, declared=DECLARED)
    with pytest.raises(RefusalError, match=r"below 1/20000.*got 0\.0001"):
        Limits().check(agreed, declared=20_000)


def test_a_small_epsilon_written_over_too_little_noise_is_refused():
    honest = plan(3)
    (planned,) = honest.queries
    with pytest.raises(RefusalError, match="noise in") as caught:
        lenient().check(replace(honest, queries=(replace(planned, scale=planned.scale * 0.9),)), declared=DECLARED)
    assert caught.value.reason is Reason.OVER_LIMIT


def test_no_noise_needs_the_unsafe_switch_at_the_party():
    with pytest.raises(RefusalError):
        lenient().check(plan(3, epsilon=math.inf), declared=DECLARED)
    with pytest.raises(ConfigError, match="unsafe_no_noise"):
        lenient(max_epsilon=math.inf)
    lenient(max_epsilon=math.inf, unsafe_no_noise=True).check(plan(3, epsilon=math.inf), declared=DECLARED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unsafe_unproven": "false"},
        {"unsafe_no_noise": 1},
        {"malicious_coordinator": None},
        {"separate_data_sets": "no"},
        {"max_epsilon": 0.0},
        {"max_epsilon": math.nan},
        {"max_delta": 1.0},
        {"max_delta": math.nan},
        {"max_top": 0},
        {"lifetime_epsilon": 0.0},
        {"lifetime_epsilon": math.nan},
        {"lifetime_delta": 0.0},
        {"lifetime_delta": -1e-5},
        {"queries": ("votes", "anything")},
        {"corrupt": -0.1},
    ],
)
def test_limits_that_make_no_sense(wrong):
    with pytest.raises(ConfigError):
        lenient(**wrong)


def test_epsilon_must_hold_without_the_noise_of_those_that_may_help_the_coordinator():
    # Three shares of noise, of which two stay unknown: sigma is smaller by sqrt(2/3), and epsilon above 4.
    lenient(max_epsilon=8.0, corrupt=0.3).check(plan(3), declared=DECLARED)
    with pytest.raises(RefusalError, match=r"1 of 3 parties;.*at most 4\.0"):
        lenient(max_epsilon=4.0, corrupt=0.3).check(plan(3), declared=DECLARED)
    lenient(max_epsilon=4.0, corrupt=0.25).check(plan(4, colluders=1), declared=DECLARED)
    # All others, and a party that adds all the noise itself and needs nobody.
    lenient(max_epsilon=4.0, corrupt=1.0).check(plan(3, secure=False, threshold=1), declared=DECLARED)


@pytest.mark.parametrize("parties", slow_but({3, 20}, [3, 5, 10, 20]))
def test_limits_as_init_writes_them_are_held_against_those_that_masks_are_planned_for(parties):
    """The third review: plans of epsilon 8 were accepted, and cost 9.9 to 12.3 against a coalition of 30%."""
    corrupt = math.ceil(0.3 * parties)
    signed = {"corrupt": corrupt, "threshold": (parties + corrupt + 1) // 2, "roster": roster(parties).digest.hex()}
    signed |= {"spec": VotesSpec(top=8), "epsilon": 8.0}
    trusting, wary = plan(parties, **signed), plan(parties, colluders=corrupt, **signed)
    assert epsilon_against(trusting, corrupt) > 9.8
    with pytest.raises(RefusalError, match=f"{corrupt} of {parties} parties;.*at most 8"):
        Limits().check(trusting, declared=DECLARED)
    Limits().check(wary, declared=DECLARED)
    # One more run of epsilon 2 would fit into a lifetime of 10 if nobody helped.
    later = plan(parties, **signed | {"epsilon": 2.0})
    assert Limits(corrupt=0.0).spent((*wary.releases(), *later.releases())) < 9
    charged = wary.releases(Limits().unknown_shares(wary))
    assert Limits().spent(charged) == Limits(corrupt=0.0).spent(wary.releases())


def test_a_coalition_that_lifts_masks_leaves_a_partys_own_share_of_the_noise():
    planned = plan(5, threshold=3)
    assert planned.largest_coalition == 2
    assert Limits(corrupt=0.4).unknown_shares(planned) == 3
    assert Limits(corrupt=0.6).unknown_shares(planned) == 1


def test_users_may_be_many_records_but_not_fewer_than_the_party_wants():
    users = plan(3, unit="user", spec=VotesSpec(top=4, max_records=3))
    lenient(min_unit_records=3).check(users, declared=DECLARED)
    with pytest.raises(RefusalError, match="records protected"):
        lenient(min_unit_records=4).check(users, declared=DECLARED)


def test_all_runs_together_stay_within_the_partys_total():
    agreed = plan(3)
    limits = lenient(lifetime_epsilon=8.0, lifetime_delta=1e-5)
    limits.check(agreed, declared=DECLARED)
    # k equal runs are one Gaussian of sensitivity sqrt(k): epsilon 4 at delta 1e-5 becomes 6.1 for two, 7.9 for three.
    limits.check(agreed, charges(agreed, 2), declared=DECLARED)
    with pytest.raises(RefusalError, match="all runs") as caught:
        limits.check(agreed, charges(agreed, 3), declared=DECLARED)
    assert caught.value.reason is Reason.OVER_LIMIT
    lenient().check(agreed, charges(agreed, 1000), declared=DECLARED)


def test_equal_names_of_subsamples_in_other_runs_are_other_subsamples():
    # Of one subsample the answers are amplified once, together; of two, each by itself.
    query = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=1.0, rate=0.5)
    releases = plan(3, queries=(query,), epsilon=math.inf).releases()
    together, apart = (
        [replace(release, draw=run) for run in runs for release in releases]
        for runs in (("one", "one"), ("one", "two"))
    )
    bound = 1.35  # ln(1 + (e - 1) / 2) = 0.62 twice, or once ln(1 + (e^2 - 1) / 2) = 1.43
    lenient(lifetime_epsilon=bound).allow(apart)
    with pytest.raises(RefusalError, match="all runs"):
        lenient(lifetime_epsilon=bound).allow(together)


def test_a_query_without_proof_needs_its_own_unsafe_switch():
    planned = PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=3), mechanism="gaussian max", share=0.5)
    unproven = plan(3, queries=(replace(planned, share=1.0),), epsilon=1.0)
    named = {"queries": KINDS}
    with pytest.raises(RefusalError, match="query;"):
        lenient(unsafe_unproven=True).check(unproven, declared=DECLARED)
    with pytest.raises(RefusalError, match="unsafe_unproven"):
        lenient(max_epsilon=math.inf, unsafe_no_noise=True, **named).check(unproven, declared=DECLARED)
    with pytest.raises(RefusalError, match="all runs"):
        lenient(unsafe_unproven=True, lifetime_epsilon=1e9, **named).check(unproven, declared=DECLARED)
    allowed = lenient(unsafe_unproven=True, **named)
    allowed.check(unproven, declared=DECLARED)
    with pytest.raises(RefusalError, match="with noise"):
        allowed.check(plan(3, queries=(replace(planned, share=1.0),), epsilon=math.inf), declared=DECLARED)
    # It switches nothing else off: the other queries keep to the party's epsilon, and may be refused for it.
    votes = PlannedQuery(name="votes", spec=VotesSpec(top=4), share=0.5)
    mixed = plan(3, queries=(planned, votes), epsilon=4.0)
    lenient(unsafe_unproven=True, max_epsilon=2.0, **named).check(mixed, declared=DECLARED)
    with pytest.raises(RefusalError, match="plan's epsilon"):
        lenient(unsafe_unproven=True, max_epsilon=1.9, **named).check(mixed, declared=DECLARED)


def test_a_query_that_is_not_noised_at_all_needs_no_leave_for_plans_without_noise():
    rewritten = PlannedQuery(name="rewritten", spec=RewrittenSpec(texts=3), mechanism="none")
    agreed = plan(3, queries=(rewritten,), epsilon=1.0)
    lenient(unsafe_unproven=True, queries=KINDS).check(agreed, declared=DECLARED)
    with pytest.raises(RefusalError, match="a proof"):
        lenient(queries=KINDS).check(agreed, declared=DECLARED)


def test_an_unproven_query_lets_no_other_go_without_noise():
    planned = PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=3), mechanism="gaussian max", scale=5.0)
    bare = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=1e-9)
    with pytest.raises(RefusalError, match="plan's epsilon"):
        lenient(unsafe_unproven=True, queries=KINDS).check(
            plan(3, queries=(planned, bare), epsilon=math.inf), declared=DECLARED
        )


def test_a_lifetime_counts_the_colluders_that_the_party_fears():
    agreed = plan(10, epsilon=1.5)
    lenient(lifetime_epsilon=2.0, lifetime_delta=1e-5).check(agreed, declared=DECLARED)
    with pytest.raises(RefusalError, match="all runs"):
        lenient(lifetime_epsilon=2.0, lifetime_delta=1e-5, corrupt=0.5).check(agreed, declared=DECLARED)


def test_a_query_without_proof_does_not_hide_what_the_others_cost_against_a_coalition():
    texts = PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=3), mechanism="gaussian max", share=0.5)
    mixed = plan(3, queries=(texts, PlannedQuery(name="votes", spec=VotesSpec(top=4), share=0.5)), epsilon=4.0)
    lenient(unsafe_unproven=True, max_epsilon=2.0, queries=KINDS).check(mixed, declared=DECLARED)
    with pytest.raises(RefusalError, match="1 of 3 parties"):
        lenient(unsafe_unproven=True, max_epsilon=2.0, corrupt=0.3, queries=KINDS).check(mixed, declared=DECLARED)


def test_company_in_a_sum_needs_secure_aggregation():
    lenient(min_survivors=3).check(plan(3), declared=DECLARED)
    with pytest.raises(RefusalError, match="in a sum"):
        lenient(min_survivors=2).check(plan(3, secure=False), declared=DECLARED)


def test_a_run_without_noise_leaves_nothing_for_a_later_one():
    with pytest.raises(RefusalError, match="all runs"):
        lenient(lifetime_epsilon=100.0).check(plan(3), charges(plan(3, epsilon=math.inf), 1), declared=DECLARED)


def test_a_party_may_insist_on_signed_survivors():
    wary = lenient(malicious_coordinator=True)
    with pytest.raises(RefusalError):
        wary.check(plan(3), declared=DECLARED)
    wary.check(plan(3, roster=roster(3).digest.hex()), declared=DECLARED)


def test_a_coalition_that_the_party_fears_must_be_in_the_plan():
    signed = plan(4, colluders=1, corrupt=1, roster=roster(4).digest.hex())
    lenient(max_epsilon=4.0, corrupt=0.25).check(signed, declared=DECLARED)
    with pytest.raises(RefusalError, match="got 1"):
        lenient(corrupt=0.5).check(signed, declared=DECLARED)


def test_a_party_may_insist_on_user_level():
    with pytest.raises(RefusalError, match=r"got sample.*unit=user"):
        lenient(unit="user").check(plan(3), declared=DECLARED)
    lenient(unit="user").check(plan(3, unit="user"), declared=DECLARED)  # one record of each user counts


def test_a_sparse_graph_is_checked_by_the_party_itself():
    sparse = plan(60, degree=4, threshold=3, corrupt=6)
    with pytest.raises(RefusalError, match="a mask"):
        lenient().check(sparse, declared=DECLARED)
    dense = plan(200, corrupt=60, spec=VotesSpec(top=8), **graph(security_bits=40, malicious=False))
    lenient(corrupt=0.3).check(dense, declared=DECLARED)
    with pytest.raises(RefusalError, match="a mask"):
        lenient(security_bits=200).check(dense, declared=DECLARED)


def test_where_the_coordinator_can_try_many_graphs_forty_bits_more_are_needed():
    signed = {"corrupt": 60, "spec": VotesSpec(top=8), "roster": roster(200).digest.hex()}
    ground = plan(200, **signed, **graph(security_bits=40, malicious=True))
    with pytest.raises(RefusalError, match=r"a mask;.*2\^-80.*got 2\^-4"):
        Limits().check(ground, declared=DECLARED)
    Limits().check(plan(200, **signed, **graph(security_bits=80, malicious=True)), declared=DECLARED)


def graph(**settings):
    """Degree and threshold for 200 parties of which 60 may be corrupt."""
    degree, threshold = parameters(200, corrupt=0.3, dropped=0.0, correctness_bits=30, **settings)
    return {"degree": degree, "threshold": threshold}


@pytest.mark.parametrize("parties", slow_but({2, 5, 10, 200}, [2, 3, 4, 5, 6, 10, 50, 129, 200]))
def test_plans_by_the_shipped_settings_pass_the_limits_that_init_writes(parties):
    made = make_plan(
        Wasp(),
        task=Task(name="t", kind="note", labels={"a": "A", "b": "B"}),
        encoder="e",
        target=PrivacyTarget(epsilon=4.0),
        membership=Membership(parties=parties),
        secagg=compose_settings(["secagg=malicious"]).secagg,
        roster=32 * "ab",
    )
    assert made.malicious
    Limits().check(made, declared=DECLARED)


def test_a_file_without_the_line_queries_accepts_no_kind_that_was_added_later():
    # A new kind goes here or, if every hospital with an older file shall answer it unasked, into the list of the guard.
    only_by_name = {"questionnaire", "label sets", "section order"}
    assert {*KINDS_ACCEPTED_BY_DEFAULT, *only_by_name} == set(PROVEN)
    assert not only_by_name.intersection(KINDS_ACCEPTED_BY_DEFAULT)
    questionnaire = QuestionnaireSpec(labels=2, directions=1, count=1, words=1)
    for spec in (questionnaire, LabelSetsSpec(labels=2, labels_per_record=2)):
        asked = plan(spec=spec, times=1)
        with pytest.raises(RefusalError, match=f"got {spec.kind}"):
            lenient(queries=Limits().queries).check(asked, declared=DECLARED)
        lenient(queries=(*KINDS_ACCEPTED_BY_DEFAULT, spec.kind)).check(asked, declared=DECLARED)
