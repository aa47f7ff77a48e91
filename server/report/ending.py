"""The last lines of a command that made a data set: its cost, its quality, its folder, and the next command."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from common.page.words import catalogue
from common.phrases import percent, series
from common.system.files import text_of
from server.documents.files import read_lines, split
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import REFUSED, TEXTS, RunSummary
from server.guarantee.messages import fill_in
from server.guarantee.words import privacy_cost
from server.report.bars import compared_figures
from server.report.quality import DISTANCE, WITHOUT, Quality, read_quality, reason_not_measured
from server.report.verdict import DOUBTS, Judgement, describe_difference, judge
from server.report.votes import VoteHistogram, read_votes
from server.report.weaknesses import votes_above_forecast, votes_were_noise


def ending(run: Path, following: str | None = None) -> Iterator[str]:
    """Yield the last lines about a complete run folder: the verdict, the cost, a table of figures, and the files.

    If the run's texts are refused, a line that says so precedes all other lines.

    Args:
        run: The run folder.
        following: The next command. If None, it is the command that measures the texts on different test texts.
    """
    metrics, summary = Metrics.read(run, []) or Metrics(), RunSummary.read(run, [])
    privacy, quality, count = Privacy.read(run, []), read_quality(metrics), len(split(text_of(run / TEXTS)))
    missing = reason_not_measured(metrics, complete=summary is None or summary.complete, texts=count)
    refused = summary is not None and summary.status == REFUSED
    rounds = read_lines(run / RoundReport.FILE, RoundReport.from_json, [])
    votes = tuple(read_votes(run, privacy, rounds)) if privacy else ()
    lines = {
        "refused": _say("refused", disclosed=metrics.disclosed) if refused else "",
        "verdict": _verdict(quality, missing, noise=votes_were_noise(votes)),
        "privacy": privacy_cost(privacy),
        quality.measure: _table(metrics, quality),
        "counted": "" if quality.counted is None else _say("counted", q=quality),
        "votes": _votes(summary, votes) if summary else "",
        "spans": _spans(metrics),
        "sections": _sections(metrics),
        "texts": f"{run / TEXTS} ({count:,})" if count else "none",
        "report": str(run / "report.html"),
        "as JSON": str(run / "report.json"),
        "next": following or shlex.join(["caucus-coordinator", "evaluate", str(run), "--test", "FILE"]),
    }
    for name, line in lines.items():
        if line:
            yield from f"{name + ':':<9} {line}".split("\n")


def _say(name: str, **facts: object) -> str:
    return fill_in(getattr(catalogue(__package__).ending, name), **facts)


def _verdict(quality: Quality, missing: str, *, noise: bool) -> str:
    """Return whether the hospitals' answers help, with the difference that shows it; empty if that is not known."""
    judgement = judge(quality, noise=noise)
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


def _listed(name: str, figures: Mapping[str, float | None], form: Callable[[float], str], **facts: object) -> str:
    """Return the figures that were measured, in a message of this name; empty if none was."""
    shown = ", ".join(f"{words} {form(value)}" for words, value in figures.items() if value is not None)
    return _say(name, shown=shown, **facts) if shown else ""


def _votes(summary: RunSummary, votes: tuple[VoteHistogram, ...]) -> str:
    """Return whether the votes were noise, or rose above it against the forecast; empty if that is no surprise."""
    if votes_were_noise(votes):
        return _say("noise")
    names = series(votes_above_forecast(summary, votes), "and")
    return _say("surprise", names=names) if names else ""


def _spans(metrics: Metrics) -> str:
    """Return what a token classifier learns from the texts and from references; empty without held-out spans."""
    names = {"synthetic": "f1", WITHOUT: "zero shot", "other real texts": "real"}
    measured = metrics.finite
    return _listed("spans", {words: measured.get(f"spans: {name}") for words, name in names.items()}, percent)


def _sections(metrics: Metrics) -> str:
    """Return how the order and the lengths of sections differ from those of real texts; empty without sections."""
    names = {"synthetic": "order distance", "independent": "independent", "the plan's order": "plan order"}
    measured = metrics.finite
    apart = {words: measured.get(f"sections: {name}") for words, name in names.items()}
    words, real = (measured.get(f"sections: {name}") for name in ("words", "words real"))
    return _listed("sections", apart, "{:.2f}".format, words=words, real=real)
