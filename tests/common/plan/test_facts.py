"""Facts about a plan's guarantee: whose noise counts, who lifts masks, and what earlier files lack."""

from dataclasses import replace

import pytest

from common.plan.facts import AgainstColluders
from common.plan.guarantee import plan_guarantee
from common.plan.guesses import Guesses
from tests.support.plans import plan_of_one, plan_with


def test_masks_are_lifted_by_one_party_more_than_the_largest_coalition():
    facts = plan_guarantee(plan_with(epsilon=4.0))
    assert facts.masked
    assert replace(facts, parties=5, largest_coalition=2).lifting == 3
    assert replace(facts, parties=5, largest_coalition=4).lifting is None
    assert plan_guarantee(plan_of_one()).lifting is None


def test_the_epsilon_against_colluders_is_computed_for_the_numbers_that_are_asked_for():
    rows = plan_guarantee(plan_with(epsilon=4.0), coalitions=(2,)).against_colluders
    assert [row.colluders for row in rows] == [2]


@pytest.mark.parametrize("malicious", [False, True])
def test_an_earlier_file_counts_no_noise_of_the_corrupt_for_its_readers(malicious):
    rows = tuple(AgainstColluders(colluders=number, epsilon=3.0 + number) for number in range(3))
    facts = replace(
        plan_guarantee(plan_with(epsilon=4.0)),
        aggregation="secure, malicious coordinator" if malicious else "secure, semi-honest coordinator",
        against_colluders=rows,
        released_epsilon=3.0,
        planned_epsilon=4.0,
        corrupt=2,
        assumed_colluders=1,
        party_epsilon=4.0,
        released_guesses=None,
        party_guesses=None,
    )
    worst = 5.0 if malicious else 4.0
    assert facts.readers_epsilon == worst
    assert facts.readers_guesses == Guesses.of_pair(worst, facts.delta)
    assert facts.insiders_guesses == Guesses.of_pair(4.0, facts.delta)
    assert replace(facts, released_guesses=facts.readers_guesses).readers_epsilon == 3.0
    assert facts.readers_condition()
