"""The routes that all pages share, and a wrapper for endpoints; the `Door` of `access.py` protects every route."""

import functools
import logging
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from typing import TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from common.errors import CaucusError
from common.page.access import Access, Door
from common.page.render import LANGUAGE, Pages, style

log = logging.getLogger("caucus.page")

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
        forget: Function that is called at logout and removes the data that the page has received.
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

    def script(_: Request) -> Response:
        return Response(pages.script, media_type="text/javascript")

    shared = [
        Route("/style.css", _style),
        Route("/page.js", script),
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
        load: Function that reads the settings of the folder that the page is about.
        answer: Function that answers a request.
        owner: Function that returns the name of the page's owner.
        describe: Function that describes an error in words without private text.
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


def _style(_: Request) -> Response:
    return Response(style(), media_type="text/css")
