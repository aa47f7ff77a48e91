"""Run folders as data frames: a row for each run of a sweep, or for each round of each run.

`read_run` and `read_rounds` alone know the files of a run folder. The runs of a sweep are in the order in which Hydra
numbers them; each belongs to a row of the sweep's table: the experiment's, or else the overrides that vary.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from common.errors import CheckpointError
from server.configuration import load
from server.failure import FAILURE
from server.report import metric_groups, read_weaknesses
from server.report.guarantee import effective_epsilon, unprotected
from server.report.reading import read_lines

FACTS = {
    "row": "object",
    "seed": "Int64",
    "error": "object",
    "method": "object",
    "parties": "Int64",
    "accuracy": "float64",
    "epsilon": "float64",
    "unprotected": "bool",
    "bytes_to_party": "float64",
    "bytes_from_party": "float64",
    "tokens": "float64",
    "seconds": "float64",
    "weaknesses": "object",
    "figures": "object",
    "figures_of_records": "object",
}
"""Columns of `runs_of`, with their types."""

BY_ROUND = ("fid", "self_similarity", "tau")
"""Figures of a round that a table can show."""


def runs_of(sweep: Path) -> pd.DataFrame:
    """The runs of a sweep by the names of their folders, with the columns `FACTS`; failed runs included.

    `row` is the row of the table and `seed` the experiment seed, which pairs runs of different rows. The other columns
    are those of `read_run`; of a run that failed they are missing.

    Raises:
        CheckpointError: The folder contains no run.
    """
    configs = {path.parent: load(path.parent) for path in sweep.glob("*/config.yaml")}
    if not configs:
        raise CheckpointError("sweep folder", expected="folders of runs, each with a config.yaml", where=sweep)
    folders = sorted(configs, key=lambda path: (len(path.name), path.name))  # 10 comes after 9
    names = _names([configs[path].get("row") for path in folders])
    facts = [
        {"row": name, "seed": configs[path].get("experiment_seed"), **read_run(path)}
        for path, name in zip(folders, names, strict=True)
    ]
    return pd.DataFrame(facts, columns=list(FACTS), index=[path.name for path in folders]).astype(FACTS)


def rounds_of(sweep: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Each round of these runs: the columns `row`, `round` (from 1) and `BY_ROUND`."""
    rounds = [
        {"row": row, "round": number, **line}
        for name, row in runs["row"].items()
        for number, line in enumerate(read_rounds(sweep / name), start=1)
    ]
    return pd.DataFrame(rounds, columns=["folder", "row", "round", *BY_ROUND]).astype(
        dict.fromkeys(BY_ROUND, "float64")
    )


def read_run(folder: Path) -> dict[str, Any]:
    """What one run folder says of its run; of a run without a result, the reason alone, as `error`.

    Bytes are means for each party and answer, keys included. `accuracy`, 0 to 1, is that of the small model. `tokens`
    were read and written by all models; `seconds` is wall time. `figures` has every measured figure by its name in the
    report, and `figures_of_records` the names of those that were computed from private records.
    """
    ended = _json(folder / "run.json")
    if ended.get("status") != "complete":
        error = folder / FAILURE
        why = error.read_text(encoding="utf-8").strip() if error.exists() else "it did not reach its end"
        return {"error": why, "unprotected": False}
    privacy, metrics, traffic = (_json(folder / f"{name}.json") for name in ("privacy", "metrics", "traffic"))
    scores = metrics.get("synthetic") or metrics.get("real_private") or {}
    facts: dict[str, Any] = {name: ended[name] for name in ("method", "parties", "seconds") if name in ended}
    if answers := privacy["spent"]["queries_asked"] * traffic.get("parties", 0):
        facts["bytes_to_party"] = traffic["bytes_to_parties"] / answers
        facts["bytes_from_party"] = traffic["bytes_from_parties"] / answers
    return facts | {
        "accuracy": scores.get("accuracy"),
        "epsilon": effective_epsilon(privacy),
        "unprotected": unprotected(privacy),
        "tokens": sum(line["tokens"][kind] for line in _lines(folder) for kind in ("input", "output")),
        "weaknesses": tuple(map(str, read_weaknesses(folder))),
        "figures": metric_groups.by_name(metrics) | ({"seconds": ended["seconds"]} if "seconds" in ended else {}),
        "figures_of_records": metric_groups.private_names(metrics),
    }


def read_rounds(folder: Path) -> Iterator[dict[str, float | None]]:
    """The figures `BY_ROUND` of each round of a run, in order; None where one was not measured."""
    return ({name: line.get(name) for name in BY_ROUND} for line in _lines(folder))


def _json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return content


def _lines(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "rounds.jsonl", dict, [])


def _names(rows: Sequence[Any]) -> list[str]:
    """Row of each run: the row of the experiment, or the overrides that are not common to all runs."""
    lists = [list(row) for row in rows if row is not None and not isinstance(row, str)]
    shared = set.intersection(*map(set, lists)) if lists else set()
    return [
        row
        if isinstance(row, str)
        else ", ".join(override for override in row or () if override not in shared) or "all runs"
        for row in rows
    ]
