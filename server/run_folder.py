"""The files of a run folder, and how they are written and read.

config.yaml       the resolved configuration            (written by the entry point)
synthetic.jsonl   text, label, model, round, weight (1 unless the method weighs its texts)
rounds.jsonl      one line a round, from 1: counts, weights, FID, seconds, tokens
privacy.json      the guarantee and what it does not cover
run.json          identity, status ("partial" or "complete"), seconds, versions, warnings of queries that are noise
census.json       released numbers that later runs can use without asking    (by a method that has any)
metrics.json      the small model trained on synthetic texts, tested on real ones; the chosen groups of figures
map.json          two coordinates of each synthetic text
report.html       all results on one page; report.json: the same for programs
tensorboard/      figures by round, with `tracking: tensorboard`
state/            what resuming needs
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from common.system.files import write_atomic
from server.domain import Candidate
from server.method import RoundReport, State

VERSIONS = ("caucus", "flwr", "torch", "sentence-transformers", "dp-accounting", "numpy", "cryptography")
"""Packages whose versions are in `run.json`."""


def write_run(folder: Path, state: State[Any], *, privacy: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Write texts and rounds of a state, the facts about privacy, and `run.json`: the summary with versions."""
    first = first_round({candidate.round for candidate in state.candidates}, state.round)
    texts = [asdict(candidate) | {"round": candidate.round + first} for candidate in state.candidates]
    write_lines(folder / "synthetic.jsonl", texts)
    write_lines(folder / "rounds.jsonl", map(line_of, state.rounds))
    write_json(folder / "privacy.json", privacy)
    write_json(folder / "run.json", {**summary, "versions": {name: version(name) for name in VERSIONS}})


def first_round(rounds: Collection[int], done: int) -> int:
    """What people read in place of 0 in the program, where rounds are counted from 0.

    Methods that vary texts after the votes of a round number the new ones by the rounds done: their 0 is before all.
    """
    return 0 if done in rounds else 1


_Lines = Sequence[Mapping[str, Any]]


def from_round_1(rounds: _Lines, texts: _Lines) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Lines of `rounds.jsonl` and `synthetic.jsonl`, whose rounds an earlier version counted from 0, as of this one."""
    if not rounds or rounds[0]["round"] != 0:
        return list(rounds), list(texts)
    first = first_round({row["round"] for row in texts}, len(rounds))
    return (
        [{**entry, "round": entry["round"] + 1} for entry in rounds],
        [{**row, "round": row["round"] + first} for row in texts],
    )


def line_of(report: RoundReport) -> dict[str, Any]:
    """A round as people read it: the first is 1."""
    return report.to_dict() | {"round": report.round + 1}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically."""
    write_atomic(path, json.dumps(for_json(value), ensure_ascii=False, indent=2).encode())


def read_candidates(folder: Path) -> list[Candidate]:
    """Read the texts of a run folder; an empty list if it has no `synthetic.jsonl`."""
    path = folder / "synthetic.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [Candidate(**json.loads(line)) for line in lines if line]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines atomically."""
    write_atomic(path, "".join(json.dumps(for_json(row), ensure_ascii=False) + "\n" for row in rows).encode())


def for_json(value: Any) -> Any:  # noqa: ANN401 — any JSON value
    """The value in strict JSON, the one form for run folders, `report.json` and the output of commands.

    An infinity is "inf" or "-inf", NaN is None, and keys are strings.
    """
    match value:
        case float() if not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        case Mapping():
            return {str(key): for_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [for_json(inner) for inner in value]
        case _:
            return value
