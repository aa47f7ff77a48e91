"""Run folders as data frames, with a row for each run of a sweep, or for each round of each run.

Only `read_run` and `read_rounds` read the files of a run folder. The runs of a sweep are in the order in which Hydra
numbers them. Each run belongs to a row of the sweep's table, which is a row of the experiment or, without an
experiment, a combination of the overrides that vary.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from common.errors import CheckpointError
from server.documents.files import read_lines
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary, Traffic
from server.failure import FAILURE
from server.guarantee.case import effective_epsilon, lacks_guarantee
from server.prepare.compose import values
from server.report.quality import read_quality
from server.report.weaknesses import read_weaknesses

TABLE = "table.json"
"""File with the table of a sweep, in the sweep's folder."""
FACTS = {
    "row": "object",
    "seed": "Int64",
    "error": "object",
    "method": "object",
    "parties": "Int64",
    "accuracy": "float64",
    "as_many": "float64",
    "zero_shot": "float64",
    "gain": "object",
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
"""Types of the columns of `runs_of`, keyed by column name."""

BY_ROUND = ("fid", "self_similarity", "tau")
"""Figures for a round that a table can show."""


def runs_of(sweep: Path) -> pd.DataFrame:
    """Return all runs of a sweep, including failed ones, indexed by folder name, with the columns `FACTS`.

    `row` is the row of the table, and `seed` the experiment seed, by which runs of different rows are paired. The other
    columns are those of `read_run`; for a failed run their values are missing.

    Raises:
        CheckpointError: The folder contains no runs.
    """
    configs = {path.parent: values(path) for path in sweep.glob("*/config.yaml")}
    if not configs:
        raise CheckpointError("no folder here has a config.yaml", where=sweep, do="Give the folder of a sweep")
    folders = sorted(configs, key=lambda path: (len(path.name), path.name))  # 10 comes after 9
    names = _names([configs[path].get("row") for path in folders])
    facts = [
        {"row": name, "seed": configs[path].get("experiment_seed"), **read_run(path)}
        for path, name in zip(folders, names, strict=True)
    ]
    return pd.DataFrame(facts, columns=list(FACTS), index=[path.name for path in folders]).astype(FACTS)


def rounds_of(sweep: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with a row for each round of these runs and the columns `row`, `round` (from 1) and `BY_ROUND`."""
    rounds = [
        {"row": row, "round": number, **line}
        for name, row in runs["row"].items()
        for number, line in enumerate(read_rounds(sweep / str(name)), start=1)
    ]
    return pd.DataFrame(rounds, columns=["row", "round", *BY_ROUND]).astype(dict.fromkeys(BY_ROUND, "float64"))


def read_run(folder: Path) -> dict[str, Any]:
    """Return the facts about a run, read from its folder; for a run without a result, only the reason, as `error`.

    Bytes are means per party and answer, including the key exchange. `accuracy`, from 0 to 1, is that of the small
    model. `zero_shot` is its accuracy with texts that the language models wrote without the hospitals, `as_many` that
    with as many synthetic texts, and `gain` is the difference between these two. `tokens` counts the tokens that all
    models read or wrote; `seconds` is wall-clock time. `figures` contains every measured figure, keyed by its name in
    the report, and `figures_of_records` contains the names of the figures that were computed from private records.
    """
    ended = RunSummary.load_if_there(folder)
    if ended is None or not ended.complete:
        error = folder / FAILURE
        reason = error.read_text(encoding="utf-8").strip() if error.exists() else "it did not reach its end"
        return {"error": reason, "unprotected": False}
    privacy, metrics = Privacy.load(folder), Metrics.load(folder)
    traffic = Traffic.load_if_there(folder)
    scored = "synthetic" if metrics.group("synthetic") else "real_private"
    facts: dict[str, Any] = {"method": ended.method, "parties": ended.parties, "seconds": ended.seconds}
    if traffic and (answers := privacy.spent.queries_asked * traffic.parties):
        facts["bytes_to_party"] = traffic.bytes_to_parties / answers
        facts["bytes_from_party"] = traffic.bytes_from_parties / answers
    tokens = [report.tokens for report in _reports(folder)]
    return facts | {
        "accuracy": metrics.figure(scored, "accuracy").value,
        "as_many": metrics.figure("zero_shot", "as_many", "accuracy").value,
        "zero_shot": metrics.figure("zero_shot", "accuracy").value,
        "gain": read_quality(metrics).gain,
        "epsilon": effective_epsilon(privacy),
        "unprotected": lacks_guarantee(privacy),
        "tokens": sum(use.input + use.output for use in tokens),
        "weaknesses": tuple(map(str, read_weaknesses(folder))),
        "figures": metrics.finite | {"seconds": ended.seconds},
        "figures_of_records": frozenset(name for name, figure in metrics.named.items() if figure.simulation_only),
    }


def read_rounds(folder: Path) -> Iterator[dict[str, float | None]]:
    """Yield the figures `BY_ROUND` for each round of a run, in order; None if a figure was not measured."""
    lines = ({**report.figures, "fid": report.fid} for report in _reports(folder))
    return ({name: line.get(name) for name in BY_ROUND} for line in lines)


def _reports(folder: Path) -> list[RoundReport]:
    return read_lines(folder / RoundReport.FILE, RoundReport.from_json, [])


def _names(rows: Sequence[Any]) -> list[str]:
    """Return the name of each run's row: that of the experiment, or the overrides that are not common to all runs."""
    lists = [list(row) for row in rows if row is not None and not isinstance(row, str)]
    shared = set.intersection(*map(set, lists)) if lists else set()
    return [
        row
        if isinstance(row, str)
        else ", ".join(override for override in row or () if override not in shared) or "all runs"
        for row in rows
    ]
