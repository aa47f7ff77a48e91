import asyncio
import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from server.flower.front_door import CALLS, LARGEST_BODY, FrontDoor


def asked(method, path, *, content=b"", headers=None, behind=None):
    """What a caller gets, and what SuperLink saw."""
    seen = []

    def superlink(request):
        seen.append(request)
        return httpx.Response(200, content=b"answer", headers={"x-flower": "1", "connection": "close"})

    async def main():
        login = {"authorization": "Bearer token"}
        behind_door = httpx.MockTransport(behind or superlink)
        inner = httpx.AsyncClient(transport=behind_door, base_url="https://superlink", headers=login)
        outer = httpx.AsyncClient(transport=httpx.ASGITransport(FrontDoor(inner)), base_url="https://door")
        async with inner, outer:
            return await outer.request(method, path, content=content, headers=headers)

    return asyncio.run(main()), seen


def test_a_nodes_call_passes_with_its_body_and_signature():
    answer, (request,) = asked("POST", "/v1/fleet/push-messages", content=b"body", headers={"flwr-signature": "s"})
    assert (answer.status_code, answer.content, answer.headers["x-flower"]) == (200, b"answer", "1")
    assert (request.content, request.headers["flwr-signature"]) == (b"body", "s")
    assert request.url == "https://superlink/v1/fleet/push-messages"


def test_the_token_is_the_front_doors_own():
    _, (request,) = asked("POST", "/v1/fleet/get-run", headers={"authorization": "Bearer guessed"})
    assert request.headers.get_list("authorization") == ["Bearer token"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/control/start-run"),
        ("POST", "/v1/runtime/acquire-task"),
        ("POST", "/v1/fleet/register-node"),
        ("POST", "/v1/fleet/unregister-node"),
        ("GET", "/v1/fleet/pull-messages"),
        ("GET", "/docs"),
        ("POST", "/v1/fleet/get-run/../../control/start-run"),
        ("POST", "/v1/fleet/%2e%2e/control/start-run"),
        ("POST", "/v1/fleet/get-run?to=/v1/control/start-run"),
        ("POST", "//v1/fleet/get-run"),
    ],
)
def test_all_else_is_not_there_and_never_asked_for(method, path):
    answer, seen = asked(method, path)
    assert (answer.status_code, answer.content, seen) == (404, b"", [])


def test_no_call_leads_to_control_or_runtime():
    assert all(path == "/health" or path.startswith("/v1/fleet/") for _, path in CALLS)


def test_a_body_beyond_every_message_is_cut_off():
    answer, seen = asked("POST", "/v1/fleet/push-object", content=bytes(LARGEST_BODY + 1))
    assert (answer.status_code, seen) == (413, [])


def test_a_superlink_that_is_down_is_a_503_which_nodes_retry():
    def down(_):
        raise httpx.ConnectError("refused")

    answer, _ = asked("POST", "/v1/fleet/pull-messages", behind=down)
    assert answer.status_code == 503


def test_a_node_that_is_refused_is_told_of_with_what_its_clock_says(caplog):
    def refuses(_):
        return httpx.Response(401, headers={"date": "Thu, 01 Jan 1970 00:00:00 GMT"})

    signed = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    for time_signed, deviation in ((signed, "720[01] s behind this machine's"), ("soon", "not given")):
        answer, _ = asked("POST", "/v1/fleet/activate-node", headers={"flwr-timestamp": time_signed}, behind=refuses)
        assert answer.status_code == 401
        assert "date" not in answer.headers  # uvicorn writes one, of this machine's clock
        assert re.search(f"clock: {deviation}", caplog.text)
