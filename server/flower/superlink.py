"""Flower's SuperLink, accessible only with the coordinator's token.

    python -m server.flower.superlink TOKEN_FILE ARGUMENTS OF flower-superlink

SuperLink's Control API runs any code that it receives, under the coordinator's account and without a login, and every
user of the machine can reach a loopback port. So SuperLink is placed behind a guard here: each request must contain the
token, which `serve` generates at each start and writes to a file that only the coordinator's account can read. Flower's
own commands send it as they would send a login's token (`commands.py`), and the front door adds it. Calls to the
Runtime API pass without it: the Flower code that makes them cannot send a token, and SuperLink itself requires the
executor's secret or a task's token in these calls.

Alternatives with Flower 1.42; the first was tried, and the statements on the next two follow from Flower's source code:

- SuperLink's own accounts exist only in Flower's enterprise edition; with `FLWR_OIDC_ENABLED=1`, SuperLink says so and
  exits.
- Client certificates: uvicorn can demand them, but neither `flwr` nor a ServerApp can present a certificate.
- A Unix socket of mode 0600: uvicorn can listen there, but Flower's clients know only `host:port`.
- A network namespace worked where it was tried, but it needs root or user namespaces, which many machines forbid. It
  also takes the network from the executor, whose runs call language models.
"""

import hmac
import sys
from pathlib import Path

import uvicorn
from flwr.supercore import constant, sql_mixin
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
from flwr.superlink.main import create_app
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

RUNTIME = "/v1/runtime/"
"""Prefix of the paths of calls that SuperLink itself authenticates."""

DATABASE_SECONDS = 25
"""Seconds for which a call waits for SuperLink's database: fewer than the 30 s for which a node waits. With Flower's
own 5 s, 4 calls failed in the first phase with 30 hospitals on a busy machine, and one lost message delayed the run by
`federation.timeout`."""


class Guard:
    """An ASGI application that forwards requests with `Authorization: Bearer TOKEN` to another, and rejects others."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application = application
        self._allowed = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a permitted request, and answer 401 to any other."""
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self._may_pass(scope)):
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await Response(status_code=401)(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        return scope["path"].startswith(RUNTIME) or (len(shown) == 1 and hmac.compare_digest(shown[0], self._allowed))


def wait_for_database() -> None:
    """Let calls wait for the database for `DATABASE_SECONDS`, in place of Flower's own setting."""
    longer = (*constant.SQLITE_PRAGMAS, ("busy_timeout", f"{1000 * DATABASE_SECONDS}"))
    sql_mixin.SQLITE_PRAGMAS = longer  # type: ignore[assignment, attr-defined]


def main() -> None:
    """Serve until the process is told to stop."""
    wait_for_database()
    token = Path(sys.argv.pop(1)).read_text(encoding="ascii")
    config = _parse_superlink_lifespan_config()
    uvicorn.run(
        Guard(create_app(config, SuperLinkLifespan), token),
        host=config.host,
        port=config.port,
        log_config=get_uvicorn_log_config(console_handler.level),
        ssl_keyfile=config.ssl_keyfile,
        ssl_certfile=config.ssl_certfile,
    )


if __name__ == "__main__":
    main()
