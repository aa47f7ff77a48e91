"""The relay waits for the parts of a message, and gives it up where SuperNode has."""

from itertools import repeat
from threading import Event
from types import SimpleNamespace

import httpx
import pytest
from flwr.common.constant import ErrorCode
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest, SendTaskHeartbeatResponse
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from client.flower import relay
from common.parcels import HANDLER_RAISED

assert HANDLER_RAISED == ErrorCode.CLIENT_APP_RAISED_EXCEPTION  # what Flower sends where a handler raises

ASKED = PullObjectRequest(object_id="part")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(relay, "BUSY_SECONDS", 0.001)


def test_a_message_is_waited_for_until_another_task_comes():
    parts, tasks, following = [False, False, True, False], ["", "", "next"], []
    pull = relay._until_let_go(
        lambda _: PullObjectResponse(object_found=True, object_available=parts.pop(0)), lambda: tasks.pop(0), following
    )
    assert pull(ASKED).object_available
    with pytest.raises(ObjectPullError):
        pull(ASKED)
    assert following == ["next"]
    assert not tasks


def test_a_part_that_no_longer_exists_is_not_waited_for():
    pull = relay._until_let_go(lambda _: PullObjectResponse(object_found=False), lambda: pytest.fail("asked"), [])
    assert not pull(ASKED).object_found


class Clock:
    """Time that passes where it is waited for, in place of the module `time`."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(relay, "time", clock)
    return clock


def test_a_part_that_does_not_come_is_given_up_after_the_idle_time(clock):
    missing = PullObjectResponse(object_found=True, object_available=False)
    pull = relay._until_let_go(lambda _: missing, lambda: "", [], 60.0)
    with pytest.raises(ObjectPullError):
        pull(ASKED)
    assert 60 < clock.now < 62


@pytest.mark.parametrize(
    ("come", "takes", "end"),
    [
        ([], 0, 60),
        ([20, 70], 0, 130),
        ([20], 500, 580),
        ([61], 0, 60),
    ],
    ids=["no message", "two messages", "a long answer", "too late"],
)
def test_a_relay_ends_once_no_message_has_come_for_so_long(come, takes, end, clock, monkeypatch):
    """Whether its replies reach SuperNode or not: here each second one."""
    messages = list(come)

    def acquire(_):
        return SimpleNamespace(token="token" if messages and clock.now >= messages[0] else "")

    def answer(*_, until_idle):
        assert until_idle == 60
        messages.pop(0)
        clock.sleep(takes)
        if len(messages) % 2:
            raise httpx.ReadError("lost")
        return ""

    monkeypatch.setattr(relay, "_client", lambda *_, **__: SimpleNamespace(AcquireTask=acquire))
    monkeypatch.setattr(relay, "answer", answer)
    relay.serve_messages("", "", b"", b"", until_idle=60)
    assert clock.now == pytest.approx(end, abs=3)
    assert messages == [late for late in come if late > end]


def test_a_relay_without_a_supernode_ends_too(clock, monkeypatch):
    def acquire(_):
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(relay, "_client", lambda *_, **__: SimpleNamespace(AcquireTask=acquire))
    relay.serve_messages("", "", b"", b"", until_idle=60)
    assert clock.now == pytest.approx(60, abs=1)


def test_a_message_that_is_given_up_leaves_no_reply_and_the_next_is_answered(monkeypatch):
    ended = []
    client = SimpleNamespace(PullObject=lambda _: PullObjectResponse(object_found=True), close=lambda: None)
    monkeypatch.setattr(relay, "pull_task_input", lambda given: given.PullObject(ASKED))
    monkeypatch.setattr(relay, "push_task_output", lambda _, context, status, __: ended.append((context, status)))
    heart = SimpleNamespace(start=lambda: None, stop=lambda: None)
    monkeypatch.setattr(relay, "HeartbeatSender", lambda _: heart)
    assert relay.answer(client, "", None, lambda: "next") == "next"
    assert ended == [(None, "failed")]


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "no success"])
def test_a_task_that_supernode_has_let_go_of_ends_with_an_error_that_the_relay_survives(refused, monkeypatch):
    beaten, request = Event(), httpx.Request("POST", "https://127.0.0.1")
    lapsed = httpx.HTTPStatusError("lapsed", request=request, response=httpx.Response(403, request=request))

    def beat(_):
        beaten.set()
        if refused:
            raise lapsed
        return SendTaskHeartbeatResponse(success=False)

    def push(*_):
        assert beaten.wait(60)
        raise lapsed

    client = SimpleNamespace(PullObject=None, SendTaskHeartbeat=beat, close=lambda: None)
    monkeypatch.setattr(relay, "pull_task_input", lambda _: (None, None, None, SimpleNamespace(hash_str="")))
    monkeypatch.setattr(relay, "_reply", lambda *_: None)
    monkeypatch.setattr(relay, "push_message", push)
    with pytest.raises(httpx.HTTPStatusError):
        relay.answer(client, "", None, lambda: "")


@pytest.mark.parametrize("lost", [1, relay.TRIES])
def test_a_call_for_a_message_that_is_lost_is_repeated(lost, monkeypatch):
    """As where SuperNode closes an idle connection while an answer sets out: it would wait for the rest for ever."""
    requests = []

    def answered(request):
        requests.append(request)
        if len(requests) <= lost:
            raise httpx.RemoteProtocolError("closed")
        return httpx.Response(200, content=SendTaskHeartbeatResponse(success=True).SerializeToString())

    monkeypatch.setattr(relay, "exponential", lambda: repeat(0))
    monkeypatch.setattr(RuntimeHttpClient, "from_server_address", local_client(answered))
    client = relay._client("", b"", RuntimeTokenHttpInterceptor("token"), tries=relay.TRIES)
    if lost < relay.TRIES:
        assert client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    assert len(requests) == min(lost + 1, relay.TRIES)


def test_a_call_whose_reply_is_lost_is_not_repeated(monkeypatch):
    """SuperNode has handled it, and would refuse a part or a message that it has."""
    requests = []

    def answered(request):
        requests.append(request)
        raise httpx.ReadTimeout("late")

    monkeypatch.setattr(RuntimeHttpClient, "from_server_address", local_client(answered))
    with pytest.raises(httpx.ReadTimeout):
        relay._client("", b"", RuntimeTokenHttpInterceptor("token"), tries=relay.TRIES).SendTaskHeartbeat(
            SendTaskHeartbeatRequest()
        )
    assert len(requests) == 1


def local_client(answered):
    def client(*, server_address, insecure, root_certificates, interceptors, retry_invoker):
        del server_address, root_certificates
        assert not insecure
        made = RuntimeHttpClient("http://127.0.0.1", interceptors=interceptors, retry_invoker=retry_invoker)
        made._client = httpx.Client(transport=httpx.MockTransport(answered))
        return made

    return client
