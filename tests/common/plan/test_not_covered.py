"""What a plan's guarantee leaves open and rests on, by the plan alone."""

import math
from dataclasses import replace

import pytest

from common.plan.facts import differences, few_corrupt, not_covered
from common.plan.guarantee import epsilon_against, plan_guarantee
from common.plan.planned import PlannedQuery
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from common.queries.votes import VotesSpec
from tests.support.federations import plan

SEEDS = PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=4), mechanism="gaussian max", scale=2.0**20)
CHOICES = PlannedQuery(name="choices", spec=SeedChoiceSpec(choices=4), mechanism="permute and flip", scale=1.0)


def headings(agreed):
    items = not_covered(plan_guarantee(agreed), str)
    return {heading for heading, separator, text in (item.partition(": ") for item in items) if separator and text}


ALWAYS = {"Things that were public before", "Other uses of the same records", "Faults in software or machines"}
ASKED = {
    *("A malicious hospital", "Traffic", "Side channels at a hospital"),
    *("A changed file of records", "A person's decision"),
}
SUMMED = {
    *("More colluding hospitals than planned", "Sums over different hospitals", "More dropouts than planned"),
    "Broken cryptography",
}
NOISY = {"Facts about groups", "People with several records"}


@pytest.mark.parametrize(
    ("agreed", "expected"),
    [
        (plan(3), {"A malicious coordinator", "A curious hospital", *SUMMED, *NOISY}),
        (plan(3, colluders=1), {"A malicious coordinator", *SUMMED, *NOISY}),
        (
            plan(3, roster="ab" * 32, max_records_per_party=9),
            {"A coordinator that stops or distorts the run", "A curious hospital", *SUMMED, *NOISY},
        ),
        (plan(3, secure=False, threshold=1), NOISY),
        (
            plan(3, unit="user", spec=VotesSpec(top=4, max_records=3), secure=False, threshold=1),
            {"Facts about groups", "Who a user is"},
        ),
        (plan(3, epsilon=math.inf, secure=False, threshold=1), {"The private records"}),
        (plan(3, queries=(SEEDS, CHOICES), epsilon=math.inf, secure=False, threshold=1), {"The private records"}),
    ],
)
def test_each_plan_has_its_limits(agreed, expected):
    assert headings(agreed) == ALWAYS | ASKED | expected


def test_without_a_question_only_what_always_holds_is_left():
    assert headings(replace(plan(3), queries=(), epsilon=0.0)) == ALWAYS


def test_collusion_is_priced_by_the_plan():
    agreed = plan(3)
    assert any(f"(ε = {epsilon_against(agreed, 1)})" in item for item in not_covered(plan_guarantee(agreed), str))


def test_training_is_named():
    spec = FineTunedSpec(texts=4, steps=2)
    query = PlannedQuery(name="texts", spec=spec, mechanism="dp-sgd", scale=1e6)
    assert "Training in floating point" in headings(plan(3, queries=(query,), secure=False, threshold=1))


def test_clauses_on_sums_and_on_corrupt_hospitals_differ_by_their_numbers():
    assert "drop out" in differences(1)
    assert "drop out" not in differences(0)
    assert "no hospital" in few_corrupt(0, 10)
    assert "3 of 10" in few_corrupt(3, 10)
