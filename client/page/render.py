"""Templates of the page: HTML files, in which each value is escaped unless a template says otherwise; none does."""

from functools import cache
from importlib import resources

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from client.deploy.plan_facts import down, up
from client.deploy.plan_sheet import in_fours, plain
from client.page import steps
from client.page.words import words
from common import look
from common.system.certificates import in_words

TABS = ("plans", "budget", "limits", "now", "release")


def render(template: str, **view: object) -> str:
    """Return the HTML of a template with these values."""
    return _environment().get_template(template).render(say=words(), **view)


def page(request: Request, tab: str, *, status: int = 200, **view: object) -> HTMLResponse:
    """Return the response with one of the pages.

    Args:
        request: The request, which the door has let in.
        tab: One of `TABS`, whose template it is.
        status: Status of the response.
        view: Values for the template.
    """
    common = {"tab": tab, "tabs": TABS, "form_token": request.state.form_token, "hospital": request.state.hospital}
    return HTMLResponse(render(f"{tab}.html", **{"problem": ""} | common | view), status)


@cache
def style() -> str:
    """Return the style sheet of the page: the common one, and the rules of this page alone."""
    return look.style() + (resources.files(__package__) / "page.css").read_text("utf-8")


@cache
def _environment() -> jinja2.Environment:
    folder = resources.files(__package__) / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"days": in_words, "down": down, "fours": in_fours, "plain": plain, "up": up}
    environment.globals |= {
        "width": steps.WIDTH,
        "height": steps.HEIGHT,
        "left": steps.LEFT,
        "right": steps.RIGHT,
        "bottom": steps.BOTTOM,
    }
    return environment
