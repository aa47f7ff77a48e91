import math
from dataclasses import replace

import pytest

from common.errors import ConfigError, PlanError
from common.plan.guarantee import verify
from common.plan.planned import PlannedQuery
from common.privacy import accountant
from common.queries.class_sums import ClassSumsSpec
from common.queries.histograms import LabelHistogramSpec, VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from server.planning import calibration as budget
from server.planning.calibration import calibrate
from tests.support.federations import plan
from tests.support.lanes import slow
from tests.support.plans import plan_with

VOTES = PlannedQuery(name="votes", spec=VotesSpec(top=8), times=4)
SMALL = PlannedQuery(name="votes", spec=VotesSpec(top=5), times=4)
COUNT = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace")
RANGE = PlannedQuery(name="range", spec=LengthRangeSpec(cap=30), mechanism="sparse vector")
SEEDS = PlannedQuery(name="seeds", spec=SeedChoiceSpec(choices=3), mechanism="permute and flip")
ABSTRACTED = PlannedQuery(name="abstracted", spec=AbstractedSeedsSpec(choices=3), mechanism="gaussian max")


def draft(*queries, parties=3, **changes):
    """A plan without noise; shares of epsilon are equal unless they say otherwise."""
    honest = {"parties": parties, "max_dropouts": 0, "colluders": 0, "threshold": parties // 2 + 1}
    return plan_with(**honest | {"epsilon": math.inf, "queries": queries} | changes)


def split(*queries):
    return [replace(query, share=1 / len(queries)) for query in queries]


def test_the_default_noise():
    calibrated = calibrate(draft(VOTES), 4.0)
    (query,) = calibrated.queries
    assert query.scale / query.spec.grid == pytest.approx(3.531, abs=5e-4)
    assert 4 * (1 - 1e-6) < verify(calibrated) <= 4
    assert (calibrated.epsilon, calibrated.delta, calibrated.calibration) == (4.0, 1e-5, "tight")
    assert replace(query, scale=0.0) == VOTES


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.731), (2.0, 1.994), (4.0, 1.081), (8.0, 0.600)])
@pytest.mark.parametrize(("directions", "count"), [(8, 512), (32, 1024)])
def test_class_sums_need_noise_that_does_not_grow_with_their_number(directions, count, epsilon, sigma):
    spec = ClassSumsSpec(labels=2, directions=directions, count=count)
    (query,) = calibrate(draft(PlannedQuery(name="class sums", spec=spec)), epsilon).queries
    # In radii: the noise of one Gaussian release, times the norm of a record's coordinates and count.
    assert query.scale / spec.grid == pytest.approx(sigma * math.hypot(1, count / 1024), abs=1e-3)


@pytest.mark.parametrize(
    ("query", "scale"),
    [(COUNT, 1 / 0.5), (replace(COUNT, times=6), 6 / 0.5), (RANGE, 4 / 0.5), (SEEDS, 2 / 0.5)],
    ids=["one", "six", "range", "seeds"],
)
def test_pure_mechanisms_have_l1_over_epsilon(query, scale):
    assert calibrate(draft(query), 0.5).queries[0].scale == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize(
    "queries",
    [
        split(VOTES, COUNT),
        split(COUNT, RANGE, SEEDS),
        split(SMALL, replace(SMALL, name="more", times=2)),
        [replace(SMALL, share=0.9), replace(COUNT, share=0.1)],
        split(replace(SMALL, rate=0.5), COUNT),
        split(
            replace(COUNT, name="gaussian count", mechanism="gaussian", times=3),
            PlannedQuery(name="sketch", spec=SketchSpec(labels=2, features=20)),
        ),
    ],
    ids=["gaussian, laplace", "pure", "gaussians", "shares", "subsampled", "histogram, sketch"],
)
@pytest.mark.parametrize("epsilon", [slow(0.5), 2.0])
def test_several_queries_together_cost_epsilon_and_hardly_less(queries, epsilon):
    calibrated = calibrate(draft(*queries), epsilon)
    assert epsilon * (1 - 1e-3) < verify(calibrated) <= epsilon
    for query in calibrated.queries:
        alone = accountant.epsilon(calibrated.releases_of(query), 1e-5)
        # Of one factor for all; composition never charges more than the sum of the shares.
        assert 0 < alone < epsilon


@pytest.mark.parametrize("guess", [0.3, 9.0])
def test_the_common_factor_is_found_from_any_first_guess(guess, monkeypatch):
    scale_of = budget._scale
    monkeypatch.setattr(budget, "_scale", lambda *args: guess * scale_of(*args))
    assert 1 - 1e-3 < verify(calibrate(draft(*split(SMALL, COUNT)), 1.0)) <= 1


def test_a_larger_share_buys_less_noise():
    fair = calibrate(draft(*split(SMALL, COUNT)), 2.0)
    votes = calibrate(draft(replace(SMALL, share=0.8), replace(COUNT, share=0.2)), 2.0)
    assert votes.queries[0].scale < fair.queries[0].scale
    assert votes.queries[1].scale > fair.queries[1].scale


def test_all_attempts_are_paid_for():
    once, twice = (calibrate(draft(SMALL, max_attempts=attempts), 2.0) for attempts in (1, 2))
    assert twice.queries[0].scale == pytest.approx(math.sqrt(2) * once.queries[0].scale, rel=1e-4)
    assert verify(twice) <= 2
    eight = calibrate(draft(replace(SMALL, times=8)), 2.0)
    assert twice.queries[0].scale == pytest.approx(eight.queries[0].scale, rel=1e-9)
    pure = calibrate(draft(COUNT, max_attempts=3), 0.5)
    assert pure.queries[0].scale == pytest.approx(3 / 0.5, rel=1e-6)


def test_a_users_records_cost_in_proportion():
    users = draft(replace(SMALL, spec=VotesSpec(top=5, max_records=8)), unit="user")
    assert calibrate(users, 4.0).queries[0].scale == pytest.approx(
        8 * calibrate(draft(SMALL), 4.0).queries[0].scale, rel=1e-4
    )
    assert verify(calibrate(users, 4.0)) <= 4


@pytest.mark.parametrize("redraw", [False, True])
def test_a_subsample_needs_less_noise(redraw):
    few = replace(SMALL, rate=0.2, redraw=redraw)
    calibrated = calibrate(draft(few), 1.0)
    assert 0.2 < calibrated.queries[0].scale / calibrate(draft(SMALL), 1.0).queries[0].scale < 0.9
    assert 1 - 1e-3 < verify(calibrated) <= 1


def test_without_noise_nothing_changes():
    bare = draft(VOTES, COUNT)
    assert calibrate(bare, math.inf) is bare
    assert verify(bare) == math.inf


def test_a_method_that_asks_nothing_costs_nothing():
    silent = calibrate(draft(), 4.0)
    assert (silent.epsilon, verify(silent)) == (0.0, 0.0)


def test_the_papers_sigma_and_what_it_really_costs():
    # WASP, T = 5, Q = 8: 4 sqrt(4) sqrt(2 ln(1.25e5)) / 4 votes.
    paper = calibrate(draft(VOTES), 4.0, calibration="paper")
    (query,) = paper.queries
    assert query.scale / query.spec.grid == pytest.approx(9.69, abs=5e-3)
    assert (paper.epsilon, paper.calibration) == (4.0, "paper")
    assert verify(paper) == pytest.approx(1.287, abs=5e-4)
    attempts = calibrate(draft(VOTES, max_attempts=2), 4.0, calibration="paper")
    assert attempts.queries[0].scale == pytest.approx(math.sqrt(2) * query.scale)


@pytest.mark.parametrize(
    "query",
    [COUNT, RANGE, replace(SMALL, mechanism="laplace"), replace(SMALL, rate=0.5)],
    ids=["count", "range", "laplace", "subsampled"],
)
def test_the_papers_formula_is_for_gaussian_votes_alone(query):
    with pytest.raises(PlanError, match=r"^the papers' formula does not cover"):
        calibrate(draft(query), 4.0, calibration="paper")


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, -math.inf])
def test_an_epsilon_that_is_none_is_refused(epsilon, calibration):
    with pytest.raises(ConfigError, match=r"^epsilon;"):
        calibrate(draft(VOTES), epsilon, calibration=calibration)


def test_another_calibration_is_refused():
    with pytest.raises(ConfigError, match="tight, paper"):
        calibrate(draft(VOTES), 4.0, calibration="guess")


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.0, 1.0), (0.3, 0.8)])
def test_shares_that_are_not_1_in_all_are_refused(shares):
    queries = [replace(query, share=share) for query, share in zip((SMALL, COUNT), shares, strict=True)]
    with pytest.raises(ConfigError, match=r"^shares of epsilon"):
        calibrate(draft(*queries), 4.0)


def test_a_grid_too_coarse_for_the_parties_is_refused_not_drowned_in_noise(monkeypatch):
    def never(**_):
        raise AssertionError("calibrated before it was checked")

    monkeypatch.setattr(budget.accountant, "calibrate", never)
    coarse = PlannedQuery(name="votes", spec=VotesSpec(top=1, furthest=False))
    with pytest.raises(PlanError, match=r"grid units.*finer grid"):
        calibrate(draft(coarse, parties=100), 1.0)


def test_a_laplace_noise_too_large_is_refused():
    wide = PlannedQuery(name="sketch", spec=SketchSpec(labels=2, features=2000, paired=False), mechanism="laplace")
    with pytest.raises(PlanError, match="of sketch"):
        calibrate(draft(wide), 0.1)


def test_a_query_without_proof_has_no_finite_epsilon():
    plan = calibrate(draft(ABSTRACTED), 4.0)
    assert plan.epsilon == accountant.epsilon(plan.releases(), plan.delta) == math.inf
    with pytest.raises(PlanError, match="a proof"):
        replace(plan, epsilon=4.0)


@pytest.mark.parametrize(("epsilon", "sigma"), [(4.0, 1.20), (2.0, 2.40), (1.0, 4.80)])
def test_the_noise_of_an_unproven_choice_is_the_papers(epsilon, sigma):
    # RPSG, appendix B.3 and table 5: N = 8948 records.
    (query,) = calibrate(draft(ABSTRACTED, delta=1 / (8948 * math.log(8948))), epsilon).queries
    assert query.scale / query.spec.noise_grid == pytest.approx(sigma, abs=0.005)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_proven_queries_keep_their_noise_beside_unproven_ones(calibration):
    rewritten = PlannedQuery(name="rewritten", spec=RewrittenSpec(texts=3), mechanism="none", share=0.25)
    shared = [replace(query, share=share) for query, share in ((VOTES, 0.5), (ABSTRACTED, 0.25))]
    mixed = calibrate(draft(*shared, rewritten), 4.0, calibration=calibration)
    alone = calibrate(draft(VOTES), 2.0, calibration=calibration)
    assert [query.name for query in mixed.queries] == ["votes", "abstracted", "rewritten"]
    assert mixed.queries[0] == replace(alone.queries[0], share=0.5)
    assert (mixed.calibration, mixed.epsilon) == (calibration, math.inf)
    assert mixed.queries[1].scale == calibrate(draft(ABSTRACTED), 1.0).queries[0].scale
    assert mixed.queries[2].scale == 0
    assert calibrate(draft(*shared, rewritten), math.inf).queries[0].scale == 0


def test_an_epsilon_beyond_what_can_be_shown_is_refused():
    with pytest.raises(PlanError, match="below 50"):
        calibrate(draft(VOTES), 70.0)


@pytest.mark.parametrize("max_records", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 6.0])
def test_sums_of_pure_shares_do_not_exceed_epsilon_by_a_last_digit(max_records, epsilon):
    queries = tuple(
        PlannedQuery(
            name=f"{first}",
            spec=VocabularySpec(first=first, max_records=max_records),
            mechanism="laplace",
            share=1 / 3,
            pure=True,
        )
        for first in (1, 3, 7)
    )
    unit = "sample" if max_records == 1 else "user"
    assert verify(plan(3, epsilon=epsilon, queries=queries, unit=unit)) <= epsilon
