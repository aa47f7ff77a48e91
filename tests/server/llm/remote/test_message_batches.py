import json

import pytest

from common.errors import ProviderError
from server.llm.base import Provider
from server.llm.cache import Cached
from server.llm.spending import Spending
from tests.support.loopback import error, message
from tests.support.provider_contract import ProviderContract, requests
from tests.support.remote_models import KINDS

PRICE = {"as_of": "today", "input": 1.0, "output": 10.0}


@pytest.fixture
def kind():
    return KINDS["anthropic"]


@pytest.fixture
def batches(build, tmp_path):
    def built(**changes):
        return build(**{"batches": True, "folder": tmp_path, "poll": 30.0} | changes)

    return built


class TestBatches(ProviderContract):
    @pytest.fixture
    def provider(self, batches) -> Provider:
        return batches()

    @pytest.fixture
    def effect(self, sent):
        return sent


def test_a_round_is_one_batch_and_its_results_find_their_places(batches, server, time):
    server.polls = 3
    arrivals = {}
    replies = batches().generate(requests(5), arrived=arrivals.__setitem__)
    assert [path for path in server.paths if path.endswith("/batches")] == ["/v1/messages/batches"]
    # Results came in the reverse order.
    assert [reply.texts[0] for reply in replies] == [f"Text {place} of a kind, line 0." for place in range(5)]
    assert [arrivals[place] for place in range(5)] == replies
    assert time.slept == [30.0, 30.0]
    body = json.loads(server.raw[0])["requests"]
    assert len({one["custom_id"] for one in body}) == 5
    assert body[0]["params"] == server.seen[0]


def test_equal_requests_go_once(batches, server):
    first, second = batches().generate([*requests(1), *requests(1)])
    assert first == second
    assert len(server.seen) == 1


def test_a_killed_run_collects_the_batch_that_it_sent(batches, server, tmp_path, time):
    account = tmp_path / "spending.jsonl"
    server.polls = 10**9

    async def killed(_):
        raise KeyboardInterrupt

    model = batches(spending=Spending(path=account), price=PRICE)
    model._clock = time.clock.__class__(sleep=killed)
    with pytest.raises(KeyboardInterrupt):
        model.generate(requests(3))
    assert Spending(path=account).cost() == 0
    server.results["batch_0"], server.polls = 0, 1
    again = batches(spending=(spending := Spending(path=account)), price=PRICE)
    replies = Cached(provider=again, path=tmp_path / "replies.db").generate(requests(4))
    assert all(reply.texts for reply in replies)
    # The fourth was new.
    assert len(server.seen) == 4
    assert spending.paid()["m"].replies == 4
    assert not again._notes


@pytest.mark.parametrize(
    ("result", "loss"),
    [
        ({"type": "errored", "error": error("invalid_request_error")}, "failed"),
        ({"type": "expired"}, "failed"),
        ({"type": "canceled"}, "failed"),
        ({"type": "succeeded", "message": message([], stop="refusal", written="No.")}, "refused"),
        ({"type": "succeeded", "message": None}, "malformed"),
    ],
)
def test_one_result_that_is_none_loses_one_item(batches, server, result, loss):
    server.results[0] = result
    first, second = batches().generate(requests(2))
    assert (first.texts, first.loss) == ((), loss)
    assert len(second.texts) == 2


def test_calls_are_tried_again_and_a_refused_key_stops(batches, server, time):
    server.script = [(529, {"retry-after": "3"}, error("overloaded_error"))]
    assert batches().generate(requests(1))[0].texts
    assert time.slept == [3.0]
    server.script = [(401, {}, error("authentication_error"))]
    with pytest.raises(ProviderError, match="401"):
        batches().generate(requests(1))


def test_a_cap_sends_what_fits_and_then_stops(batches, server):
    # Of each request the longest answer counts before it is sent, some 600 tokens with its prompt.
    spending = Spending(max_tokens=5000)
    fresh = server._fresh
    server._fresh = lambda *args: fresh(*args) | {"usage": {"input_tokens": 100, "output_tokens": 300}}
    with pytest.raises(ProviderError, match=r"llm\.max_tokens"):
        batches(spending=spending).generate(requests(500))
    sizes = [len(json.loads(body)["requests"]) for body in server.raw]
    assert sizes[0] > 1
    assert spending.paid()["m"].replies == sum(sizes) < 500
    assert spending.paid()["m"].usage.tokens <= 5000
