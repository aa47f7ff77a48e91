"""The routes of the coordinator's page, protected by `common/page/access.py`: GET reads; POST plans or acts.

Each request reads the coordinator's folder again, as a command does, with the rights of the account that runs the page.
"""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from common.errors import CaucusError, CheckpointError
from common.page import app
from common.page.access import SANDBOXED, Access, Door
from common.page.render import Pages
from common.page.words import catalogue
from common.phrases import group_by_four
from common.system import processes
from common.system.certificates import SOON, days_left
from common.system.enrolment import Invitation, RosterFile
from server.deploy import run_state
from server.deploy.enrolment import attendance, reported_versions
from server.deploy.health import fault
from server.deploy.runs import cancel, resume, start, started_run_folder
from server.deploy.send import begin
from server.deploy.settings import LOCKS, CoordinatorSettings
from server.failure import EXPECTED, summary
from server.guarantee.messages import show_delta, show_epsilon
from server.page.drafts import NOTES, Draft, draft_facts, plan_draft, start_command
from server.page.runs import all_runs, one_run, resumable_folder
from server.report.write import show_duration, show_number

AGAIN = "10"
"""Seconds after which a browser reloads a run's page, if the user has turned this on."""

CERTIFICATES = ("server.crt", "ca.crt")

_acting = Lock()
"""Lock held while a run is planned, started or sent: Hydra has one state per process, and runs start one at a time."""


def number(value: object) -> str:
    """Return a number as in reports: with narrow spaces, not commas, which mark decimals in German and French."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return show_number(value).replace(",", "\u202f")


PAGES = Pages(
    __package__,
    tabs=("runs", "hospitals", "plan"),
    filters={"fours": group_by_four},
    figures={"delta": show_delta, "duration": show_duration, "epsilon": show_epsilon, "number": number},
    values={"plan_words": partial(catalogue, "common.plan")},
)
page = PAGES.page


def coordinator_page(folder: Path, access: Access) -> Door:
    """Return the page for a coordinator's folder as an ASGI application."""

    def reading(answer: Callable[[Request, CoordinatorSettings], Response]) -> Callable[[Request], Response]:
        load = partial(CoordinatorSettings.load, folder)
        return app.page_endpoint(PAGES, load, answer, owner=lambda settings: settings.address, describe=describe)

    routes = [
        Route("/", reading(_runs)),
        Route("/run", reading(_run)),
        Route("/report", reading(_report)),
        Route("/hospitals", reading(_hospitals)),
        Route("/plan", reading(_plan)),
        Route("/figures", reading(_figures), methods=["POST"]),
        Route("/planned", reading(_planned), methods=["POST"]),
        Route("/start", reading(_start), methods=["POST"]),
        Route("/resume", reading(_resume), methods=["POST"]),
        Route("/cancel", reading(_cancel), methods=["POST"]),
        Route("/send", reading(_send), methods=["POST"]),
    ]
    return app.page_application(access, PAGES, routes)


def describe(error: Exception) -> str:
    """Return an error as one line; for a library's error only the class name, as its message may quote the input."""
    return summary(error) if isinstance(error, (*EXPECTED, OSError)) else type(error).__name__


def _runs(request: Request, settings: CoordinatorSettings) -> Response:
    return page(request, "runs", runs=all_runs(settings))


def _run(request: Request, settings: CoordinatorSettings) -> Response:
    run = one_run(settings, request.query_params.get("name", ""))
    goes_on = run.state.status in run_state.GOES_ON
    follows = goes_on and "follow" in request.query_params
    headers = {"Refresh": AGAIN} if follows else None
    return page(request, "run", headers=headers, run=run, goes_on=goes_on, follows=follows, seconds=AGAIN)


def _report(request: Request, settings: CoordinatorSettings) -> Response:
    report = started_run_folder(settings, request.query_params.get("name", "")) / "report.html"
    if report.is_symlink() or not report.is_file():
        do = "Wait for the end of the run, or run caucus-coordinator report"
        raise CheckpointError("report", expected="a file", got="none", where=report, do=do)
    return FileResponse(report, media_type="text/html", headers=SANDBOXED)


def _hospitals(request: Request, settings: CoordinatorSettings) -> Response:
    """Show the hospitals. Flower takes seconds to answer, so it is queried only while `serve` is running."""
    hospitals, served = attendance(settings, known=False), settings.is_served
    problem = fault(settings.folder) or "" if served else ""
    if served and hospitals:
        try:
            hospitals = attendance(settings)
        except CaucusError as error:
            problem = problem or str(error)
    return page(
        request,
        "hospitals",
        address=settings.address,
        certificates={name: days_left(settings.folder / name) for name in CERTIFICATES},
        hospitals=hospitals,
        folder=settings.folder,
        invitation=Invitation.load(settings.folder / Invitation.FILE).fingerprint,
        processes=processes.child_states(settings.folder, LOCKS),
        problem=problem,
        roster=RosterFile.load(settings.folder / RosterFile.FILE).fingerprint if hospitals else "",
        soon=SOON,
        versions=reported_versions(settings),
    )


def _plan(request: Request, settings: CoordinatorSettings) -> Response:
    run = request.query_params.get("again", "")
    return _form(request, Draft.again(started_run_folder(settings, run)) if run else Draft.of({}))


def _figures(request: Request, settings: CoordinatorSettings) -> Response:
    """Return only the figures of a draft, for the page's script; empty while a run is being planned or started."""
    if not _acting.acquire(blocking=False):
        return Response(status_code=HTTPStatus.NO_CONTENT)
    try:
        view: dict[str, Any] = {"facts": draft_facts(settings, Draft.of(request.state.form)), "problem": ""}
    except EXPECTED as error:
        view = {"facts": {}, "problem": summary(error)}
    finally:
        _acting.release()
    return HTMLResponse(PAGES.render(request, "glance.html", **view))


def _planned(request: Request, settings: CoordinatorSettings) -> Response:
    draft = Draft.of(request.state.form)
    try:
        with _acting:
            return _form(request, draft, planned=plan_draft(settings, draft))
    except EXPECTED as error:
        return _form(request, draft, problem=summary(error))


def _start(request: Request, settings: CoordinatorSettings) -> Response:
    form = request.state.form
    draft, wait = Draft.of(form), "wait" in form
    try:
        overrides = draft.overrides()
        with _acting:
            lines = list(start(settings, draft.name, overrides, wait=wait, yes=True))  # its plan was shown before
    except EXPECTED as error:
        return _form(request, draft, problem=summary(error), again=True)
    command = start_command(settings, draft.name, overrides, wait=wait)
    return _acted(request, "start", draft.name, lines, command)


def _resume(request: Request, settings: CoordinatorSettings) -> Response:
    form = request.state.form
    with _acting:
        folder = resumable_folder(settings, form.get("name", ""))
        lines = list(resume(settings, folder, wait="wait" in form))
    return _acted(request, "resume", folder.name, lines, run_state.command(settings, "resume", folder.name))


def _cancel(request: Request, settings: CoordinatorSettings) -> Response:
    folder = started_run_folder(settings, request.state.form.get("name", ""))
    lines = list(cancel(settings, folder))
    return _acted(request, "cancel", folder.name, lines, run_state.command(settings, "cancel", folder.name))


def _send(request: Request, settings: CoordinatorSettings) -> Response:
    folder = started_run_folder(settings, request.state.form.get("name", ""))
    with _acting:
        begin(settings, folder)
    return _acted(request, "send", folder.name, [], run_state.command(settings, "send", folder.name))


def _form(request: Request, draft: Draft, **view: object) -> Response:
    shown: dict[str, Any] = {"draft": draft, "planned": None, "again": False, **view}
    shown |= {"methods": NOTES["methods"], "explained": NOTES["fields"]}
    status = HTTPStatus.BAD_REQUEST if "problem" in view else HTTPStatus.OK
    return page(request, "plan", status=status, scripted=True, folder=Path.cwd(), **shown)


def _acted(request: Request, action: str, name: str, lines: list[str], command: str) -> Response:
    return page(request, "acted", action=action, name=name, lines=lines, command=command)
