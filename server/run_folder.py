"""Reading and writing the files of a run folder."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from common.system.files import write_atomic
from server.domain import Candidate


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically."""
    write_atomic(path, json.dumps(for_json(value), ensure_ascii=False, indent=2).encode())


def read_candidates(folder: Path) -> list[Candidate]:
    """The texts of a run folder; none where there is no `synthetic.jsonl`."""
    path = folder / "synthetic.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [Candidate(**json.loads(line)) for line in lines if line]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines atomically."""
    write_atomic(path, "".join(json.dumps(for_json(row), ensure_ascii=False) + "\n" for row in rows).encode())


def for_json(value: Any) -> Any:  # noqa: ANN401
    """The value as strict JSON has it, the one form for run folders, the report's twin and what commands print.

    An infinity is "inf" or "-inf", what is no number is None, and keys are strings.
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
