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
from server.report.quality import ACCURACY, DISTANCE, RELEASED, WITHOUT, Quality, read_quality, reason_not_measured
from server.report.verdict import compare_gain, describe_difference
from server.report.votes import read_votes
from server.report.weaknesses import votes_above_forecast, votes_were_noise


def ending(run: Path, following: str | None = None) -> Iterator[str]:
    """Yield six lines about a complete run folder, and further lines on spans, sections and noise if it has any.

    If the run's texts are refused, a line that says so precedes all other lines.

    Args:
        run: The run folder.
        following: The next command. If None, it is the command that measures the texts on different test texts.
    """
    metrics, summary = Metrics.read(run, []) or Metrics(), RunSummary.read(run, [])
    privacy, quality, count = Privacy.read(run, []), read_quality(metrics), len(split(text_of(run / TEXTS)))
    missing = reason_not_measured(metrics, complete=summary is None or summary.complete, texts=count)
    refused = summary is not None and summary.status == REFUSED
    lines = {
        "refused": _say("refused", disclosed=metrics.disclosed) if refused else "",
        "privacy": privacy_cost(privacy),
        quality.measure: _figures(quality) or f"not measured: {missing}",
        "votes": _votes(run, summary, privacy) if summary and privacy else "",
        "spans": _spans(metrics),
        "sections": _sections(metrics),
        "texts": f"{run / TEXTS} ({count:,})" if count else "none",
        "report": str(run / "report.html"),
        "as JSON": str(run / "report.json"),
        "next": following or shlex.join(["caucus-coordinator", "evaluate", str(run), "--test", "FILE"]),
    }
    for name, line in lines.items():
        if line:
            yield f"{name + ':':<9} {line}"


def _say(name: str, **facts: object) -> str:
    return fill_in(getattr(catalogue(__package__).ending, name), **facts)


def _figures(quality: Quality) -> str:
    """Return the accuracies of models trained on the texts and on references; empty if none was measured."""
    if quality.measure == DISTANCE:
        shown = {"synthetic": quality.synthetic, WITHOUT: quality.zero_shot, "other real texts": quality.real}
        return _listed("distances", shown, "{:.3g}".format)
    constant = "the most frequent label" if quality.measure == ACCURACY else "the best constant answer"
    accuracies = (
        ("synthetic", quality.synthetic, ""),
        ("synthetic", quality.counted, f" {catalogue(__package__).ending.counted}"),
        (WITHOUT, quality.zero_shot, _gain(quality)),
        (RELEASED, quality.released, ""),
        ("real records", quality.real, ""),
        (constant, quality.majority, ""),
    )
    return ", ".join(f"{words} {percent(share)}{more}" for words, share, more in accuracies if share is not None)


def _listed(name: str, figures: Mapping[str, float | None], form: Callable[[float], str], **facts: object) -> str:
    """Return the figures that were measured, in a message of this name; empty if none was."""
    shown = ", ".join(f"{words} {form(value)}" for words, value in figures.items() if value is not None)
    return _say(name, shown=shown, **facts) if shown else ""


def _gain(quality: Quality) -> str:
    """Return both accuracies from equally many texts or sections, and whether they differ; empty without a gain."""
    if quality.gain is None or quality.zero_shot is None:
        return ""
    difference = describe_difference(quality, quality.gain, of_each=False)
    return f" {_say('gain', q=quality, judgement=compare_gain(quality.gain), difference=difference)}"


def _votes(run: Path, summary: RunSummary, privacy: Privacy) -> str:
    """Return whether the votes were noise, measured as for the report's verdict; empty if that is no surprise."""
    votes = tuple(read_votes(run, privacy, read_lines(run / RoundReport.FILE, RoundReport.from_json, [])))
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
