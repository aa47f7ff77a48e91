"""The last lines of a command that made a data set: what it cost, how good it is, where it is, and what comes next."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from server.planning.statement import show_delta, show_epsilon
from server.report.guarantee import Kind, guarantee_kind
from server.report.reading import JsonObject, as_object, read
from server.report.utility import accuracies


def ending(run: Path, following: str | None = None) -> Iterator[str]:
    """Six lines about a complete run folder.

    Args:
        run: The run folder.
        following: The next command; None: the one that measures the texts on other test texts.
    """
    privacy, metrics = (read(run / f"{name}.json", as_object, []) for name in ("privacy", "metrics"))
    yield f"privacy:  {_privacy(privacy)}"
    yield f"accuracy: {_accuracy(metrics or {})}"
    texts = run / "synthetic.jsonl"
    count = texts.read_bytes().count(b"\n") if texts.exists() else 0
    yield f"texts:    {texts} ({count:,})" if count else "texts:    none"
    yield f"report:   {run / 'report.html'}"
    yield f"as JSON:  {run / 'report.json'}"
    evaluation = ["caucus-coordinator", "evaluate", str(run), "--test", "FILE"]
    yield f"next:     {following or shlex.join(evaluation)}"


def _privacy(privacy: JsonObject | None) -> str:
    kind = guarantee_kind(privacy)
    if privacy is None or kind is Kind.UNKNOWN:
        return "not known: privacy.json cannot be read"
    if kind is Kind.NONE:
        return "no guarantee (ε = ∞)"
    if kind is Kind.NOT_ASKED and not privacy.get("earlier"):
        return "no party was asked (ε = 0)"
    delta = show_delta(float(privacy["delta"]))
    if privacy.get("earlier"):
        planned = show_epsilon(privacy["planned_epsilon"])
        return f"ε = {planned}, δ = {delta} of run {privacy['earlier']['run']}, which asked; nothing more was asked"
    spent = show_epsilon(privacy["spent"]["epsilon"])
    return f"ε = {show_epsilon(privacy['planned_epsilon'])} planned and {spent} spent, δ = {delta} planned and spent"


def _accuracy(metrics: JsonObject) -> str:
    """Of a model trained on the texts, beside one trained on the records and one that always gives the same answer."""
    measured = accuracies(metrics)
    shares = {
        "synthetic": measured.synthetic,
        "real records": measured.real,
        "the most frequent label": measured.majority,
    }
    shown = [f"{words} {100 * share:.1f} %" for words, share in shares.items() if share is not None]
    return ", ".join(shown) or "not measured, for there are no test texts"
