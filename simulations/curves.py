"""Table of a figure by round, for each row of a sweep: self-similarity (DPGA-TextSyn, figures 3 and 6), FID, tau.

    python -m simulations.curves SWEEP_FOLDER [--of self_similarity]

Means over the runs of a row that reached the round.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from common.errors import CheckpointError
from server.configuration import load
from server.documents.files import split
from server.documents.rounds import RoundReport


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="curves", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", default="self_similarity", choices=("self_similarity", "fid", "tau"))
    options = parser.parse_args(arguments)
    sys.stdout.write(as_markdown(curves(options.folder, options.of), options.of))


def curves(sweep: Path, of: str) -> dict[str, list[float]]:
    """Mean of a figure by round, for each row of a sweep.

    Raises:
        CheckpointError: The folder contains no run with this figure in its rounds.
    """
    values_by_row: dict[str, dict[int, list[float]]] = {}
    # Hydra numbers the runs: 10 comes after 9.
    for path in sorted(sweep.glob(f"*/{RoundReport.FILE}"), key=lambda path: (len(path.parent.name), path.parent.name)):
        row = load(path.parent).get("row")
        name = row if isinstance(row, str) else ", ".join(row or ()) or "all runs"
        for number, line in enumerate(split(path.read_text(encoding="utf-8"))):
            report = RoundReport.parse(line)
            value = report.fid if of == "fid" else report.figures.get(of)
            if value is not None:
                values_by_row.setdefault(name, {}).setdefault(number, []).append(value)
    if not values_by_row:
        raise CheckpointError("sweep folder", expected=f"runs with {of} in their rounds.jsonl", where=sweep)
    return {name: [statistics.fmean(values) for _, values in sorted(by.items())] for name, by in values_by_row.items()}


def as_markdown(rows: dict[str, list[float]], of: str) -> str:
    """One line for each row, one column for each round, from 1."""
    rounds = max(map(len, rows.values()))
    lines = [[of, *map(str, range(1, rounds + 1))], ["---"] * (rounds + 1)]
    lines += [
        [name, *(f"{value:.3f}" for value in values)] + [""] * (rounds - len(values)) for name, values in rows.items()
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    main()
