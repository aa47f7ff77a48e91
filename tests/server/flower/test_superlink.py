import asyncio
import contextlib
import sqlite3

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from flwr.supercore import sql_mixin
from flwr.superlink.main import create_app

from server.flower.front_door import CALLS
from server.flower.superlink import DATABASE_SECONDS, RUNTIME, Guard, wait_for_database

TOKEN = "ab" * 32
OWN = {"authorization": f"Bearer {TOKEN}"}


async def inside(scope, receive, send):
    """Behind the guard."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def asked(calls, application=inside):
    """The statuses of these calls: method, path, headers."""

    async def main():
        transport = httpx.ASGITransport(Guard(application, TOKEN))
        async with httpx.AsyncClient(transport=transport, base_url="https://superlink") as client:
            return [
                (await client.request(method, path, headers=headers)).status_code for method, path, headers in calls
            ]

    return asyncio.run(main())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Bearer {TOKEN}0"},
        {"authorization": f"Bearer {TOKEN}é".encode()},
        [("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {TOKEN}")],
        {"cookie": f"authorization=Bearer {TOKEN}"},
    ],
)
def test_without_the_token_nothing_is_handed_on(headers):
    paths = ["/v1/control/start-run", "/v1/fleet/get-run", "/health", "/docs", "/", "//v1/runtime/x", "/V1/runtime/x"]
    assert asked(("POST", path, headers) for path in paths) == [401] * len(paths)


def test_with_the_token_everything_is_handed_on():
    calls = [*CALLS, ("POST", "/v1/control/start-run"), ("GET", "/docs")]
    assert asked((*call, OWN) for call in calls) == [200] * len(calls)


def test_a_web_socket_is_closed_unheard():
    async def never(*_):
        raise AssertionError

    asyncio.run(Guard(never, TOKEN)({"type": "websocket", "path": RUNTIME, "headers": []}, never, never))


@pytest.fixture(scope="module")
def superlink():
    """Flower's own, with an executor's secret as `serve` gives it one."""
    made = create_app()
    made.state.superexec_auth_secret = b"secret"
    return made


def test_no_call_of_flowers_is_answered_to_a_stranger(superlink):
    """The Runtime API's calls are handed on: this holds only if Flower authenticates every one of them."""
    protobuf = {"content-type": "application/protobuf"}
    routes = [context.route for context in iter_route_contexts(superlink.routes)]
    calls = {(method, route.path) for route in routes if isinstance(route, APIRoute) for method in route.methods}
    paths = {path for _, path in calls}
    assert {"/v1/control/start-run", "/v1/fleet/pull-messages", "/v1/runtime/acquire-task"} <= paths
    assert asked(((*call, protobuf) for call in calls), superlink) == [401] * len(calls)


def test_a_call_waits_for_the_database_longer_than_with_flower_s_own_setting(monkeypatch):
    monkeypatch.setattr(sql_mixin, "SQLITE_PRAGMAS", sql_mixin.SQLITE_PRAGMAS)  # as it was, after this test

    def waits():
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            sql_mixin._set_sqlite_pragmas(connection, None)
            return connection.execute("PRAGMA busy_timeout").fetchone()[0] / 1000

    before = waits()
    wait_for_database()
    assert before < waits() == DATABASE_SECONDS
