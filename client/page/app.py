"""The routes of a hospital's page, behind the door of `access.py`: GET reads, POST decides.

Each request reads the hospital's files again, as a command does, with the rights of the account that runs the page.
"""

import functools
import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from client import refusals
from client.deploy.ledger import exported
from client.deploy.settings import HospitalSettings
from client.deploy.status import opened
from client.page.access import Access, Door
from client.page.budget import budget
from client.page.limits import in_force
from client.page.now import PARTS, now, way_to_coordinator
from client.page.plans import card, decided, plans, state
from client.page.release import looked_at
from client.page.render import page, render, style
from common.errors import CaucusError
from common.system.certificates import SOON

log = logging.getLogger("caucus.page")

Answer = Callable[[Request, HospitalSettings], Response]


def application(folder: Path, access: Access) -> Door:
    """Return the page of a hospital's folder as an ASGI application."""
    routes = [
        Route("/", _reading(folder, _plans)),
        Route("/plan", _reading(folder, _plan)),
        Route("/budget", _reading(folder, _budget)),
        Route("/ledger.jsonl", _reading(folder, _ledger)),
        Route("/limits", _reading(folder, _limits)),
        Route("/now", _reading(folder, _now)),
        Route("/coordinator", _reading(folder, _coordinator)),
        Route("/release", _reading(folder, _release)),
        Route("/look", _reading(folder, _look), methods=["POST"]),
        Route("/decide", _reading(folder, _decide), methods=["POST"]),
        Route("/style.css", _style),
    ]
    app = Starlette(routes=[Mount(access.root, routes=routes)])
    return Door(app, access, refused=render("refused.html"), entered=render("entered.html", root=access.root))


def _reading(folder: Path, answer: Answer) -> Callable[[Request], Response]:
    """Return an endpoint that reads the settings first, and shows an error as a page, free of private text."""

    @functools.wraps(answer)
    def endpoint(request: Request) -> Response:
        request.state.hospital = ""
        try:
            settings = HospitalSettings.load(folder)
            request.state.hospital = settings.name
            return answer(request, settings)
        except Exception as error:  # noqa: BLE001 an error's text could quote a record
            problem = refusals.detail(error)
            log.warning("%s: %s", answer.__name__.strip("_"), problem)
            ours = isinstance(error, CaucusError)
            return page(
                request,
                "failed",
                status=HTTPStatus.BAD_REQUEST if ours else HTTPStatus.INTERNAL_SERVER_ERROR,
                problem=problem,
            )

    return endpoint


def _style(_: Request) -> Response:
    return Response(style(), media_type="text/css")


def _plans(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "plans", plans=plans(settings), state=state, done=request.query_params.get("done", ""))


def _plan(request: Request, settings: HospitalSettings) -> Response:
    asked = request.query_params
    return page(request, "plan", card=card(settings, asked.get("run", ""), asked.get("digest", "")), state=state)


def _budget(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "budget", budget=budget(settings))


def _ledger(_: Request, settings: HospitalSettings) -> Response:
    ledger, _problem = opened(settings.private / "ledger.db", settings.noted_head)
    lines = "".join(f"{line}\n" for line in exported(ledger)) if ledger else ""
    attached = {"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    return Response(lines, media_type="application/jsonl", headers=attached)


def _limits(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "limits", limits=in_force(settings))


def _now(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "now", now=now(settings), parts=PARTS, soon=SOON)


def _coordinator(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "coordinator", findings=way_to_coordinator(settings))


def _release(request: Request, _: HospitalSettings) -> Response:
    return page(request, "release", looked=None)


def _look(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "release", looked=looked_at(settings, request.state.form))


def _decide(request: Request, settings: HospitalSettings) -> Response:
    approval = decided(settings, request.state.form)
    return RedirectResponse(f"./?done={approval.decision}", HTTPStatus.SEE_OTHER)
