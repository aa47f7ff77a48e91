import math
from dataclasses import replace

import pytest

from client.approval.fit import largest_epsilon
from client.guard import Limits
from client.session import RefusalError
from common.plan.planned import PlannedQuery
from common.privacy.accountant import epsilon
from common.queries.histograms import LabelHistogramSpec
from common.queries.votes import VotesSpec
from tests.support.federations import DECLARED
from tests.support.plans import plan_of_one

LIMITS = Limits(malicious_coordinator=False, corrupt=0.0, min_survivors=1, max_epsilon=1.0)
VOTES = PlannedQuery(name="votes", spec=VotesSpec(top=8), scale=800.0, times=4)
LAPLACE = PlannedQuery(name="labels", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=100.0)


def made(*queries):
    """A plan of these queries with its true epsilon."""
    unpriced = plan_of_one(*queries, delta=1e-5)
    return replace(unpriced, epsilon=epsilon(unpriced.releases(), unpriced.delta))


@pytest.mark.parametrize(
    "queries",
    [
        (VOTES,),
        (VOTES, replace(VOTES, name="vast", scale=1e15)),  # with much more noise its sums no longer fit the ring
        (VOTES, LAPLACE),  # a Laplace scale has a largest value
    ],
    ids=("votes", "vast", "laplace"),
)
def test_the_largest_epsilon_is_found_though_plans_with_more_noise_cannot_be_built(queries):
    plan = made(*queries)
    with pytest.raises(RefusalError):
        LIMITS.check(plan, declared=DECLARED)
    assert 0.99 < largest_epsilon(plan, LIMITS, (), declared=DECLARED) <= 1.0


def test_the_largest_epsilon_is_zero_where_no_noise_helps_also_where_little_more_noise_can_be_built():
    assert largest_epsilon(made(VOTES), replace(LIMITS, max_top=4), (), declared=DECLARED) == 0
    least = replace(LIMITS, max_epsilon=1e-5)  # a Laplace scale of more than 20000 would be needed
    assert largest_epsilon(made(LAPLACE), least, (), declared=DECLARED) == 0


def test_a_search_that_takes_too_long_is_given_up_and_the_next_goes_on_with_it(monkeypatch):
    plan, checked = made(replace(VOTES, scale=801.0)), []
    check = Limits.check
    monkeypatch.setattr(Limits, "check", lambda *given, **how: (checked.append(1), check(*given, **how)))
    times = iter((0.0, 0.0, 2.0, math.inf))
    assert largest_epsilon(plan, LIMITS, (), clock=lambda: next(times), declared=DECLARED) is None
    assert len(checked) == 2
    assert largest_epsilon(plan, LIMITS, (), declared=DECLARED) > 0.99
    assert len(checked) == 12
