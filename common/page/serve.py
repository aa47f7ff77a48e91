"""The server of a page: one process, no log of requests, since the path of the link is a secret."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from common.page.access import Access

HOST = "127.0.0.1"
BUSIEST = 32
"""Connections at a time; a browser opens about six."""


def served(application: Callable[[Access], ASGIApp], port: int) -> Iterator[str]:
    """Serve a page on loopback until Ctrl-C; yield what its command prints, the link among it.

    Args:
        application: Makes the page from who may enter it.
        port: On `HOST`; 0 for any that is free.

    Raises:
        OSError: The port is taken.
    """
    with socket.create_server((HOST, port)) as listening:
        access, server = serving(application, f"{HOST}:{listening.getsockname()[1]}")
        yield "open this link in a browser; Ctrl-C ends the page"
        yield access.link
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    yield "the page is closed"


def serving(application: Callable[[Access], ASGIApp], host: str) -> tuple[Access, uvicorn.Server]:
    """Return who may enter a page, and a server that is ready to run on a socket.

    Args:
        application: Makes the page from who may enter it.
        host: Address and port, as a browser names them.
    """
    access = Access(host)
    config = uvicorn.Config(
        application(access),
        access_log=False,
        date_header=False,
        lifespan="off",
        limit_concurrency=BUSIEST,
        log_config=None,  # uvicorn's own would close the handlers that others have set up
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    return access, uvicorn.Server(config)
