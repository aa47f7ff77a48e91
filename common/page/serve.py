"""The server of a page: one process, which does not log requests, since the path of the link is a secret."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from common.page.access import Access
from common.page.address import Address

HOST = "127.0.0.1"
BUSIEST = 32
"""Maximum number of simultaneous connections; a browser opens about six."""


def serve_page(application: Callable[[Access], ASGIApp], port: int, address: Address | None = None) -> Iterator[str]:
    """Serve a page until Ctrl-C; yield the lines that its command prints, including the link.

    Args:
        application: Function that makes the page from its `Access`.
        port: Port on `HOST`; 0 for any free port.
        address: Address for other machines, in place of loopback.

    Raises:
        OSError: The port is in use, or the address is not this machine's.
    """
    bound = (address.host, address.port) if address else (HOST, port)
    family = socket.getaddrinfo(*bound, type=socket.SOCK_STREAM)[0][0]
    with socket.create_server(bound, family=family) as listening:
        named = address.named if address else f"{HOST}:{listening.getsockname()[1]}"
        access, server = page_server(application, named, address)
        yield f"open this link in a browser{', with the password' if address else ''}; Ctrl-C ends the page"
        yield access.link
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    yield "the page is closed"


def page_server(
    application: Callable[[Access], ASGIApp], host: str, address: Address | None = None
) -> tuple[Access, uvicorn.Server]:
    """Return the `Access` of a page, and a server that is ready to run on a socket.

    Args:
        application: Function that creates the page from its `Access`.
        host: Address and port, as a browser names them.
        address: The address with its certificate and password if the page is for other machines; None for loopback.
    """
    access = Access(host, password=address.password if address else "")
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
        ssl_certfile=address.certificate if address else None,
        ssl_keyfile=address.key if address else None,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    return access, uvicorn.Server(config)
