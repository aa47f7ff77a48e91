"""Signal and noise that a plan is expected to have, against figures worked out apart from it."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from common.errors import PlanError
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import QUERIES
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from server.methods.wasp import VOTES, Wasp
from server.planning.expected import expected_signal
from server.planning.signal import (
    few_candidates,
    hopeless,
    records_for,
    signal_advice,
    signals,
    weakest,
    with_parts,
    with_weakest_parts,
)
from tests.support.methods import Asking
from tests.support.plans import TEN, planned
from tests.support.screens import assert_accepted, under_headings


def asking(spec, **settings):
    """A method of one query."""
    return Asking(PlannedQuery(name="q", spec=spec, **settings))


def estimate(spec, records, *, compared=0, epsilon=1.0, membership=None, **settings):
    plan = planned(asking(spec, **settings), epsilon, **membership or {})
    (query,) = signals(plan, {"q": compared} if compared else {}, records)
    return query


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 12.2), (4.0, 3.5)])
def test_votes_drown_among_six_thousand_candidates(epsilon, sigma):
    method = Wasp(samples=6000, rounds=5, top=8)
    plan = planned(method, epsilon)
    (of_all,) = signals(plan, {VOTES: 6000}, 100)
    assert f"{of_all.expected.signal:.3f}" == "0.033"
    assert f"{of_all.expected.noise:.1f}" == f"{sigma}"
    assert method.compared(TEN) == {VOTES: 4800}  # the last answer is about the texts of four rounds of five
    (last,) = signals(plan, method.compared(TEN), 100)
    assert last.expected.signal == pytest.approx(of_all.expected.signal * 6000 / 4800)


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.1), (4.0, 3.7)])
def test_class_sums_of_a_hundred_records_are_heard(epsilon, ratio):
    query = estimate(ClassSumsSpec(labels=10, directions=8, count=102), 100, epsilon=epsilon)
    assert f"{query.ratio:.1f}" == f"{ratio}"
    assert query.expected.signal == pytest.approx(4.0)


QUESTIONNAIRE = QuestionnaireSpec(labels=10, directions=8, count=256, words=256, person=512, first=16, term=128)


def test_each_question_of_a_questionnaire_and_its_terms_have_a_signal():
    method = asking(QUESTIONNAIRE)
    plan = planned(method, 4.0)
    sums, *parts = with_parts(plan, {}, 100)
    assert [part.query for part in parts] == ["q, words", "q, person", "q, terms"]
    assert [part.expected.signal for part in parts] == pytest.approx([100 / 9, 100 / 4, 25])
    assert sums.expected.signal == pytest.approx(4)
    # A weight of a quarter of the grid, of a half, and of an eighth.
    assert [part.expected.noise / sums.expected.noise for part in parts] == pytest.approx([4, 2, 8])
    alone = estimate(ClassSumsSpec(labels=10, directions=8, count=256), 100, epsilon=4.0)
    joint = math.sqrt((1 + 1 / 16 + 1 / 16 + 1 / 4 + 16 / 64) / (1 + 1 / 16))
    assert sums.expected.noise / alone.expected.noise == pytest.approx(joint, rel=1e-6)
    assert parts[2].clear_from == records_for(3.0, plan, plan.queries[0], 0, "terms")
    for sentence, facts in zip(
        signal_advice(parts), (("q, words", "11 records"), ("q, terms", "25 records")), strict=True
    ):
        assert all(fact in sentence for fact in (*facts, "be weak"))


def test_a_questionnaire_without_terms_has_no_signal_of_terms():
    plan = planned(asking(replace(QUESTIONNAIRE, first=0, term=0)), 1.0)
    _, *parts = with_parts(plan, {}, None)
    assert [part.query for part in parts] == ["q, words", "q, person"]
    assert all(part.reason and part.expected is None for part in parts)


@pytest.mark.parametrize(("records", "epsilon"), [(100, 4.0), (100, 0.001), (None, 4.0)])
def test_of_a_questionnaire_only_the_weakest_part_is_in_the_advice(records, epsilon):
    plan = planned(asking(QUESTIONNAIRE), epsilon)
    assert [signal.query for signal in with_weakest_parts(plan, {}, records)] == ["q", "q, words"]
    assert len(signal_advice(with_weakest_parts(plan, {}, records))) <= 2
    counts = planned(asking(LabelHistogramSpec(labels=10), mechanism="laplace"), epsilon)
    assert with_weakest_parts(counts, {}, records) == signals(counts, {}, records)


LAPLACE = math.sqrt(2)  # deviation of a count with sensitivity 1 at epsilon 1


@pytest.mark.parametrize(
    ("spec", "settings", "signal", "noise"),
    [
        (LabelHistogramSpec(labels=10), {"mechanism": "laplace"}, 100 / 10, LAPLACE),
        (LengthHistogramSpec(bins=25), {"mechanism": "laplace"}, 100 / 25, LAPLACE),
        (VocabularySpec(first=5), {"mechanism": "laplace", "compared": 50}, 100 * 5 / 50, 5 * LAPLACE),
        (CorrectCountSpec(), {"mechanism": "laplace"}, 100, 2 * LAPLACE),
        (VotesSpec(top=3, furthest=False, fine=128), {"mechanism": "laplace", "compared": 20}, 100 * 1.5 / 20, None),
        (VotesSpec(top=3, furthest=False, fine=128), {"mechanism": "laplace", "compared": 350}, 175 / 350, None),
        # 25 records at each of four parties, l1 = 4 of both ends; noise b on the threshold and 2 b on a count.
        (LengthRangeSpec(cap=30), {"mechanism": "sparse vector"}, 25, math.hypot(4, 8) * LAPLACE),
        # 0.25 records in a bucket on average: so many of 400 buckets have just two.
        (SelfSimilaritySpec(buckets=100), {"mechanism": "laplace"}, 400 * 0.25**2 / 2 * math.exp(-0.25), 2 * LAPLACE),
        (SketchSpec(labels=10, features=200, first=4), {"mechanism": "gaussian"}, 100 / 10 / 4, None),
        (SketchSpec(labels=10, features=200, first=4, prefix=2), {"mechanism": "gaussian"}, 100 / 10, None),
    ],
    ids=lambda value: value.kind if hasattr(value, "kind") else "",
)
def test_signal_and_noise_of_each_kind(spec, settings, signal, noise):
    query = estimate(spec, 100, **settings)
    assert query.expected.signal == pytest.approx(signal)
    if noise:
        assert query.expected.noise == pytest.approx(noise, rel=1e-6)


def test_the_noise_of_a_sketch_is_that_of_the_density():
    few, many = (
        estimate(SketchSpec(labels=10, features=features), 100, mechanism="gaussian").expected.noise
        for features in (100, 1000)
    )
    assert few == pytest.approx(many, rel=0.01)  # s(1) = 3.73 times 1: pairs of norm 1 on I / 2 rows
    assert few == pytest.approx(3.73, rel=0.01)


def test_choices_of_seeds_gain_what_records_choose_more_often_than_at_random():
    pool, nearest, epsilon = 100, 10, 4.0
    spec = SeedChoiceSpec(choices=50, nearest=nearest)
    query = estimate(spec, 120, epsilon=epsilon, compared=pool, mechanism="exponential", pure=True)
    near = math.exp(epsilon) / (nearest * math.exp(epsilon) + pool - nearest)
    far = near / math.exp(epsilon)
    assert nearest * near + (pool - nearest) * far == pytest.approx(1)
    assert query.expected.signal == pytest.approx(120 * nearest / pool * (near - far))
    assert query.expected.noise == pytest.approx(math.sqrt(4 * 50 / pool))
    # Four parties have 200 choices: more records than that change nothing.
    most, more = (
        estimate(spec, records, epsilon=epsilon, compared=pool, mechanism="exponential", pure=True)
        for records in (200, 2000)
    )
    assert most.ratio == more.ratio
    assert most.clear_from is None
    exact = estimate(spec, 120, epsilon=math.inf, compared=pool, mechanism="exponential")
    assert exact.expected.signal == pytest.approx(120 / pool)


def test_every_kind_of_query_has_its_own_formula_or_reason():
    others = expected_signal.dispatch(object)
    for spec, _ in QUERIES:
        assert expected_signal.dispatch(spec) is not others, spec.kind
    assert isinstance(others(None, None), str)  # a reason in place of a formula


@pytest.mark.parametrize(
    ("spec", "mechanism", "reason"),
    [
        (SeedChoiceSpec(choices=5), "permute and flip", "cosines"),
        (AbstractedSeedsSpec(choices=5), "gaussian max", "abstractions of itself"),
        (FineTunedSpec(texts=5), "dp-sgd", "the party's own"),
        (RewrittenSpec(texts=5), "none", "no noise"),
        (VotesSpec(top=1), "gaussian", "among how many"),
    ],
)
def test_what_has_no_honest_formula_says_why(spec, mechanism, reason):
    rate = {"rate": 0.1, "redraw": True} if mechanism == "dp-sgd" else {}
    compared = 100 if mechanism == "permute and flip" else 0
    query = estimate(spec, 100, compared=compared, epsilon=math.inf, mechanism=mechanism, **rate)
    assert query.expected is None
    assert math.isnan(query.ratio)
    assert reason in query.to_dict()["not_estimated"]
    with pytest.raises(PlanError, match="no query of this plan has a signal"):
        weakest([query])
    assert (hopeless([query]), len(signal_advice([query]))) == ({}, 1)


def test_a_subsample_has_its_share_of_the_records():
    spec = LabelHistogramSpec(labels=10)
    assert estimate(spec, 100, mechanism="laplace", rate=0.5).expected.signal == 5


@pytest.mark.parametrize(
    ("membership", "times"),
    [({}, 1), ({"colluders": 1}, 4 / 3), ({"colluders": 1, "max_dropouts": 1}, 2), ({"secagg": "none"}, 4)],
)
def test_all_parties_add_noise_and_not_those_alone_that_are_certain(membership, times):
    spec = VotesSpec(top=1, furthest=False, fine=1024)
    noise, alone = (
        estimate(spec, 100, compared=10, membership=extra).expected.noise for extra in (membership, {"parties": 1})
    )
    assert noise == pytest.approx(math.sqrt(times) * alone, rel=1e-4)


def test_the_least_number_of_records_is_enough_and_one_less_is_not():
    method = Wasp(samples=600)
    plan, compared = planned(method, 4.0), method.compared(TEN)
    least = records_for(3, plan, plan.queries[0], compared[VOTES])
    ratios = [signals(plan, compared, records)[0].ratio for records in (least - 1, least, 2 * least)]
    assert ratios[0] < 3 <= ratios[1]
    assert ratios[2] == pytest.approx(2 * ratios[1])
    assert signals(plan, compared, None)[0].clear_from == least


def test_a_signal_that_falls_with_more_records_is_clear_up_to_its_peak_alone():
    spec = SelfSimilaritySpec(buckets=100)
    query = estimate(spec, 60, mechanism="laplace")
    assert query.clear_from is not None
    assert estimate(spec, query.clear_from, mechanism="laplace").ratio >= 3
    assert estimate(spec, 20_000, mechanism="laplace").ratio < 0.5
    assert estimate(spec, 60, mechanism="laplace", epsilon=0.01).clear_from is None


def test_without_noise_all_is_clear_and_still_json():
    query = estimate(LabelHistogramSpec(labels=10), 10, epsilon=math.inf, mechanism="laplace")
    assert (query.ratio, query.to_dict()["ranked_rightly"], query.clear_from) == (
        math.inf,
        1.0,
        1,
    )
    assert signal_advice([query]) == []
    noisy = estimate(LabelHistogramSpec(labels=10), 10, mechanism="laplace").to_dict()
    assert json.loads(json.dumps(noisy)) == noisy


def votes_of(records, epsilon=4.0):
    method = Wasp(samples=6000)
    return signals(planned(method, epsilon), method.compared(TEN), records)


COUNTS = LabelHistogramSpec(labels=10)


@cache
def advised():
    """Signals of each kind that there is advice on."""
    return {
        "votes that are noise": votes_of(100),
        "few records of a label": [estimate(COUNTS, 20, mechanism="laplace")],
        "few records of a label, or of two": [estimate(LabelSetsSpec(labels=10), 20, mechanism="laplace")],
        "few sections": [estimate(SectionOrderSpec(labels=10), 40, mechanism="laplace")],
        "never clear": [estimate(SelfSimilaritySpec(buckets=2), 8, mechanism="laplace")],
        "no number of records": [estimate(COUNTS, None, mechanism="laplace")],
        "no formula": [estimate(RewrittenSpec(texts=5), 9, epsilon=math.inf, mechanism="none")],
        "clear": [estimate(COUNTS, 43, mechanism="laplace")],
    }


FEW = {
    "top 8 of 16": (8, 16),
    "top 8 of 15": (8, 15),
    "top 2 of 4": (2, 4),
    "top 1 of 0": (1, 0),
    "top 12 of 20": (12, 20),
}
"""Votes of a record, and candidates of a label."""


def test_advice_on_signals_and_candidates_is_that_accepted():
    screens = {name: signal_advice(estimates) for name, estimates in advised().items()}
    for name, (top, candidates) in FEW.items():
        plan = planned(asking(VotesSpec(top=top)), 1.0)
        screens[name] = few_candidates(plan, {"q": candidates * len(TEN.labels)})
    assert_accepted(under_headings(screens), Path(__file__).parent / "screens" / "advice.txt")


def test_warnings_are_of_answers_that_are_noise_alone():
    noise = advised()["votes that are noise"]
    assert hopeless(noise) == {VOTES: signal_advice(noise)[0]}
    assert hopeless([signal for name, of in advised().items() for signal in of if signal not in noise]) == {}


def test_without_a_guess_of_records_it_says_how_many_it_takes():
    query = estimate(LabelHistogramSpec(labels=10), None, mechanism="laplace")
    assert query.to_dict().keys() == {"not_estimated", "clear_from_records"}
    assert query.to_dict()["clear_from_records"] == 43


@pytest.mark.parametrize("spec", [VotesSpec(top=1, furthest=False, fine=128), LabelHistogramSpec(labels=10)])
def test_where_records_rank_nothing_there_cannot_be_too_little_to_rank(spec):
    assert few_candidates(planned(asking(spec, mechanism="laplace"), 1.0), {}) == []
