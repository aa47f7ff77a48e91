"""Results of the runs, stored one per line in `full.jsonl`, or the file of another preset."""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.system.files import write_atomic

FILE = "{}.jsonl"
"""Name of the file with the results of a preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurements:
    """The measurements of a run.

    Attributes:
        key: Key of the run's cell, which is a digest of all of its overrides.
        data: The run's data set.
        seed: The run's experiment seed.
        figures: Figures of `metrics.json`, keyed by dotted name; also "accuracy", "fid" (of the last round) and
            "seconds".
        seconds: Wall-clock time, in seconds.
        error: Reason for the run's failure, in one line; None if the run did not fail.
    """

    key: str
    data: str
    seed: int
    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


def read_results(path: Path) -> dict[str, RunMeasurements]:
    """Return the results, keyed by the key of their cell; if a cell has several results, the last one is returned.

    Raises:
        DataError: A line is not a result.
    """
    results = {}
    known = {attribute.name for attribute in fields(RunMeasurements)}  # earlier versions wrote more
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), start=1):
        try:
            one = RunMeasurements(**{name: value for name, value in json.loads(line).items() if name in known})
        except (AttributeError, ValueError, TypeError) as error:
            got, do = f"another line ({error})", "Delete this line: its run is done again"
            expected = "a run's result in each line"
            raise DataError(path.name, expected=expected, got=got, where=f"{path}:{number}", do=do) from error
        results[one.key] = one
    return results


def append(path: Path, result: RunMeasurements) -> None:
    """Append a result to the file, and flush it to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(_plain(result), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def write_results(path: Path, results: Iterable[RunMeasurements]) -> None:
    """Replace the content of the file with these results, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(_plain(one), ensure_ascii=False) + "\n" for one in results]
    write_atomic(path, "".join(lines).encode())


def with_only(result: RunMeasurements, names: Collection[str]) -> RunMeasurements:
    """Return the result with those of its figures that have these names; a run has ten times as many."""
    return replace(result, figures={name: value for name, value in result.figures.items() if name in names})


def _plain(result: RunMeasurements) -> dict[str, Any]:
    values = asdict(result)
    return values | {"figures": {name: round(value, 6) for name, value in result.figures.items()}}
