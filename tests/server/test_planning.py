import json
import math

import pytest

from common.domain import Task
from common.errors import PlanError
from common.llm.base import Request
from common.privacy.ledger import Ledger
from common.privacy.guarantee import verify
from server.methods.wasp import Wasp
from server.planning import Secagg, describe, forecast, make_plan

TASK = Task(name="t", kind="note", labels={"a": "first", "b": "second"})


def planned(**changes):
    settings = {
        "task": TASK,
        "encoder": "e",
        "parties": 3,
        "max_dropouts": 0,
        "colluders": 0,
        "secagg": Secagg(),
        "epsilon": 4.0,
        "delta": 1e-5,
        "unit": "sample",
        "max_records": 1,
    }
    return make_plan(Wasp(), **(settings | changes))


def test_the_defaults_plan_the_noise_that_the_readme_states():
    facts = describe(planned())
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
    facts = describe(planned(parties=200, secagg=Secagg(full_graph_up_to=150)))
    assert 20 < facts["neighbours"] < 150
    assert facts["threshold"] <= facts["neighbours"]
    assert facts["corrupt"] == 60


def test_a_coordinator_that_is_trusted_with_nothing_is_in_the_plan():
    facts = describe(planned(parties=4, secagg=Secagg(mode="malicious", roster=32 * "ab")))
    assert facts["aggregation"] == "secure, malicious coordinator"
    assert not any(gap.startswith("A malicious coordinator") for gap in facts["not_covered"])


def test_one_party_alone_has_no_masks_and_says_so(caplog):
    plan = planned(parties=1)
    assert (plan.secure, plan.noise_parties, plan.threshold) == (False, 1, 1)
    assert "one party alone" in caplog.text


def test_dropouts_below_the_threshold_are_refused():
    with pytest.raises(PlanError, match="threshold"):
        planned(parties=4, max_dropouts=2)


def test_epsilon_against_colluders_grows_and_starts_at_the_plan():
    facts = describe(planned(parties=5))
    told = [line["epsilon"] for line in facts["against_colluders"]]
    assert told[0] == verify(planned(parties=5))
    assert told == sorted(told)
    assert len(told) == 5


def test_without_noise_it_is_called_none():
    facts = describe(planned(epsilon=math.inf))
    assert (facts["mechanism"], facts["queries"][0]["scale_grid"]) == ("none", 0)


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
    spent = describe(plan, ledger=ledger, run="r")["spent"]
    assert (spent["queries_asked"], spent["queries_planned"]) == (2, 4)
    assert 0 < spent["epsilon"] < plan.epsilon
    assert describe(plan, ledger=ledger, run="other")["spent"]["queries_asked"] == 0


def test_the_facts_are_json_and_hold_the_statement():
    facts = describe(planned(), simulation=True)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["simulation"]
    assert len(facts["statement"]) > 200
    assert len(facts["not_covered"]) > 5


class Model:
    """Says that each request reads 10 tokens and writes 20 for each text."""

    def estimate(self, request):
        assert isinstance(request, Request)
        return 10, 20 * request.n


def test_the_forecast_counts_calls_and_tokens_of_all_models():
    told = forecast(Wasp(samples=100, rounds=2, texts_per_request=5), TASK, {"x": Model(), "y": Model()})
    assert told == {"texts": 100, "model_calls": 20, "input_tokens": 200, "output_tokens": 2000}
