"""A classifier of the synthetic texts is asked about with noise, at its share of epsilon."""

import math

import numpy as np
import pytest

from common.plan.guarantee import verify
from common.plan.planned import PlannedQuery
from common.privacy.accountant import epsilon as cost_of
from common.queries.histograms import LabelHistogramSpec
from common.queries.texts import RewrittenSpec
from common.queries.votes import VotesSpec
from server.domain import Candidate
from server.evaluation.federated_count import NAME, federated_count_group, plans_count, question, with_evaluation
from server.federation.attempt import Answered
from server.prepare.components import build_components
from server.prepare.compose import compose_settings
from tests.support.federations import plan
from tests.support.lanes import slow_but
from tests.support.plans import planned as of_method


def votes(**changes):
    settings = {"name": "votes", "spec": VotesSpec(top=8, furthest=True), "times": 4, "share": 1.0} | changes
    return PlannedQuery(**settings)


def test_its_share_is_taken_from_all_others():
    parts = [votes(share=0.7), votes(name="labels", spec=LabelHistogramSpec(labels=2), share=0.3)]
    made = with_evaluation(parts, 0.1, 3)
    assert [query.share for query in made] == pytest.approx([0.63, 0.27, 0.1])
    assert math.fsum(query.share for query in made) == pytest.approx(1, abs=1e-12)
    assert (made[-1].name, made[-1].mechanism, made[-1].spec.max_records, made[-1].pure) == (NAME, "laplace", 3, True)
    assert with_evaluation(parts, 0.0, 3) == tuple(parts)


SIDES = {
    "nothing": (),
    "votes": (votes(),),
    "pure": (votes(spec=LabelHistogramSpec(labels=10), times=1, mechanism="laplace", pure=True),),
    "both": (
        votes(share=0.5),
        votes(name="labels", spec=LabelHistogramSpec(labels=10), mechanism="laplace", share=0.5),
    ),
    "unproven": (votes(spec=RewrittenSpec(texts=3), times=1, mechanism="none"),),
}


class Asking:
    """A method with these queries."""

    name = "asking"

    def __init__(self, queries):
        self.queries = queries

    def plan(self, *_):
        return self.queries


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("queries", SIDES.values(), ids=SIDES)
def test_whatever_is_asked_beside_it_the_count_costs_its_share_and_no_more(queries, epsilon, share):
    made = of_method(Asking(queries), epsilon, evaluation_share=share)
    alone = cost_of(made.releases_of(made.queries[-1]), made.delta)
    assert 0.99 * share * epsilon < alone <= share * epsilon * (1 + 1e-9)
    if not queries:
        assert made.epsilon == share * epsilon


@pytest.mark.parametrize("method", slow_but({"wasp", "dpga"}, ["wasp", "fusegen", "pre_text", "dpga"]))
def test_any_method_keeps_its_epsilon_with_it(method):
    user = ["privacy.unit=user", "privacy.max_records=4"] if method == "pre_text" else []
    made = build_components(
        compose_settings([f"method={method}", "privacy.epsilon=2", "evaluation.federated=0.05", *user])
    ).plan
    assert plans_count(made)
    assert made.queries[-1].scale > 0
    assert verify(made) <= 2
    assert not plans_count(build_components(compose_settings([f"method={method}", *user])).plan)


def candidates(*labels):
    return [Candidate(text="t", label=label, model="m", round=0) for label in labels]


def predict(query, vectors):
    return (vectors @ query.weights.T + query.intercepts).argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("present", "expected"), [(["b", "c", "a"], [1, 2, 0]), (["a", "c", "a"], [0, 2, 0]), (["c", "c", "c"], [2, 2, 2])]
)
def test_the_classifier_says_the_plans_labels_whichever_are_there(present, expected):
    vectors = np.eye(3, dtype=np.float32)
    made = plan(3, queries=with_evaluation([], 0.1, 1), labels=("a", "b", "c"), epsilon=1.0, unit="sample")
    query = question(vectors.repeat(4, axis=0), candidates(*np.repeat(present, 4)), made)
    assert predict(query, vectors) == expected


def test_the_figures_of_an_answer_by_hand():
    made = plan(3, queries=with_evaluation([], 0.1, 1), epsilon=1.0, unit="sample")
    (query,) = made.queries
    sigma = math.sqrt(2) * query.scale  # three survivors, three shares
    figures = federated_count_group(made, Answered(index=0, values=np.array([450, 600]), survivors=3))
    assert figures["right"].noise == pytest.approx(sigma)
    noise = sigma * math.sqrt(1 + 0.75**2) / 600
    assert figures["accuracy"].value == 0.75
    assert figures["accuracy"].noise == pytest.approx(noise)
    half = math.log(20) / math.sqrt(2) * noise  # Laplace noise exceeds this in 5 % of cases
    assert figures["accuracy"].interval == pytest.approx((0.75 - half, 0.75 + half))
    drowned = federated_count_group(made, Answered(index=0, values=np.array([4, 1]), survivors=3))["accuracy"]
    assert drowned.value is None
    assert "noise" in drowned.reason


def test_nineteen_of_twenty_intervals_hold_the_truth():
    made = plan(3, queries=with_evaluation([], 0.1, 1), epsilon=1.0, unit="sample")
    (query,) = made.queries
    rng, hits = np.random.default_rng(0), 0
    for _ in range(2000):
        noisy = np.round(np.array([300, 400]) + rng.laplace(0, query.scale, 2)).astype(np.int64)
        low, high = federated_count_group(made, Answered(index=0, values=noisy, survivors=3))["accuracy"].interval
        hits += low <= 0.75 <= high
    assert 0.93 < hits / 2000 < 0.97
