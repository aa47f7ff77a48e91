"""The last lines of a command that made a data set: what it cost, how good it is, where it is, and what comes next."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from server.planning.statement import show_delta, show_epsilon
from server.report.guarantee import Kind, guarantee_kind
from server.report.reading import JsonObject, as_object, read


def ending(run: Path, following: str) -> Iterator[str]:
    """Six lines about a complete run folder.

    Args:
        run: The run folder.
        following: The next command.
    """
    privacy, metrics = (read(run / f"{name}.json", as_object, []) for name in ("privacy", "metrics"))
    yield f"privacy:  {_privacy(privacy)}"
    yield f"accuracy: {_accuracy(metrics or {})}"
    texts = run / "synthetic.jsonl"
    count = texts.read_bytes().count(b"\n") if texts.exists() else 0
    yield f"texts:    {texts} ({count:,})" if count else "texts:    none"
    yield f"report:   {run / 'report.html'}"
    yield f"as JSON:  {run / 'report.json'}"
    yield f"next:     {following}"


def _privacy(privacy: JsonObject | None) -> str:
    kind = guarantee_kind(privacy)
    if privacy is None or kind is Kind.UNKNOWN:
        return "not known: privacy.json cannot be read"
    if kind is Kind.NONE:
        return "no guarantee (ε = ∞)"
    if kind is Kind.NOT_ASKED and not privacy.get("earlier"):
        return "no party was asked (ε = 0)"
    delta = show_delta(float(privacy["delta"]))
    spent = show_epsilon(privacy["spent"]["epsilon"])
    return f"ε = {show_epsilon(privacy['planned_epsilon'])} planned and {spent} spent, δ = {delta} planned and spent"


def _accuracy(metrics: JsonObject) -> str:
    """Of a model trained on the texts, beside one trained on the records and one that always gives the same answer."""
    places = {"synthetic": "synthetic", "real_private": "real records", "majority_class": "the most frequent label"}
    found: dict[str, Any] = {words: metrics.get(name) for name, words in places.items()}
    shares = [f"{words} {100 * scores['accuracy']:.1f} %" for words, scores in found.items() if scores]
    return ", ".join(shares) or "not measured, for there are no test texts"
