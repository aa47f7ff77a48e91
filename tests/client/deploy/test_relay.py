"""The relay waits for the parts of a message, and gives it up where SuperNode has."""

import pytest
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError

from client.deploy import relay

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


def test_a_message_that_is_given_up_leaves_no_reply_and_the_next_is_answered(monkeypatch):
    ended, heart = [], []
    client = type(
        "Client", (), {"PullObject": lambda *_: PullObjectResponse(object_found=True), "close": lambda _: 0}
    )()
    monkeypatch.setattr(relay, "pull_task_input", lambda given: given.PullObject(ASKED))
    monkeypatch.setattr(relay, "push_task_output", lambda _, context, status, __: ended.append((context, status)))
    monkeypatch.setattr(relay, "make_task_heartbeat_fn_http", lambda _: heart.append)
    monkeypatch.setattr(
        relay, "HeartbeatSender", lambda _: type("H", (), {"start": lambda _: 0, "stop": lambda _: 0})()
    )
    assert relay.answer(client, "", None, lambda: "next") == "next"
    assert ended == [(None, "failed")]
