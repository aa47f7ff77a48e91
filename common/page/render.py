"""HTML templates of the pages. Every value is escaped: a template could turn this off, but no template does."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from types import SimpleNamespace

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from common import look
from common.page.access import SCRIPTED
from common.page.words import ENGLISH, preferred_language, sentences, spelt
from common.system.log_lines import utc

LANGUAGE = "caucus-language"
"""Name of the cookie with the language that a person chose, which is sent to the paths of one page alone."""


class Pages:
    """The templates of one page: its own, and the ones that all pages share.

    Args:
        package: The page's package, with a folder of templates and the page's sentences.
        tabs: The page's sections, each with a template; the first is at the root.
        filters: Filters that the page's templates use besides those of all pages, `utc` and `figure`.
        figures: Filters that return a number in English notation, which a page in another language converts to the
            notation of that language.
        values: Values that the page's templates use.

    Attributes:
        spoken: The page's sentences, keyed by language code.
        say: The page's sentences in English.
        script: The page's script file, `page.js`, which some of its tabs load.
    """

    def __init__(
        self,
        package: str,
        *,
        tabs: Sequence[str],
        filters: Mapping[str, Callable[..., str]],
        values: Mapping[str, object],
        figures: Mapping[str, Callable[..., str]],
    ) -> None:
        self.spoken = sentences(package)
        self.say: SimpleNamespace = self.spoken[ENGLISH]
        self.script = (resources.files(package) / "page.js").read_text("utf-8")
        languages = {code: say.language for code, say in self.spoken.items()}
        self._environments = {}
        for language in self.spoken:
            environment = _environment(package)
            spelling = {name: _spelling(filter_, language) for name, filter_ in {"figure": figure, **figures}.items()}
            environment.filters |= {"utc": utc, **spelling, **filters}
            environment.globals |= {"tabs": tabs, "languages": languages, **values}
            self._environments[language] = environment

    def language(self, request: Request) -> str:
        """Return the code of the reader's language: the chosen one, or else the one that the browser prefers."""
        chosen = request.cookies.get(LANGUAGE, "")
        if chosen in self.spoken:
            return chosen
        return preferred_language(request.headers.get("accept-language", ""), self.spoken)

    def render(self, request: Request, template: str, **view: object) -> str:
        """Render a template with these values in the reader's language, and return the HTML."""
        language = self.language(request)
        return self._environments[language].get_template(template).render(view, say=self.spoken[language])

    def page(
        self,
        request: Request,
        tab: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        scripted: bool = False,
        **view: object,
    ) -> HTMLResponse:
        """Return one of the pages, by the name of its template; if it is `scripted`, it loads the script file."""
        shared = {"tab": tab, "scripted": scripted, "here": _here(request), "problem": ""}
        shared |= {"form_token": request.state.form_token, "owner": request.state.owner}
        body = self.render(request, f"{tab}.html", **shared | view)
        return HTMLResponse(body, status, headers={**(headers or {}), **(SCRIPTED if scripted else {})})


def _here(request: Request) -> str:
    """Return the address of a page below the root, with its query; the first page for one that was posted."""
    page, query = request.url.path.rpartition("/")[2], request.url.query
    return "" if request.method == "POST" else f"{page}?{query}" if query else page


def figure(value: float, form: str = "%g") -> str:
    """Format a number with a format string for the % operator."""
    return form % value


@cache
def style() -> str:
    """Return the style sheet of pages, which consists of a part shared with reports and a part only for pages."""
    return look.style() + (resources.files(__package__) / "page.css").read_text("utf-8")


def _environment(package: str) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in (package, "common.page")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a page that runs keeps the templates of its code
    )


def _spelling(filter_: Callable[..., str], language: str) -> Callable[..., str]:
    return lambda *arguments: spelt(filter_(*arguments), language)
