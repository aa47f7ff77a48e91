"""The server of a hospital's page: one process, no log of requests, since the path of the link is a secret."""

from pathlib import Path

import uvicorn

from client.page.access import Access
from client.page.app import application

BUSIEST = 32
"""Largest number of connections at a time; a browser opens about six."""


def serving(folder: Path, host: str) -> tuple[Access, uvicorn.Server]:
    """Return the access to a hospital's page (its link and session), and a server that is ready to run on a socket.

    Args:
        folder: The hospital's folder.
        host: Address and port, as a browser names them.
    """
    access = Access(host)
    config = uvicorn.Config(
        application(folder, access),
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
