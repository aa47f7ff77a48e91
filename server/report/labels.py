"""A run's texts by label, beside the records': counted in a simulation, or as the method's noised answers have them."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from server.report.reading import JsonObject, finite


def by_label(facts: Mapping[str, Any], metrics: JsonObject, texts: Sequence[JsonObject]) -> dict[str, Any]:
    """The table of labels, as `report.json` has it.

    Args:
        facts: "run", "privacy" and "rounds", as `report.json` has them; "run" and "privacy" may be None.
        metrics: Content of `metrics.json`; empty if there is none.
        texts: The lines of `synthetic.jsonl`.

    Returns:
        "records", which is "counted" for exact numbers of private records, in a simulation alone, "noised" for shares
        that the method's answers released, or None; "simulation_only", whether they are counted; and "rows", each with
        "label", "texts", "share" (of their weights), "words" (median), and of the records "records" (only if counted)
        and "record_share".
    """
    shares, exact = record_shares(facts["privacy"], facts["rounds"], metrics)
    number = _number(metrics) if exact else None
    weights, words = weights_of(texts), _words(texts)
    total = sum(weights.values())
    names = dict.fromkeys([*(facts["run"] or {}).get("labels", {}), *sorted(words), *sorted(shares)])
    rows = [
        {
            "label": label,
            "texts": len(words.get(label, ())),
            "share": weights[label] / total if total > 0 else None,
            "words": statistics.median(words[label]) if label in words else None,
            "records": None if number is None else round(number * shares.get(label, 0.0)),
            "record_share": shares.get(label, 0.0) if shares else None,
        }
        for label in names
    ]
    source = ("counted" if exact else "noised") if shares else None
    return {"records": source, "simulation_only": exact, "rows": rows}


def weights_of(texts: Sequence[JsonObject]) -> Counter[str]:
    """Sum of the texts' weights by label."""
    weights: Counter[str] = Counter()
    for row in texts:
        weights[str(row["label"])] += row.get("weight", 1.0)
    return weights


def record_shares(
    privacy: JsonObject | None, rounds: Sequence[JsonObject], metrics: JsonObject
) -> tuple[dict[str, float], bool]:
    """Share of each label among the records, and whether it is exact; without a source, none.

    Exact ones are a simulation's. A method that asks for them has noised ones in its rounds; where its answers carry no
    noise they are counts of private records, and are left alone.
    """
    if privacy is None:
        return {}, False
    if privacy["simulation"] and (exact := metrics.get("label_shares", {}).get("records")):
        return exact, True
    if math.isinf(float(privacy["epsilon"])):
        return {}, False
    released = [entry.get("shares") or entry.get("metadata", {}).get("labels") for entry in rounds]
    return next((shares for shares in reversed(released) if shares), {}), False


def _number(metrics: JsonObject) -> float | None:
    """Number of all private records; folders of earlier versions have it only beside their scores."""
    counted = finite(metrics["label_shares"].get("count"))
    return counted if counted is not None else finite((metrics.get("real_private") or {}).get("records"))


def _words(texts: Sequence[JsonObject]) -> dict[str, list[int]]:
    lengths: dict[str, list[int]] = {}
    for row in texts:
        lengths.setdefault(str(row["label"]), []).append(len(row["text"].split()))
    return lengths
