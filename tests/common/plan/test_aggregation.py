"""What a plan says of secure aggregation: its set-up, and the probability that a mask is lifted."""

import math

import pytest

from common.plan.aggregation import aggregation_setup, log2_breach
from common.secagg import graph
from tests.support.plans import plan_with


def test_the_set_up_is_of_the_queries_that_are_left_among_all_parties():
    plan = plan_with(roster=32 * "ab")
    setup = aggregation_setup(plan, "run", attempt=2, first=1)
    assert (setup.run, setup.attempt, setup.rounds) == ("run", 2, (1, 2, 3))
    assert (setup.parties, setup.threshold, setup.minimum_survivors) == (tuple(range(10)), 7, 9)
    assert (setup.degree, setup.corrupt, setup.roster_digest) == (9, 3, bytes.fromhex(32 * "ab"))


def test_on_the_full_graph_a_mask_is_safe_from_as_many_as_the_plan_bears_and_no_more():
    plan = plan_with()
    assert log2_breach(plan, plan.largest_coalition) == -math.inf
    assert log2_breach(plan, plan.largest_coalition + 1) == 0


@pytest.mark.parametrize(("corrupt", "assumed"), [(0, 20), (20, 20), (30, 30), (1000, 95)])
def test_on_a_sparse_graph_it_is_the_chance_of_the_graph_with_the_plans_own_number_at_least(corrupt, assumed):
    sizes = {"parties": 100, "max_dropouts": 5, "colluders": 10, "corrupt": 20, "degree": 40, "threshold": 24}
    chance = graph.breach(100, corrupt=assumed / 95, dropped=0.05, degree=40, threshold=24, malicious=False)
    assert log2_breach(plan_with(**sizes), corrupt) == (math.log2(chance) if chance else -math.inf)


def test_a_chance_below_all_numbers_is_none(monkeypatch):
    monkeypatch.setattr(graph, "breach", lambda *_, **__: 0.0)
    sizes = {"parties": 100, "max_dropouts": 5, "colluders": 10, "corrupt": 20, "degree": 40, "threshold": 24}
    assert log2_breach(plan_with(**sizes), 0) == -math.inf
