"""Table of a figure by round, for each row of a sweep: self-similarity (DPGA-TextSyn, figures 3 and 6), FID or tau.

    python -m simulations.sweeps.curves SWEEP_FOLDER [--of self_similarity]

The table shows means over the runs of a row that reached the round and, for two or more runs, the 95% interval
(Student's t).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from common.errors import CheckpointError
from common.system.commands import escape_unknown_letters
from server.metrics.intervals import interval_over_seeds
from simulations.sweeps.render import markdown_row
from simulations.sweeps.runs import BY_ROUND, rounds_of, runs_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="curves", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", default="self_similarity", choices=BY_ROUND)
    options = parser.parse_args(arguments)
    escape_unknown_letters()
    sys.stdout.write(as_markdown(curves(options.folder, options.of), options.of))


def curves(sweep: Path, of: str) -> pd.Series:
    """Return tuples of a figure's values, one value per run, indexed by the sweep's row and the round (from 1).

    Raises:
        CheckpointError: The folder contains no run with this figure in its rounds.
    """
    rounds = rounds_of(sweep, runs_of(sweep)).dropna(subset=of)
    if rounds.empty:
        do = "Choose another figure or folder"
        raise CheckpointError(f"no run of the sweep has {of} in its rounds.jsonl", where=sweep, do=do)
    return rounds.groupby(["row", "round"], sort=False)[of].agg(tuple)


def as_markdown(values: pd.Series, of: str) -> str:
    """Return a Markdown table with a line for each row and a column for each round."""
    rounds = sorted(values.index.unique("round"))
    lines = [[of, *map(str, rounds)], ["---"] * (1 + len(rounds))]
    lines += [[row, *(_cell(values.get((row, at), ())) for at in rounds)] for row in values.index.unique("row")]
    return "".join(map(markdown_row, lines))


def _cell(values: Sequence[float]) -> str:
    """Return the mean of the values and its 95% interval, as text; empty if there are no values."""
    if not values:
        return ""
    interval = interval_over_seeds(values)
    return f"{fmean(values):.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


if __name__ == "__main__":
    main()
