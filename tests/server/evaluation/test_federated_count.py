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
from tests.support.methods import Asking
from tests.support.plans import planned as of_method


def votes(**changes):
    settings = {"name": "votes", "spec": VotesSpec(top=8, furthest=True), "times": 4, "share": 1.0} | changes
    return PlannedQuery(**settings)


def count_alone(**changes):
    return plan(3, queries=with_evaluation([], 0.1, 1), epsilon=1.0, unit="sample", **changes)


def answered(values):
    return Answered(index=0, values=np.array(values), survivors=3)


def test_share_of_the_count_is_taken_from_all_others():
    parts = [votes(share=0.7), votes(name="labels", spec=LabelHistogramSpec(labels=2), share=0.3)]
    made = with_evaluation(parts, 0.1, 3)
    assert [query.share for query in made] == pytest.approx([0.63, 0.27, 0.1])
    assert math.fsum(query.share for query in made) == pytest.approx(1, abs=1e-12)
    assert (made[-1].name, made[-1].mechanism, made[-1].spec.max_records, made[-1].pure) == (NAME, "laplace", 3, True)
    assert with_evaluation(parts, 0.0, 3) == tuple(parts)


LABELS = {"spec": LabelHistogramSpec(labels=10), "mechanism": "laplace"}
SIDES = {
    "nothing": (),
    "votes": (votes(),),
    "pure": (votes(**LABELS, times=1, pure=True),),
    "both": (votes(share=0.5), votes(name="labels", **LABELS, share=0.5)),
    "unproven": (votes(spec=RewrittenSpec(texts=3), times=1, mechanism="none"),),
}


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("queries", SIDES.values(), ids=SIDES)
def test_count_beside_any_queries_costs_its_share_and_no_more(queries, epsilon, share):
    made = of_method(Asking(*queries), epsilon, evaluation_share=share)
    alone = cost_of(made.releases_of(made.queries[-1]), made.delta)
    assert 0.99 * share * epsilon < alone <= share * epsilon * (1 + 1e-9)
    if not queries:
        assert made.epsilon == share * epsilon


@pytest.mark.parametrize("method", slow_but({"wasp", "dpga"}, ["wasp", "fusegen", "pre_text", "dpga"]))
def test_method_with_the_count_keeps_its_epsilon(method):
    user = ["privacy.unit=user", "privacy.max_records=4"] if method == "pre_text" else []
    settings = [f"method={method}", "privacy.epsilon=2", *user]
    made, plain = (
        build_components(compose_settings([*settings, *more])).plan for more in (["evaluation.federated=0.05"], [])
    )
    assert (plans_count(made), plans_count(plain)) == (True, False)
    assert made.queries[-1].scale > 0
    assert verify(made) <= 2


@pytest.mark.parametrize("present", ["bca", "aca", "ccc"])
def test_classifier_of_texts_with_any_labels_answers_in_the_plans_labels(present):
    vectors = np.eye(3, dtype=np.float32)
    texts = [Candidate(text="t", label=label, model="m", round=0) for label in np.repeat([*present], 4)]
    query = question(vectors.repeat(4, axis=0), texts, count_alone(labels=("a", "b", "c")))
    predicted = (vectors @ query.weights.T + query.intercepts).argmax(axis=1)
    assert "".join("abc"[at] for at in predicted) == present


def test_figures_of_an_answer_are_those_by_hand():
    made = count_alone()
    sigma = math.sqrt(2) * made.queries[0].scale  # three survivors, three shares
    figures = federated_count_group(made, answered([450, 600]))
    noise = sigma * math.sqrt(1 + 0.75**2) / 600
    half = math.log(20) / math.sqrt(2) * noise  # Laplace noise exceeds this in 5% of cases
    accuracy = figures["accuracy"]
    assert (accuracy.value, accuracy.noise, figures["right"].noise) == pytest.approx((0.75, noise, sigma))
    assert accuracy.interval == pytest.approx((0.75 - half, 0.75 + half))
    drowned = federated_count_group(made, answered([4, 1]))["accuracy"]
    assert drowned.value is None
    assert drowned.reason


def test_intervals_of_the_count_hold_the_truth_nineteen_times_of_twenty():
    made, rng, hits = count_alone(), np.random.default_rng(0), 0
    for _ in range(2000):
        noisy = np.round(np.array([300, 400]) + rng.laplace(0, made.queries[0].scale, 2)).astype(np.int64)
        low, high = federated_count_group(made, answered(noisy))["accuracy"].interval
        hits += low <= 0.75 <= high
    assert 0.93 < hits / 2000 < 0.97
