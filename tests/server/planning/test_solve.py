"""A plan solved backwards: the least epsilon and the least number of records."""

import math

import pytest

from common.errors import PlanError
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.self_similarity import SelfSimilaritySpec
from server.methods.fusegen import FuseGen
from server.planning.signal import (
    CLEAR,
    least_epsilon,
    least_records,
    signal_advice,
    signals,
    weakest,
    with_parts,
    with_weakest_parts,
)
from tests.support.methods import Asking
from tests.support.plans import planned


@pytest.mark.parametrize("target", [0.02, 0.3, 1.0, 3.0, 7.9])
@pytest.mark.parametrize("power", [0.8, 1.0, 1.1])
def test_the_least_epsilon_is_found_with_few_plans(power, target):
    epsilons = []

    def ratio(epsilon):
        epsilons.append(epsilon)
        return epsilon**power

    solved_epsilon = least_epsilon(ratio, target)
    assert len(epsilons) <= 12
    assert ratio(solved_epsilon) >= target
    assert solved_epsilon == 0.01 or ratio(solved_epsilon - 0.01) < target


def test_a_signal_that_no_sensible_epsilon_gives_is_refused_with_what_there_would_be():
    with pytest.raises(PlanError, match=r"^signal; .*; got 2\."):
        least_epsilon(lambda epsilon: epsilon / 10, 3.0)
    assert least_epsilon(lambda epsilon: 1000 * epsilon, 1.0) == 0.01


def test_an_epsilon_for_which_there_is_no_plan_is_too_small_but_a_plan_that_can_never_be_is_refused():
    def ratio(epsilon):
        if epsilon < 0.07:
            raise PlanError("scale of votes")
        return 100 * epsilon

    assert least_epsilon(ratio, 1.0) == 0.07

    def never(epsilon):
        raise PlanError("parties", got=epsilon)

    with pytest.raises(PlanError, match="parties"):
        least_epsilon(never, 1.0)


def asking_two(buckets=1000, share=0.5):
    """A method of two queries, of which the second needs more records."""
    labels, pairs = LabelHistogramSpec(labels=10), SelfSimilaritySpec(buckets=buckets)
    return Asking(
        PlannedQuery(name="labels", spec=labels, mechanism="laplace", share=1 - share),
        PlannedQuery(name="pairs", spec=pairs, mechanism="laplace", share=share),
    )


def test_the_query_that_needs_most_records_decides():
    plan = planned(asking_two(), 4.0)
    least = least_records(plan, {}, 3.0)
    before, enough = ([signal.ratio for signal in signals(plan, {}, records)] for records in (least - 1, least))
    assert min(enough) >= 3
    assert before[0] > 3 > before[1]


def test_every_part_of_a_questionnaire_is_enough_and_no_advice_is_left():
    # Class sums whose questions about words and persons need more records than the sums.
    spec = QuestionnaireSpec(labels=10, directions=8, count=256, words=256, person=512, first=16, term=128)
    plan = planned(Asking(PlannedQuery(name="q", spec=spec)), 4.0)
    least = least_records(plan, {}, CLEAR)
    assert least == max(signal.clear_from for signal in with_parts(plan, {}, None))
    assert least > signals(plan, {}, None)[0].clear_from
    assert signal_advice(with_weakest_parts(plan, {}, least)) == []
    assert weakest(with_parts(plan, {}, least - 1)).ratio < CLEAR


def test_records_that_help_nothing_are_refused_with_advice():
    with pytest.raises(PlanError, match=r"for pairs.*epsilon"):
        least_records(planned(asking_two(buckets=50), 0.2), {}, 3.0)
    with pytest.raises(PlanError, match=r"for pairs.* buckets"):
        least_records(planned(asking_two(buckets=10, share=0.99), 2.0), {}, 3.0)
    with pytest.raises(PlanError, match="signal"):
        least_records(planned(FuseGen(), 1.0), {}, 3.0)
    assert least_records(planned(asking_two(), math.inf), {}, 3.0) == 1
