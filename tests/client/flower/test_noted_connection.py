"""The state of a connection is that of its last call, whatever Flower's log ends with.

Flower's own client makes the calls, with its own retries and log lines; only the answers are ours. All sequences of a
few kinds of answers are tried.
"""

import contextlib
import json
import logging
import os
from functools import partial
from itertools import product
from types import SimpleNamespace

import httpx
import pytest
from flwr.proto.fleet_pb2 import ActivateNodeResponse, PullMessagesResponse
from flwr.supercore.error import ApiErrorCode
from flwr.supercore.exit import exit as flower_exit
from flwr.supercore.logger import FLOWER_LOGGER
from flwr.supercore.primitives.asymmetric import generate_key_pairs
from flwr.supercore.protobuf import client as protobuf_client
from flwr.supercore.retry import constant, http_retry
from flwr.supercore.run import RunNotRunningException
from flwr.supernode import fleet_http_connection
from flwr.supernode.fleet_http_client import FleetHttpClient

from client.flower.noted_connection import NOTE, REACHED, STILL_COUNTED, NotedConnection, node_state
from client.flower.supernode import note_calls
from tests.support.hospital import operated

ANSWERED, CUT, NO_SUPERLINK, RUN_ENDED, NOT_ACTIVATED = "answered", "cut", "502", "403", "2004"
CONNECTED = {ANSWERED: True, CUT: False, NO_SUPERLINK: False}
"""What a call says of the connection; no other one says anything."""


class NoHeart:
    """In place of Flower's thread of heartbeats, whose calls would come at any time."""

    is_running = False

    def __init__(self, _):
        pass

    def start(self):
        pass


class Coordinator:
    """Answers as the script says, and notes which state the hospital shows before each answer."""

    def __init__(self, script, shown):
        self.script, self.shown = iter(script), shown
        self.states = []

    def __call__(self, request):
        self.states.append(self.shown())
        match next(self.script, ANSWERED):
            case "cut":
                raise httpx.ConnectError("refused", request=request)
            case "502" | "403" as code:
                return httpx.Response(int(code), request=request)
            case "2004":
                failed = {"code": ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED, "detail": "Failed to activate SuperNode."}
                return httpx.Response(400, json=failed, request=request)
        kind = ActivateNodeResponse(node_id=17) if "activate-node" in str(request.url) else PullMessagesResponse()
        return httpx.Response(200, content=kind.SerializeToString(), request=request)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A hospital's folder with Flower's log, and Flower's client in this process, which waits for nothing."""
    folder = operated(tmp_path)
    (folder / "logs").mkdir()
    handler = logging.FileHandler(folder / "logs" / "supernode.log")
    handler.setFormatter(logging.Formatter("%(levelname)s :      %(message)s"))
    FLOWER_LOGGER.addHandler(handler)
    monkeypatch.setattr(fleet_http_connection, "HeartbeatSender", NoHeart)
    monkeypatch.setattr(http_retry, "exponential", lambda **_: constant(0))
    monkeypatch.setattr(FleetHttpClient, "_unary_unary", FleetHttpClient._unary_unary)
    yield folder
    FLOWER_LOGGER.removeHandler(handler)
    handler.close()


def shown(folder):
    """The state that the hospital shows, as the supervisor of this process passes its note on."""
    noted = json.loads((folder / "node" / NOTE).read_text())
    assert noted["process"] == os.getpid()
    return node_state(folder, {"supernode": {"process": os.getpid(), "noted": noted}})


def played(folder, script, monkeypatch):
    """Let Flower's client activate the node and ask for messages until the script ends; return the states shown."""
    coordinator = Coordinator(script, partial(shown, folder))
    client = partial(httpx.Client, transport=httpx.MockTransport(coordinator))
    monkeypatch.setattr(protobuf_client.httpx, "Client", client)
    note_calls(NotedConnection(folder / "node"))
    keys = generate_key_pairs()
    with fleet_http_connection.http_request_response("localhost:1", True, authentication_keys=keys) as (_, receive, *_):
        while len(coordinator.states) < len(script):
            with contextlib.suppress(RunNotRunningException):
                receive()
        return [*coordinator.states, shown(folder)][1 : len(script) + 1]


@pytest.mark.parametrize("later", list(product([ANSWERED, CUT, NO_SUPERLINK, RUN_ENDED], repeat=3)))
def test_after_every_sequence_of_answers_the_state_is_that_of_the_last_call(folder, later, monkeypatch):
    script = [ANSWERED, *later]
    expected = False
    for answer, state in zip(script, played(folder, script, monkeypatch), strict=True):
        expected = CONNECTED.get(answer, expected)
        assert state.connected is expected
        assert str(state).startswith("connected since 2" if expected else "not connected since 2")


def test_a_node_that_is_still_counted_waits_and_is_connected_once_it_was_let_in(folder, monkeypatch):
    monkeypatch.setattr(flower_exit.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(flower_exit, "_try_obtain_telemetry_event", lambda: None)
    with pytest.raises(SystemExit):
        played(folder, [NOT_ACTIVATED], monkeypatch)
    assert not (folder / "node" / REACHED).exists()
    waiting = node_state(folder, {"supernode": {"process": None}})
    assert (waiting.connected, waiting.reason) == (False, STILL_COUNTED)
    (connected,) = played(folder, [ANSWERED], monkeypatch)
    assert (connected.connected, connected.reason) == (True, "")
    assert (folder / "node" / REACHED).exists()
    assert str(node_state(folder, {})).startswith("not running")
