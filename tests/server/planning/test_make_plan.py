import json
import math
from contextlib import nullcontext
from dataclasses import replace

import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, PlanError
from common.ledger.ledger import Ledger
from common.messages import LARGEST_ENVELOPE, LARGEST_PLAN
from common.plan.facts import MALICIOUS
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.length_range import LengthRangeSpec
from common.secagg.shamir import PAIR_BYTES
from server.domain import Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.spending import Price
from server.methods.wasp import Wasp
from server.planning.forecast import forecast
from server.planning.guarantee_facts import describe
from server.planning.make_plan import check_sizes, make_plan
from server.settings.schema import Secagg
from tests.support.plans import QUERY, plan_with

TASK = Task(name="t", kind="note", labels={"a": "first", "b": "second"})


def planned(**changes):
    def part(kind, **defaults):
        given_fields = {name: changes.pop(name) for name in kind.__dataclass_fields__ if name in changes}
        return kind(**defaults | given_fields)

    target, membership = part(PrivacyTarget, epsilon=4.0), part(Membership, parties=3)
    settings = {"task": TASK, "encoder": "e", "target": target, "membership": membership, "secagg": Secagg()}
    return make_plan(changes.pop("method", Wasp()), **(settings | changes))


def test_a_run_without_parties_is_refused():
    with pytest.raises(ConfigError, match="parties"):
        planned(parties=0)


def test_the_defaults_plan_the_noise_that_the_readme_states():
    facts = describe(planned()).to_json()
    (query,) = facts["queries"]
    assert f"{query['scale']:.4g}" == "3.531"
    assert query["scale_grid"] == 128 * query["scale"]
    assert (query["times"], query["grid"], query["kind"], query["top"]) == (4, 128, "votes", 8)
    assert (query["mechanism"], query["summed"], query["subsampling"]) == ("gaussian", True, None)
    assert query["epsilon_alone"] == facts["planned_epsilon"]
    assert facts["released_epsilon"] == facts["party_epsilon"] == facts["planned_epsilon"]
    assert (facts["threshold"], facts["noise_parties"], facts["assumed_survivors"]) == (2, 3, 3)


@pytest.mark.parametrize(
    ("parties", "colluders", "threshold"), [(2, 0, 2), (3, 0, 2), (4, 0, 3), (10, 0, 6), (10, 7, 8)]
)
def test_the_threshold_is_above_half_and_above_the_colluders(parties, colluders, threshold):
    assert planned(parties=parties, colluders=colluders).threshold == threshold


def test_more_parties_than_the_full_graph_serves_get_a_sparse_one():
    facts = describe(planned(parties=200, secagg=Secagg(full_graph_up_to=150))).to_json()
    assert 20 < facts["neighbours"] < 150
    assert facts["threshold"] <= facts["neighbours"]
    assert facts["corrupt"] == 60


def test_a_coordinator_that_is_trusted_with_nothing_is_in_the_plan():
    facts = describe(planned(parties=4, secagg=Secagg(mode="malicious"), roster=32 * "ab")).to_json()
    assert facts["aggregation"] == MALICIOUS
    trusting = describe(planned(parties=4, secagg=Secagg())).to_json()
    assert set(trusting["not_covered"]) - set(facts["not_covered"])


@pytest.mark.parametrize("parties", [2, 100, 1000, 10_000])
@pytest.mark.parametrize("degree", [40, None])
@pytest.mark.parametrize("answers", [1, 190, 500, 1950, 2000, 5000, 10_000])
@pytest.mark.parametrize("attempts", [1, 10])
def test_a_plan_that_is_not_refused_has_keys_and_shares_that_a_hospital_reads(parties, degree, answers, attempts):
    degree = min(degree or parties, parties - 1)
    made = plan_with(
        parties=parties,
        max_dropouts=0,
        colluders=0,
        degree=degree,
        threshold=parties if degree == parties - 1 else degree,
        queries=(replace(QUERY, times=max(1, answers // attempts)),),
        max_attempts=attempts,
    )
    least = made.total_queries * max(parties * 34, degree * PAIR_BYTES)
    if least > LARGEST_ENVELOPE:
        with pytest.raises(PlanError, match=f"^size of a message.* {parties:,} parties"):
            check_sizes(made)
    elif least < 0.95 * LARGEST_ENVELOPE:
        check_sizes(made)


@pytest.mark.parametrize(("size", "refused"), [(100, False), (2000, True)])
def test_a_plan_that_no_hospital_would_store_is_refused(size, refused):
    made = plan_with(labels=tuple(f"a label with the number {number:09}" for number in range(size)))
    assert (len(made.to_json()) > LARGEST_PLAN) is refused
    with pytest.raises(PlanError, match=r"^size") if refused else nullcontext():
        check_sizes(made)


def test_one_party_alone_has_no_masks_and_says_so(caplog):
    plan = planned(parties=1)
    assert (plan.secure, plan.noise_parties, plan.threshold) == (False, 1, 1)
    assert "one party" in caplog.text


def test_dropouts_below_the_threshold_are_refused():
    with pytest.raises(PlanError, match="threshold"):
        planned(parties=4, max_dropouts=2)


def test_what_was_spent_counts_charges_and_says_how_many_were_answered(tmp_path):
    plan, ledger = planned(), Ledger(tmp_path / "l.db")
    for index in range(3):
        ledger.reserve(
            run="r",
            index=index,
            plan_digest=plan.digest(),
            query_digest=bytes([index]),
            release=plan.answer_release(index),
        )
    for index in range(2):
        ledger.survivors("r", index, {0, 1, 2})
        ledger.commit("r", index)
    spent = describe(plan, ledger=ledger, run="r").to_json()["spent"]
    assert (spent["queries_asked"], spent["queries_planned"]) == (2, 4)
    assert 0 < spent["epsilon"] < plan.epsilon
    assert describe(plan, ledger=ledger, run="other").spent.queries_asked == 0
    assert describe(planned(max_attempts=2)).spent.queries_planned == 4


@pytest.mark.parametrize("changes", [{}, {"colluders": 1}, {"max_dropouts": 1, "colluders": 1}, {"parties": 1}])
def test_the_world_learns_no_more_than_was_planned_and_a_coordinator_with_its_colluders_just_that(changes):
    plan = planned(**({"parties": 5} | changes))
    facts = describe(plan).to_json()
    assert [row["colluders"] for row in facts["against_colluders"]] == [*range(plan.parties)]
    assert facts["released_epsilon"] == facts["planned_epsilon"] == facts["party_epsilon"] <= facts["epsilon"]
    assert (facts["if_all_add_noise_epsilon"] < facts["planned_epsilon"]) == bool(changes.get("colluders"))
    assert facts["released_guesses"] == facts["party_guesses"]


class Several(Wasp):
    def plan(self, *_):
        count = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace", share=0.5, rate=0.5)
        lengths = PlannedQuery(name="range", spec=LengthRangeSpec(cap=30), mechanism="sparse vector", share=0.5)
        return count, lengths


def test_description_of_several_queries_has_each_of_them():
    facts = describe(planned(method=Several())).to_json()
    count, lengths = facts["queries"]
    assert all(mechanism in facts["mechanism"] for mechanism in ("Laplace", "sparse vector"))
    assert (count["kind"], count["labels"], count["summed"]) == ("label histogram", 2, True)
    assert count["subsampling"] == {"rate": 0.5, "redrawn": False}
    assert (lengths["kind"], lengths["cap"], lengths["summed"]) == ("length range", 30, False)
    assert lengths["subsampling"] is None
    assert count["share_of_epsilon"] == lengths["share_of_epsilon"] == 0.5
    assert "summed: range" in facts["statement"]
    assert describe(planned(epsilon=math.inf)).mechanism == "none"


def test_the_facts_are_json_and_hold_the_statement():
    facts = describe(planned(), simulation=True).to_json()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["simulation"]
    assert len(facts["statement"]) > 200
    assert len(facts["not_covered"]) > 5


class Model:
    """A model by whose estimate a request reads 10 tokens plus one per word shown, and writes 20 tokens per text."""

    declines = frozenset()

    def __init__(self, *, remote=True):
        self.remote = remote

    def estimate(self, request):
        assert isinstance(request, Request)
        return 10 + sum(len(text.split()) for text in request.shown), 20 * request.n


def test_the_forecast_counts_calls_tokens_and_money_of_each_model_and_of_all():
    method = Wasp(samples=100, rounds=2, texts_per_request=5, shots=2, weighting=False)
    models = {"x": Model(), "y": Model(), "here": Model(remote=False)}
    price = Price(as_of="today", input=1.0, output=10.0)
    estimate = forecast(method, TASK, planned(method=method), models, {"x": price, "y": None}, dimensions=8)
    one = estimate["models"]["x"]
    assert estimate["texts"] == 100
    assert estimate["model_calls"] == 3 * one["calls"] == 24
    # Later prompts show a good and a bad text of 15 words (20 tokens) each.
    assert one["input_tokens"] == 4 * 10 + 4 * (10 + 2 * 15)
    assert 600 <= one["output_tokens"] <= 700
    assert one["cost"] == pytest.approx((one["input_tokens"] + 10 * one["output_tokens"]) / 1e6)
    assert (estimate["models"]["y"]["cost"], estimate["models"]["here"]["cost"]) == (None, 0.0)
    assert estimate["cost"] == one["cost"]


def test_a_count_of_right_labels_is_refused_without_labels():
    with pytest.raises(ConfigError, match=r"evaluation\.federated; .*evaluation\.federated=0"):
        planned(task=TASK.without_labels(), evaluation_share=0.1)
    assert planned(task=TASK.without_labels()).labels == (UNLABELLED,)
    assert planned(task=TASK.without_labels()).digest() != planned().digest()
