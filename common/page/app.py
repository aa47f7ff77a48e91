"""A page as an application and its server: shared routes, endpoints that show errors, and one process that serves.

The `Door` of `access.py` protects every route. Requests are not logged, since the path of the link is a secret.
"""

import contextlib
import functools
import logging
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from http import HTTPStatus
from typing import TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from common.errors import CaucusError
from common.page.access import Access, Door
from common.page.address import Address
from common.page.render import LANGUAGE, Pages, style

log = logging.getLogger("caucus.page")

HOST = "127.0.0.1"
BUSIEST = 32
"""Maximum number of simultaneous connections; a browser opens about six."""

S = TypeVar("S")


def page_application(
    access: Access,
    pages: Pages,
    routes: Sequence[Route],
    *,
    receives: Collection[str] = (),
    forget: Callable[[], None] = lambda: None,
) -> Door:
    """Return a page as an ASGI application: its own routes and the shared ones, behind the door.

    Args:
        access: The link's token and the session.
        pages: The templates.
        routes: The page's own routes.
        receives: Paths of routes that expect a file's bytes.
        forget: Called at logout; removes the data that the page has received.
    """

    def leave(request: Request) -> Response:
        access.leave()
        forget()
        response = HTMLResponse(pages.render(request, "left.html"))
        response.delete_cookie(access.cookie_name, path=f"{access.root}/", httponly=True, samesite="strict")
        return response

    def language(request: Request) -> Response:
        form = request.state.form
        response = RedirectResponse(f"{access.root}/{form.get('back', '')}", HTTPStatus.SEE_OTHER)
        if (chosen := form.get("to", "")) in pages.spoken:
            path, secure = f"{access.root}/", access.asks_password
            response.set_cookie(LANGUAGE, chosen, path=path, httponly=True, samesite="strict", secure=secure)
        return response

    shared = [
        Route("/style.css", lambda _: Response(style(), media_type="text/css")),
        Route("/page.js", lambda _: Response(pages.script, media_type="text/javascript")),
        Route("/language", language, methods=["POST"]),
        Route("/leave", leave, methods=["POST"]),
    ]
    app = Starlette(routes=[Mount(access.root, routes=[*routes, *shared])])
    return Door(app, access, render=pages.render, receives=receives)


def page_endpoint(
    pages: Pages,
    load: Callable[[], S],
    answer: Callable[[Request, S], Response],
    *,
    owner: Callable[[S], str],
    describe: Callable[[Exception], str],
) -> Callable[[Request], Response]:
    """Return an endpoint that first reads the settings, and that shows errors as a page.

    Args:
        pages: The templates.
        load: Reads the settings of the folder that the page is about.
        answer: Answers a request.
        owner: Returns the name of the page's owner.
        describe: Describes an error in words without private text.
    """

    @functools.wraps(answer)
    def endpoint(request: Request) -> Response:
        request.state.owner = ""
        try:
            settings = load()
            request.state.owner = owner(settings)
            return answer(request, settings)
        except Exception as error:  # noqa: BLE001 an error's text could quote a record
            problem = describe(error)
            log.warning("%s: %s", answer.__name__.strip("_"), problem)
            ours = isinstance(error, CaucusError)
            status = HTTPStatus.BAD_REQUEST if ours else HTTPStatus.INTERNAL_SERVER_ERROR
            return pages.page(request, "failed", status=status, problem=problem)

    return endpoint


def serve_page(application: Callable[[Access], ASGIApp], port: int, address: Address | None = None) -> Iterator[str]:
    """Serve a page until Ctrl-C; yield the lines that its command prints, including the link.

    Args:
        application: Makes the page from its `Access`.
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
    """Return the `Access` of a page, and a server that is ready to run on a socket; browsers name it `host`."""
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
