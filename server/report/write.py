"""Write `report.html`, `report.json` and `release.md` from the facts of a run."""

import base64
import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from common import look
from common.errors import DataError
from common.page.words import catalogue
from common.phrases import percent
from common.system.files import PUBLIC, only_for_owner
from server.documents.metrics import GENERAL
from server.documents.privacy import Privacy
from server.documents.rounds import LostReply, RoundReport
from server.guarantee.messages import show_delta, show_epsilon
from server.llm.base import advice_on
from server.llm.use import SAMPLES, counts_of_losses
from server.report import run_plots
from server.report.facts import Facts, gather
from server.report.figure_tables import better, tables
from server.report.plots import Frame
from server.report.samples import LONG, glimpse, list_columns, pick_examples

RELEASE = "release.md"
"""The page for the person who decides whether a run's texts are passed on: what was tested and found, and what not."""

_MARKUP = re.compile(r"([\\`*_|<>\[\]#])")


def write_report(run: Path) -> Path:
    """Write `report.html`, `report.json` and `release.md` from the other files of a run folder, complete or partial.

    Args:
        run: The run folder. Missing and unreadable files are named on the page.

    Returns:
        Path of the page. Each file is replaced atomically.

    Raises:
        DataError: `run` is not a folder.
    """
    if not run.is_dir():
        raise DataError("run folder", expected="a folder", got="none", where=run, do="Name a folder that a run wrote.")
    facts = gather(run)
    plain, groups = facts.to_json(), facts.metrics.groups
    page = render(
        "page.html",
        **plain,
        metric_tables=tables(groups),
        round_plots=run_plots.plot_rounds(facts.rounds, groups),
        text_plots=run_plots.plot_texts(facts),
        vote_plots=run_plots.plot_votes(facts.votes),
        labelled=facts.labelled,
        prompts={kind: one for entry in reversed(facts.rounds) for kind, one in entry.prompts.items()},
        losses=_losses(facts.rounds),
        samples=list_columns(facts.texts, labelled=facts.labelled),
        examples=pick_examples(facts.texts),
        glimpse=glimpse(facts.texts, facts.metrics.nearest_texts, facts.metrics.count("test_records")),
    )
    as_json = json.dumps(plain, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    with owner_if_simulated(facts.privacy):
        replace(run / RELEASE, render(RELEASE, **plain, **_tests(facts)))
        replace(run / "report.json", as_json)
        return replace(run / "report.html", page)


def owner_if_simulated(privacy: Privacy | None) -> AbstractContextManager[None]:
    """Return `only_for_owner` if a run is, or may be, a simulation: its files have figures of records without noise."""
    return only_for_owner() if privacy is None or privacy.simulation else nullcontext()


def replace(path: Path, text: str) -> Path:
    """Write a file atomically, whoever else writes it at the same time, and return its path."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.touch(PUBLIC)
        # A model may return half of a surrogate pair, which UTF-8 cannot encode.
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def render(template: str, **view: object) -> str:
    """Render one of the templates."""
    return _environment().get_template(template).render(view).lstrip()


def rendered_plot(plot: Frame) -> Markup:
    """Return a plot as it appears in a report, for use on another page; all text in it is escaped."""
    drawing: Markup = _environment().get_template("plots.html").make_module().draw(plot)  # type: ignore[attr-defined]
    return drawing


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the templates, cached because compiling them takes as long as rendering ten pages."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=jinja2.select_autoescape(disabled_extensions=("md",), default=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # `tojson` writes <, > and & as escapes, so that no text can close the script element around it.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters |= {
        "epsilon": show_epsilon,
        "delta": show_delta,
        "number": show_number,
        "percent": _percent,
        "figure": _figure,
        "whole": _whole,
        "breakable": lambda name: Markup("<bdi>{}</bdi>").format(Markup("_<wbr>").join(name.split("_"))),
        "md": escape_markdown,
        "better": better,
        "duration": show_duration,
        "sha256": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
    }
    environment.globals |= {"style": Markup(look.style()), "script": Markup(_source("script.js")), "long": LONG}  # noqa: S704 — our own
    return environment


def _source(name: str) -> str:
    """Return the text of a file of `templates/`, or of a style sheet that all pages share."""
    folder = resources.files(look) if name in look.SHEETS else resources.files(__package__) / "templates"
    return (folder / name).read_text("utf-8")


def _tests(facts: Facts) -> dict[str, Any]:
    """Return what was tested, what was not and why, and what no test could find, by the titles of groups of figures."""
    say = catalogue(__package__)
    always, of_some, unseen = (vars(group) for group in (say.tests, say.tests_of_some, say.unseen))
    tests, reasons = of_some | always, _reasons(facts)
    tested = [
        group
        for group in facts.metrics.groups
        if group.title in tests and any(figure.value is not None for figure in group.figures)
    ]
    titles = {group.title for group in tested}
    if "utility" in titles:  # has the same accuracy
        tested = [group for group in tested if group.title != "synthetic"]
    named = facts.metrics.named
    return {
        "tests": tests,
        "tested": tested,
        "untested": {
            title: words
            for title, words in tests.items()
            if title not in titles and (title in always or reasons.get(title))
        },
        "reasons": reasons,
        "unseen": {title: words for title, words in unseen.items() if title in titles},
        "worst": (worst := named.get("utility: worst label")) and worst.value is not None and worst,
    }


def escape_markdown(value: object) -> str:
    """Return a text from a setting or a file as one line of plain text in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))


def _reasons(facts: Facts) -> dict[str, str]:
    """Return why figures are missing, keyed by the title of their group; a whole group may be one missing figure."""
    figures = [(group.title, figure) for group in facts.metrics.groups for figure in group.figures]
    whole = {figure.name: figure.reason for title, figure in figures if title == GENERAL and figure.reason}
    return {title: figure.reason for title, figure in reversed(figures) if figure.reason} | whole


def _losses(rounds: Sequence[RoundReport]) -> list[dict[str, Any]]:
    """Return what was lost, the most frequent kind first: kind, number, models, advice, and replies as samples."""
    kinds = counts_of_losses(*(counted for entry in rounds for counted in (entry.losses, entry.cleaned)))
    samples: dict[str, list[LostReply]] = {}
    for entry in rounds:
        for kind, replies in entry.lost_replies.items():
            samples.setdefault(kind, []).extend(replies)
    return [
        {
            "kind": kind,
            "count": models.total(),
            "models": ", ".join(models),
            "do": advice_on(kind, models.most_common(1)[0][0]),
            "samples": samples.get(kind, [])[:SAMPLES],
        }
        for kind, models in sorted(kinds.items(), key=lambda item: -item[1].total())
    ]


def show_number(value: object) -> str:
    """Format integers with separators and floats with four digits; leave anything else unchanged."""
    match value:
        case None:
            return "–"
        case int():
            return f"{value:,}"
        case float() if math.isfinite(value):
            return f"{value:,.4g}"
        case float():
            return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
        case _:
            return str(value)


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _figure(value: float, share: bool) -> str:
    """Return a figure as a verdict writes it: a fraction as a percentage, or a distance as it is."""
    return percent(value) if share else f"{value:.3g}"


def _whole(text: str) -> str:
    """Return a text in which no line break can separate a number from its ε."""
    return text.replace("ε = ", "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def show_duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
