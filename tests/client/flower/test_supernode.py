"""A SuperNode that has given up ends, whatever threads of it are left."""

import asyncio
import inspect
import re
import subprocess
import sys
import threading
import time
from functools import partial

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from flwr.app import Message
from flwr.common.constant import Status
from flwr.supercore.inflatable import inflatable_utils
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run, RunNotRunningException
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode import start_client_internal
from flwr.supernode.main import create_app
from flwr.supernode.nodestate import NodeStateFactory

from client.flower import supernode
from common.messages import Parcel
from common.parcels import contents
from tests.support.lanes import slow_but
from tests.support.parts import asked_again_after

BEGUN = """
import sys, threading
from client.flower import supernode

threading.Thread(target=threading.Event().wait).start()  # as that of Flower's local API

def gives_up():
    pass

def fails():
    raise RuntimeError("it failed")

def heart_stops():
    threading.Thread(target=fails).start()
    threading.Event().wait()

supernode.flower_supernode = {}
supernode.main()
"""


@pytest.mark.parametrize("how", slow_but({"gives_up"}, ["gives_up", "fails", "heart_stops"]))
def test_a_supernode_that_has_given_up_ends(how, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", BEGUN.format(how), tmp_path], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 1
    assert ("it failed" in ended.stderr) == (how != "gives_up")


def test_a_node_asks_more_often_after_a_message(monkeypatch):
    now, slept = [1000.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", slept.append)
    waits = supernode.Waits()
    for flowers, later in ((3, 0), (0.5, 10), (3, 0), (3, 5), (3, 60)):
        now[0] += later
        waits.sleep(flowers)
    assert slept == [3, 0.05, 0.1, 1, 3]


def test_flowers_loop_waits_in_the_ways_that_the_pace_knows():
    """Three seconds without a message, half a second for a reply, and nothing else of the module `time`."""
    source = inspect.getsource(start_client_internal)
    assert re.findall(r"time\.(\w+\([^)]*\))", source) == ["sleep(3)", "sleep(0.5)", "sleep(0.5)"]


@pytest.fixture
def hastened(monkeypatch):
    """Flower's loop with the shorter waits, for one test."""
    for module, name in (
        (start_client_internal, "time"),
        (start_client_internal, "pull_objects"),
        (inflatable_utils, "get_num_workers"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    supernode.shorten_waits()
    return start_client_internal


def test_a_message_s_parts_are_asked_for_again_soon(hastened):
    """By the one function of Flower's loop that pulls them, which this process gives a shorter first wait."""
    assert re.findall(r"= pull_objects\(\s*(\w+)", inspect.getsource(start_client_internal)) == ["obj_ids_to_pull"]
    assert asked_again_after(hastened.pull_objects) < 0.5


def test_a_message_whose_answer_nobody_waits_for_hastens_the_next_question(hastened):
    """Over a slow line the answer is there before the message is confirmed; Flower's loop then never waits for it."""
    assert hastened.time.seconds(3) == 3
    hastened.pull_objects(["part"], lambda _: b"content")
    assert hastened.time.seconds(3) < 0.5


def test_the_parts_of_a_small_message_take_one_round_trip(hastened):
    """Each waits until all are under way: those that come as those that go, whatever the number of cores."""
    content = next(contents([Parcel(b"envelope", b"bulk")]))
    parts = ["message", *get_all_nested_objects(content)]
    together = threading.Barrier(len(parts), timeout=10)
    pulled = hastened.pull_objects(parts, lambda _: bytes(together.wait()))
    assert pulled.keys() == set(parts)
    pushed = []

    def push(part, _):
        together.wait()
        pushed.append(part)

    hastened.push_object_contents_from_iterable([(part, b"content") for part in parts], push)
    assert sorted(pushed) == sorted(parts)


def test_a_message_whose_run_ends_on_the_way_is_forgotten(monkeypatch):
    """Else the relay would answer it, and its answer be taken for that to the next message."""
    store = ObjectStoreFactory().store()
    state = NodeStateFactory(ObjectStoreFactory()).state()
    state.store_run(Run.create_empty(run_id=7))
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 7, 1
    message = Message(next(contents([Parcel(b"envelope", b"bulk")])), 1, "query")
    message.metadata.__dict__["_message_id"] = message.object_id
    tree, parts = get_object_tree(message), get_all_nested_objects(message)

    def ended(*_):
        raise RunNotRunningException

    monkeypatch.setattr(start_client_internal, "_pull_and_store_message", start_client_internal._pull_and_store_message)
    supernode.forget_ended_runs()
    pull = partial(
        start_client_internal._pull_and_store_message,
        state=state,
        object_store=store,
        node_config={},
        get_run=None,
        get_fab=None,
        trusted_entities=None,
        receive=lambda: (message, tree),
        pull_object=lambda _, part: parts[part].deflate(),
    )
    assert pull(confirm_message_received=ended) is None
    assert not state.get_messages_legacy()
    assert not state.get_tasks(statuses=[Status.PENDING])
    assert pull(confirm_message_received=lambda *_: None) == 7
    assert len(state.get_messages_legacy()) == len(state.get_tasks(statuses=[Status.PENDING])) == 1


def test_no_call_of_its_local_api_is_answered_to_another_user():
    """The relay's secret or a task's token is asked for, in every one of Flower's calls."""
    application = create_app(NodeStateFactory(ObjectStoreFactory()), superexec_auth_secret=b"secret")
    routes = [context.route for context in iter_route_contexts(application.routes)]
    calls = {(method, route.path) for route in routes if isinstance(route, APIRoute) for method in route.methods}
    calls = {(method, path) for method, path in calls if path != "/health"}

    async def asked(method, path):
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://supernode") as client:
            return (await client.request(method, path, headers={"content-type": "application/protobuf"})).status_code

    assert ("POST", "/v1/runtime/acquire-task") in calls
    for call in calls:
        assert asyncio.run(asked(*call)) == 401, call
