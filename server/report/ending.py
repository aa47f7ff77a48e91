"""The last lines of a command that made a data set: its cost, its quality, weaknesses, files, and the next command."""

from collections.abc import Callable, Iterator
from pathlib import Path

from common.page.words import catalogue
from common.phrases import percent, series
from common.system.commands import command_to_copy
from common.system.files import text_of
from server.documents.files import read_lines, split
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import REFUSED, TEXTS, RunSummary
from server.guarantee.messages import fill_in
from server.guarantee.words import privacy_cost
from server.report.quality import DISTANCE, WITHOUT, Quality, read_quality, reason_not_measured
from server.report.verdict import DOUBTS, Judgement, compared_figures, describe_difference, judge
from server.report.votes import read_votes
from server.report.weaknesses import gravest_weaknesses, votes_above_forecast, votes_were_noise

_LISTED = {
    "spans": {"synthetic": "f1", WITHOUT: "zero shot", "other real texts": "real"},
    "sections": {"synthetic": "order distance", "independent": "independent", "the plan's order": "plan order"},
}
"""Names of the figures of held-out spans or sections, keyed by the texts that they are of."""


def ending(run: Path, following: Callable[[Judgement], str] | None = None) -> Iterator[str]:
    """Yield the last lines about a complete run folder: verdict, cost, a table of figures, weaknesses, and files.

    If the run's texts are refused, a line that says so precedes all other lines.

    Args:
        run: The run folder.
        following: Returns the next command for a judgement on the texts, empty for none. If it is None or the judgement
            is in `DOUBTS`, the next command measures the texts on different test texts.
    """
    metrics, summary = Metrics.read(run, []) or Metrics(), RunSummary.read(run, [])
    privacy, quality, count = Privacy.read(run, []), read_quality(metrics), len(split(text_of(run / TEXTS)))
    missing = reason_not_measured(metrics, complete=summary is None or summary.complete, texts=count)
    refused = summary is not None and summary.status == REFUSED
    rounds = read_lines(run / RoundReport.FILE, RoundReport.from_json, [])
    votes = tuple(read_votes(run, privacy, rounds)) if privacy else ()
    names = series(votes_above_forecast(summary, votes), "and") if summary else ""
    judgement = judge(quality, noise=votes_were_noise(votes))
    if following is None or judgement in DOUBTS:
        next_command = command_to_copy("caucus-coordinator", "evaluate", str(run), "--test", "FILE")
    else:
        next_command = following(judgement)
    lines = {
        "refused": _say("refused", disclosed=metrics.disclosed) if refused else "",
        "verdict": _verdict(quality, judgement, missing),
        "privacy": privacy_cost(privacy),
        quality.measure: _table(metrics, quality),
        "counted": "" if quality.counted is None else _say("counted", q=quality),
        "votes": _say("surprise", names=names) if names else "",
        "spans": _listed("spans", metrics, percent),
        "sections": _listed("sections", metrics, "{:.2f}".format),
        "poor": ("\n" + 10 * " ").join(gravest_weaknesses(run)),
        "texts": f"{run / TEXTS} ({count:,})" if count else "none",
        "report": str(run / "report.html"),
        "as JSON": str(run / "report.json"),
        "next": next_command,
    }
    for name, line in lines.items():
        if line:
            yield from f"{name + ':':<9} {line}".split("\n")


def _say(name: str, **facts: object) -> str:
    return fill_in(getattr(catalogue(__package__).ending, name), **facts)


def _verdict(quality: Quality, judgement: Judgement, missing: str) -> str:
    """Return whether the hospitals' answers help, with the difference that shows it; empty if that is not known."""
    if judgement is Judgement.NOT_MEASURED:
        return f"{judgement}: {missing}" if quality.counted is None else ""
    if quality.gain is None or judgement in DOUBTS:
        return "" if quality.measure == DISTANCE else judgement  # a distance by itself is no judgement
    return f"{judgement}: {describe_difference(quality, quality.gain)}"


def _table(metrics: Metrics, quality: Quality) -> str:
    """Return figures on test texts as lines below their head, each with the texts that it is of; empty without any."""
    shown = percent if quality.measure != DISTANCE else "{:.3g}".format
    rows = [f"{shown(bar.value):>16}  {bar.name}" for bar in compared_figures(metrics)]
    return "\n".join([_say("head", q=quality), *rows]) if rows else ""


def _listed(group: str, metrics: Metrics, form: Callable[[float], str]) -> str:
    """Return the figures of a group that were measured, in the message of its name; empty if none was."""
    start = f"{group}: "
    measured = {name.removeprefix(start): value for name, value in metrics.finite.items() if name.startswith(start)}
    shown = [f"{words} {form(measured[name])}" for words, name in _LISTED[group].items() if name in measured]
    return _say(group, shown=", ".join(shown), measured=measured) if shown else ""
