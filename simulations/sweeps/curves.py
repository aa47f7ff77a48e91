"""Table of a figure by round, for each row of a sweep: self-similarity (DPGA-TextSyn, figures 3 and 6), FID, tau.

    python -m simulations.sweeps.curves SWEEP_FOLDER [--of self_similarity]

Means over the runs of a row that reached the round.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from common.errors import CheckpointError
from simulations.sweeps.runs import BY_ROUND, rounds_of, runs_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="curves", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", default="self_similarity", choices=BY_ROUND)
    options = parser.parse_args(arguments)
    sys.stdout.write(as_markdown(curves(options.folder, options.of), options.of))


def curves(sweep: Path, of: str) -> pd.DataFrame:
    """Mean of a figure for each row of a sweep, by round: one column for each, from 1.

    Raises:
        CheckpointError: The folder contains no run with this figure in its rounds.
    """
    rounds = rounds_of(sweep, runs_of(sweep)).dropna(subset=of)
    if rounds.empty:
        raise CheckpointError("sweep folder", expected=f"runs with {of} in their rounds.jsonl", where=sweep)
    return rounds.pivot_table(of, "row", "round", sort=False).sort_index(axis="columns")


def as_markdown(means: pd.DataFrame, of: str) -> str:
    """One line for each row, one column for each round."""
    lines = [[of, *map(str, means.columns)], ["---"] * (1 + len(means.columns))]
    lines += [[row, *("" if pd.isna(value) else f"{value:.3f}" for value in line)] for row, line in means.iterrows()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    main()
