"""The last lines of a command that made a data set: its cost, its quality, its folder, and the next command."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from common.phrases import series
from common.system.files import text_of
from server.documents.files import read_lines, split
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import REFUSED, TEXTS, RunSummary
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
    metrics = Metrics.read(run, []) or Metrics()
    summary = RunSummary.read(run, [])
    if summary and summary.status == REFUSED:
        reason = f"the texts disclose records, by {metrics.disclosed}" if metrics.disclosed else "this was not tested"
        yield f"refused:  {reason} (refuse_disclosures); they may not be passed on"
    privacy = Privacy.read(run, [])
    yield f"privacy:  {privacy_cost(privacy)}"
    quality, count = read_quality(metrics), len(split(text_of(run / TEXTS)))
    missing = reason_not_measured(metrics, complete=summary is None or summary.complete, texts=count)
    yield f"{quality.measure}: {_figures(quality) or f'not measured: {missing}'}"
    if summary and privacy and (said := _votes(run, summary, privacy)):
        yield f"votes:    {said}"
    if spans := _spans(metrics):
        yield f"spans:    {spans}"
    if sections := _sections(metrics):
        yield f"sections: {sections}"
    yield f"texts:    {run / TEXTS} ({count:,})" if count else "texts:    none"
    yield f"report:   {run / 'report.html'}"
    yield f"as JSON:  {run / 'report.json'}"
    evaluation = ["caucus-coordinator", "evaluate", str(run), "--test", "FILE"]
    yield f"next:     {following or shlex.join(evaluation)}"


def _figures(quality: Quality) -> str:
    """Return the accuracies of models trained on the texts and on references; empty if none was measured."""
    if quality.measure == DISTANCE:
        shown = ((quality.synthetic, "synthetic"), (quality.zero_shot, WITHOUT), (quality.real, "other real texts"))
        fids = ", ".join(f"{words} {fid:.3g}" for fid, words in shown if fid is not None)
        return f"{fids} (FID from real texts)" if fids else ""
    constant = "the most frequent label" if quality.measure == ACCURACY else "the best constant answer"
    accuracies = [
        f"{words} {100 * share:.1f} %{more}"
        for words, share, more in (
            ("synthetic", quality.synthetic, ""),
            ("synthetic", quality.counted, " of the hospitals' records (a noised count)"),
            (WITHOUT, quality.zero_shot, _gain(quality)),
            (RELEASED, quality.released, ""),
            ("real records", quality.real, ""),
            (constant, quality.majority, ""),
        )
        if share is not None
    ]
    return ", ".join(accuracies)


def _votes(run: Path, summary: RunSummary, privacy: Privacy) -> str:
    """Return whether the votes were noise, measured as for the report's verdict; empty if that is no surprise."""
    votes = tuple(read_votes(run, privacy, read_lines(run / RoundReport.FILE, RoundReport.from_json, [])))
    if votes_were_noise(votes):
        return "all were noise, so that a gain may be the models' own"
    names = series(votes_above_forecast(summary, votes), "and")
    return f"{names} rose above their noise, although noise was forecast" if names else ""


def _spans(metrics: Metrics) -> str:
    """Return what a token classifier learns from the texts and from references; empty without held-out spans."""
    shown = (("synthetic", "f1"), (WITHOUT, "zero shot"), ("other real texts", "real"))
    figures = metrics.finite
    scores = [f"{words} {100 * figures[key]:.1f} %" for words, name in shown if (key := f"spans: {name}") in figures]
    return f"{', '.join(scores)} (F1 on real texts)" if scores else ""


def _sections(metrics: Metrics) -> str:
    """Return how the order and the lengths of sections differ from those of real texts; empty without sections."""
    figures = metrics.finite
    shown = (("synthetic", "order distance"), ("independent", "independent"), ("the plan's order", "plan order"))
    apart = [f"{words} {figures[key]:.2f}" for words, name in shown if (key := f"sections: {name}") in figures]
    if not apart:
        return ""
    words = f"{figures['sections: words']:,.0f} words a text, real ones {figures['sections: words real']:,.0f}"
    return f"{', '.join(apart)} (distance of their order from real texts); {words}"


def _gain(quality: Quality) -> str:
    """Return both accuracies from equally many texts or sections, and whether they differ; empty without a gain."""
    gain, without = quality.gain, quality.zero_shot
    if gain is None or without is None:
        return ""
    return (
        f" (with {gain.texts:,} {quality.unit} each {100 * (without + gain.value):.1f} % against "
        f"{100 * without:.1f} %, {compare_gain(gain).lower()}: "
        f"{describe_difference(quality, gain, of_each=False)})"
    )
