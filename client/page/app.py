"""The routes of a hospital's page, behind the login of `common/page/access.py`: GET only reads, POST stores decisions.

Each request, like a command, reads the hospital's files again, with the rights of the account that runs the page.
"""

import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from client import refusals
from client.approval.facts import round_down, round_up
from client.deploy.audit_reading import last_of_audit
from client.deploy.ledger import export_events
from client.deploy.preflight import OF_COORDINATOR, findings
from client.deploy.settings import HospitalSettings
from client.deploy.status import hospital_status
from client.page.budget import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, budget
from client.page.limits import limits_in_force
from client.page.plans import list_plans, plan_sheet, recent_decision, state, store_decision
from client.page.release import audit_chosen_release, forget, receive
from client.releases import releases
from common.page import app
from common.page.access import BYTES, Access, Door
from common.page.render import Pages
from common.phrases import capital, group_by_four
from common.system.certificates import SOON
from common.system.log_lines import escaped_line, last_lines

PAGES = Pages(
    __package__,
    tabs=("plans", "budget", "limits", "now", "release"),
    filters={"fours": group_by_four, "plain": escaped_line, "sentence": capital},
    figures={"down": round_down, "local": str, "up": round_up},
    values={
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
    },
)
"""The templates of the page, and the functions and values that they use."""
page = PAGES.page
RECEIVE = "/receive"
"""Path to which the page's script uploads a file of texts."""
MOST_LINES = 30
"""Number of most recent lines shown from the audit log and from each other log."""
LOGS = ("service", "supernode", "relay", "metrics")
PARTS = ("service", "supernode", "relay")
"""Processes that `caucus-party start` runs at every hospital."""
log = logging.getLogger("caucus.page")


def hospital_page(folder: Path, access: Access) -> Door:
    """Return the page of a hospital's folder as an ASGI application."""

    def reading(answer: Callable[[Request, HospitalSettings], Response]) -> Callable[[Request], Response]:
        load = partial(HospitalSettings.load, folder)
        return app.page_endpoint(PAGES, load, answer, owner=lambda settings: settings.name, describe=refusals.detail)

    async def received(request: Request) -> Response:
        """Store an uploaded file of texts; return its path, or an error message, to the page's script."""
        if request.headers.get("content-type") != BYTES:
            return PlainTextResponse("a file's bytes were expected", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        try:
            return PlainTextResponse(str(await receive(HospitalSettings.load(folder), request.stream())))
        except Exception as error:  # noqa: BLE001 an error's text could quote a text
            problem = refusals.detail(error)
            log.warning("received: %s", problem)
            return PlainTextResponse(problem, HTTPStatus.BAD_REQUEST)

    routes = [
        Route("/", reading(_plans)),
        Route("/plan", reading(_plan)),
        Route("/budget", reading(_budget)),
        Route("/ledger.jsonl", reading(_ledger)),
        Route("/limits", reading(_limits)),
        Route("/now", reading(_now)),
        Route("/coordinator", reading(_coordinator)),
        Route("/release", reading(_release)),
        Route(RECEIVE, received, methods=["POST"]),
        Route("/look", reading(_look), methods=["POST"]),
        Route("/decide", reading(_decide), methods=["POST"]),
    ]
    return app.page_application(access, PAGES, routes, receives=(RECEIVE,), forget=partial(forget, folder))


def _plans(request: Request, settings: HospitalSettings) -> Response:
    asked, language, done = request.query_params, PAGES.language(request), None
    if "done" in asked:
        done = recent_decision(settings, asked.get("run", ""), asked.get("digest", ""), language)
    return page(request, "plans", plans=list_plans(settings, language), state=state, done=done)


def _plan(request: Request, settings: HospitalSettings) -> Response:
    asked = request.query_params
    shown = plan_sheet(settings, asked.get("run", ""), asked.get("digest", ""), PAGES.language(request))
    return page(request, "plan", sheet=shown, state=state)


def _budget(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "budget", budget=budget(settings))


def _ledger(_: Request, settings: HospitalSettings) -> Response:
    ledger, _problem = settings.noted_head.inspected(settings.ledger)
    lines = "".join(f"{line}\n" for line in export_events(ledger)) if ledger else ""
    attached = {"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    return Response(lines, media_type="application/jsonl", headers=attached)


def _limits(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "limits", limits=limits_in_force(settings))


def _now(request: Request, settings: HospitalSettings) -> Response:
    """Show what `caucus-party status` prints, the last requests and decisions, and the ends of the logs."""
    lines = last_of_audit(settings.private)[:MOST_LINES]
    logs = {name: last_lines(settings.folder / "logs" / f"{name}.log", MOST_LINES) for name in LOGS}
    return page(request, "now", now=hospital_status(settings), lines=lines, logs=logs, parts=PARTS, soon=SOON)


def _coordinator(request: Request, settings: HospitalSettings) -> Response:
    """Contact the coordinator's front door as `caucus-party check` does, which the page does only on request."""
    return page(request, "coordinator", findings=findings(settings, only=OF_COORDINATOR))


def _release(request: Request, settings: HospitalSettings) -> Response:
    return page(request, "release", scripted=True, made=None, sent=releases(settings.private))


def _look(request: Request, settings: HospitalSettings) -> Response:
    made = audit_chosen_release(settings, request.state.form, PAGES.language(request))
    return page(request, "release", scripted=True, made=made, sent=releases(settings.private))


def _decide(request: Request, settings: HospitalSettings) -> Response:
    approval = store_decision(settings, request.state.form)
    done = {"done": approval.decision, "run": approval.run, "digest": approval.plan_digest}
    return RedirectResponse(f"./?{urlencode(done)}", HTTPStatus.SEE_OTHER)
