"""All files of a run folder, read once, in JSON's types: the content of `report.json` and of the page."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from server.evaluation.projection import PRIVATE, SYNTHETIC
from server.planning.not_covered import not_covered
from server.planning.statement import statement
from server.report import labels, metric_groups, utility, votes, weaknesses
from server.report.guarantee import Kind, guarantee, guarantee_kind
from server.report.reading import JsonObject, as_object, read, read_lines
from server.report.verdict import verdict
from server.run_folder import for_json, from_round_1

_PRIVACY_FIELDS = (
    "epsilon",
    "delta",
    "planned_epsilon",
    "calibration",
    "adjacency",
    "mechanism",
    "aggregation",
    "parties",
    "max_dropouts",
    "assumed_colluders",
    "against_colluders",
    "queries",
    "spent",
    "simulation",
)
_QUERY_FIELDS = (
    "name",
    "kind",
    "times",
    "mechanism",
    "summed",
    "grid",
    "sensitivity_l1",
    "sensitivity_l2",
    "scale",
    "epsilon_alone",
)

_NO_LABELS: dict[str, Any] = {"records": None, "simulation_only": False, "rows": []}
_NO_UTILITY: dict[str, Any] = {"rows": [], "notes": []}

Places = Mapping[str, Sequence[Sequence[float]]]
"""Points on the map, by label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Content of a report.

    Attributes:
        facts: `report.json`.
        texts: The lines of `synthetic.jsonl`.
        synthetic: Points of these texts on the map; empty without a map.
        simulated: Points of `map_private.json`, which only a simulation writes; always empty in a deployment.
    """

    facts: dict[str, Any]
    texts: list[JsonObject] = field(repr=False)
    synthetic: Places = field(repr=False)
    simulated: Places = field(repr=False)


def gather(run: Path) -> Gathered:
    """Read a run folder, complete or partial; files that cannot be read are listed in "problems"."""
    problems: list[str] = []
    ended = read(run / "run.json", _ended, problems)
    privacy = read(run / "privacy.json", _privacy, problems)
    rounds = read_lines(run / "rounds.jsonl", _round, problems)
    texts = read_lines(run / "synthetic.jsonl", _text, problems)
    rounds, texts = from_round_1(rounds, texts)
    metrics = read(run / "metrics.json", lambda text: metric_groups.groups(as_object(text)), problems)
    measured = read(run / "metrics.json", as_object, []) or {}
    config = read(run / "config.yaml", str, problems)
    synthetic, simulated = _map(run, privacy, texts, problems)
    vote_distributions = []
    if privacy is not None:
        vote_distributions = read(run / "rounds.jsonl", lambda _: votes.distributions(run, privacy, rounds), []) or []
    promised = guarantee(privacy)
    facts: dict[str, Any] = {
        "run": ended,
        "guarantee": asdict(promised),
        "partial": _why_partial(ended, privacy),
        "problems": problems,
        "warning": _warning(privacy),
        "privacy": privacy,
        "released": {
            "texts": len(texts),
            **{part: dict(Counter(str(row[part]) for row in texts)) for part in ("label", "model", "round")},
            "words": votes.histogram([len(row["text"].split()) for row in texts], whole=True) if texts else None,
        },
        "metrics": metrics or [],
        "rounds": rounds,
        "cost": _cost(ended, rounds),
        "votes": vote_distributions,
        "map": {
            source: {label: len(points) for label, points in places.items()}
            for source, places in (("synthetic", synthetic), ("private", simulated))
        },
        "config": config,
    }
    # A damaged figure must not keep the page from being written: its file is named among the problems, or its part left
    # out.
    facts["weaknesses"] = read(run / "run.json", lambda _: weaknesses.weaknesses(facts, measured, texts), []) or []
    facts["labels"] = read(run / "synthetic.jsonl", lambda _: labels.by_label(facts, measured, texts), []) or _NO_LABELS
    facts["utility"] = read(run / "metrics.json", lambda _: utility.utility(measured), []) or _NO_UTILITY
    facts["verdict"] = verdict(promised, measured, len(texts), facts["weaknesses"])
    return Gathered(facts=facts, texts=texts, synthetic=synthetic, simulated=simulated)


def _ended(text: str) -> dict[str, Any]:
    ended = _having(as_object(text), "status", "method", "task", "parties", "seconds")
    ended = {"versions": {}, "reason": None, "warnings": {}, "labels": {}} | ended
    if isinstance(ended["warnings"], list):  # of an earlier version, which named no queries
        ended["warnings"] = {warning: warning for warning in ended["warnings"]}
    return ended | {"seconds": float(ended["seconds"])}


def _privacy(text: str) -> dict[str, Any]:
    privacy = _having(as_object(text), *_PRIVACY_FIELDS)
    for query in privacy["queries"]:
        _having(query, *_QUERY_FIELDS)
    _having(privacy["spent"], "epsilon", "queries_asked", "queries_planned")
    guarantee(privacy)  # has the fields that it needs
    return {"statement": statement(privacy), "not_covered": not_covered(privacy), "earlier": None} | privacy


def _round(line: Any) -> JsonObject:  # noqa: ANN401 — from JSON
    """A line of `rounds.jsonl`, with numbers wherever the page computes sums."""
    required = ("round", "requested", "generated", "lost", "candidates", "tokens", "calls", "seconds")
    entry = {"queries": [], "notes": [], "fid": None, "paid": {}} | _having(line, *required)
    entry["seconds"] = dict.fromkeys(("generate", "embed", "ask"), 0.0) | entry["seconds"]
    for part in ("requested", "generated", "lost", "tokens", "seconds"):
        sum(entry[part].values(), entry["candidates"] + entry["calls"])
    _having(entry["tokens"], "input", "output")
    sum(paid["cost"] or 0 for paid in entry["paid"].values())
    for query in entry["queries"]:
        _having(query, "index", "name", "mechanism", "scale", "survivors", "parties")
    return entry


def _text(line: Any) -> JsonObject:  # noqa: ANN401
    row = _having(line, "text", "label", "model", "round")
    if not isinstance(row["text"], str):
        raise TypeError("text")
    return row


def _having(value: Any, *fields: str) -> dict[str, Any]:  # noqa: ANN401
    """The value, if it is a mapping with these fields.

    Raises:
        KeyError, TypeError: A field is missing, or the value is not a mapping.
    """
    if not isinstance(value, dict):
        raise TypeError("not an object")
    for name in fields:
        value[name]
    return value


def _map(
    run: Path, privacy: JsonObject | None, texts: Sequence[JsonObject], problems: list[str]
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Points by label, synthetic and private. Private points are read only in a simulation, even if the file exists."""
    points = read(run / SYNTHETIC, lambda text: _pairs(as_object(text)["points"]), problems, needed=False) or []
    synthetic: dict[str, list[Any]] = {}
    if points and len(points) != len(texts):
        problems.append(f"{SYNTHETIC} does not belong to the texts in synthetic.jsonl")
    elif points:
        for row, point in zip(texts, points, strict=True):
            synthetic.setdefault(str(row["label"]), []).append(point)
    if privacy is None or not privacy["simulation"]:
        if (run / PRIVATE).exists():
            problems.append(f"{PRIVATE} was not read: private records are drawn only in simulations")
        return synthetic, {}
    simulated = read(run / PRIVATE, lambda text: _by_label(as_object(text)["points"]), problems, needed=False)
    return synthetic, (simulated or {}) if synthetic else {}


def _by_label(points: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {label: _pairs(places) for label, places in points.items()}


def _pairs(points: Sequence[Any]) -> list[list[float]]:
    pairs = [[float(x), float(y)] for x, y in points]
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError("a point is not finite")
    return pairs


def _why_partial(ended: JsonObject | None, privacy: JsonObject | None) -> str | None:
    """Sentences on why a run is partial; None for a complete one."""
    if ended is not None and ended["status"] == "complete":
        return None
    reason = "The run did not reach its end." if ended is None else "The run stopped before its end."
    reason += f" {ended['reason']}" if ended and ended["reason"] else ""
    if privacy is not None:
        spent = privacy["spent"]
        reason += f" {spent['queries_asked']} of {spent['queries_planned']} planned private queries were asked."
    return reason


def _warning(privacy: JsonObject | None) -> str | None:
    """Warning at the top of the page; None if the texts have a guarantee, or need none."""
    if privacy is None:
        return "No guarantee: no readable privacy statement was found. Treat these texts as private data."
    if guarantee_kind(privacy) is not Kind.NONE:
        return None
    warning: str = privacy["statement"].split("\n\n")[0]
    return warning


def _cost(ended: JsonObject | None, rounds: Sequence[JsonObject]) -> dict[str, Any]:
    """Model calls, tokens, seconds (wall time of a finished run, else the sum over its rounds), money if known."""
    return {
        "calls": sum(entry["calls"] for entry in rounds),
        "input_tokens": sum(entry["tokens"]["input"] for entry in rounds),
        "cached_tokens": sum(entry["tokens"].get("cached", 0) for entry in rounds),
        "output_tokens": sum(entry["tokens"]["output"] for entry in rounds),
        "seconds": ended["seconds"] if ended else sum(sum(entry["seconds"].values()) for entry in rounds),
        "money": _money(rounds),
    }


def _money(rounds: Sequence[JsonObject]) -> dict[str, float | None]:
    """Cost of all rounds by model, in the currency of the prices; None for a model without a known price."""
    sums: dict[str, float | None] = {}
    for entry in rounds:
        for model, paid in entry["paid"].items():
            before = sums.get(model, 0.0)
            sums[model] = None if paid["cost"] is None or before is None else before + paid["cost"]
    return sums


def as_json(facts: Mapping[str, Any]) -> str:
    """`report.json`."""
    return json.dumps(for_json(facts), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
