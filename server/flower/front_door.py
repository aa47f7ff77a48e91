"""The only public endpoint of the coordinator: TLS, and behind it nothing but Flower's Fleet API.

    python -m server.flower.front_door LISTEN PORT SUPERLINK CERTIFICATE KEY AUTHORITY TOKEN_FILE

SuperLink serves its Fleet, Control and Runtime APIs on one port. It listens on loopback behind a guard
(server/flower/superlink.py), and this proxy, which has the guard's token, forwards only the calls that a hospital's
node needs. It rebuilds each request, so that no second request can be hidden in one. SuperLink authenticates a node by
the signature in the headers, made with the node's key; nodes cannot register here.
"""

import logging
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from common.system.log_lines import begin_log

log = logging.getLogger("caucus.front_door")

CALLS = frozenset(
    ("POST", f"/v1/fleet/{call}")
    for call in (
        "activate-node",
        "deactivate-node",
        "send-node-heartbeat",
        "pull-messages",
        "push-messages",
        "get-run",
        "get-fab",
        "push-object",
        "pull-object",
        "confirm-message-received",
    )
) | {("GET", "/health")}
"""The calls of a node that are forwarded: all but register-node, since the coordinator decides on membership."""

LARGEST_BODY = 8 * 2**20
"""Maximum size of a request in bytes. Flower splits messages into objects of 5 MB."""
BUSIEST = 800
"""Maximum number of simultaneous connections: four for each of two hundred nodes. This is below the 1,024 open files
that many systems allow a process. A node uses one connection for requests and heartbeats, and one for each part of a
message."""
TIMEOUT = 60.0
SIGNED_AT = b"flwr-timestamp"
"""Header with the time that a node signed. Flower accepts times from 5 s ahead of this machine's clock to 305 s behind
it."""

_OF_ONE_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade"}
_DROPPED = _OF_ONE_CONNECTION | {b"host", b"authorization", b"content-length", b"date"}  # this server writes its own
"""Headers that are not forwarded."""


class FrontDoor:
    """The ASGI application of the front door; its HTTP client connects to SuperLink with the guard's token."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request listed in `CALLS`; answer 404 to any other request, and 413 if the body is too long."""
        if scope["type"] != "http":
            return
        if (scope["method"], scope["path"]) not in CALLS or scope["query_string"]:
            log.warning("refused: %s %.60r from %s", scope["method"], scope["path"], (scope["client"] or "?")[0])
            await Response(status_code=404)(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
            if len(body) > LARGEST_BODY or part["type"] == "http.disconnect":
                await Response(status_code=413)(scope, receive, send)
                return
        try:
            given = await self._client.request(
                scope["method"], scope["path"], content=bytes(body), headers=_forwarded_headers(scope["headers"])
            )
        except httpx.HTTPError as error:
            log.warning("SuperLink does not answer: %s", type(error).__name__)
            await Response(status_code=503)(scope, receive, send)
            return
        if given.status_code == httpx.codes.UNAUTHORIZED:
            skew = _clock(dict(scope["headers"]).get(SIGNED_AT, b""), datetime.now(UTC))
            log.warning("a node is refused: its key is not enrolled, or its clock is off; clock: %s", skew)
        response = Response(given.content, given.status_code)
        response.raw_headers += _forwarded_headers(given.headers.raw, also=b"content-encoding")
        await response(scope, receive, send)


def _forwarded_headers(headers: list[tuple[bytes, bytes]], also: bytes = b"") -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _DROPPED | {also}]


def _clock(signed: bytes, now: datetime) -> str:
    try:
        ahead = round((datetime.fromisoformat(signed.decode("ascii")) - now).total_seconds())
    except (ValueError, TypeError):
        return "not given"
    return f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} this machine's"


def main() -> None:
    """Serve over HTTPS until the process is told to stop."""
    begin_log()
    listen, port, superlink, certificate, key, authority, token_file = sys.argv[1:]
    client = httpx.AsyncClient(
        base_url=f"https://{superlink}",
        headers={"authorization": f"Bearer {Path(token_file).read_text(encoding='ascii')}"},
        verify=ssl.create_default_context(cafile=authority),
        timeout=TIMEOUT,
        trust_env=False,
    )
    config = uvicorn.Config(
        FrontDoor(client),
        host=listen,
        port=int(port),
        ssl_certfile=certificate,
        ssl_keyfile=key,
        limit_concurrency=BUSIEST,
        access_log=False,
        server_header=False,
        lifespan="off",
        log_level="warning",
        timeout_keep_alive=30,
    )
    config.load()
    assert config.ssl is not None
    config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
