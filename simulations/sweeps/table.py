"""The table of a sweep: each row's figures over its runs, the paper's figures, and differences from other rows.

An experiment defines its rows (`experiments.py`). In any other sweep, a row is a combination of overrides, without the
experiment seed. `experiment.columns` names additional figures to show: figures in `metrics.json`, such as
[fidelity.mauve, membership.PPL], without conversion to percent, or `seconds`, the wall-clock time. In a sweep without
an experiment, set `+experiment.columns=[...]`.

A row that names other rows (`against: {WASP: WASP epsilon 4}`) shows its difference from them in
`experiment.difference`, a figure of `metrics.json` or the accuracy: the mean of the differences between runs with the
same experiment seed, with its 95% interval. Data, private records and first texts are the same in such a pair.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from common.validate import suggest_name
from server.metrics.intervals import Interval, interval_over_seeds
from server.prepare.compose import FILE, values
from simulations.sweeps import experiments
from simulations.sweeps.runs import rounds_of, runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """Differences of a figure between two rows of the table.

    Attributes:
        differences: Differences between runs with the same experiment seed, in the order of the seeds.
        interval: 95% interval of their mean; None if there are fewer than two differences.
    """

    differences: tuple[float, ...]
    interval: Interval | None

    @property
    def mean(self) -> float:
        """Mean of the differences; there is at least one."""
        return statistics.fmean(self.differences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The results of one row; a row with only the paper's figures has no runs.

    Attributes:
        row: Name of the row.
        runs: Number of runs with a result.
        failed: Number of runs without a result.
        methods: Names of the runs' methods.
        parties: Numbers of parties in the runs.
        accuracies: Accuracies of the runs with held-out texts, 0 to 1.
        mean: Mean of the accuracies; None if there are no accuracies.
        deviation: Sample standard deviation of the accuracies; None if there are fewer than two.
        epsilons: Distinct values of epsilon of the runs.
        unprotected: Whether any run has no guarantee.
        traffic: Mean bytes to and from a party per answer; None if they were not measured.
        fid: Mean FID by round, over the runs that reached the round.
        tokens: Mean number of tokens read and written by all models.
        seconds: Mean wall-clock time.
        figures: Mean of each figure over the runs that have the figure.
        deviations: Sample standard deviation of each figure that at least two runs have.
        paper: The paper's figures, keyed by data set.
        against: Difference from each other row that the row names, keyed by the short name that it gives that row.
    """

    row: str
    runs: int
    failed: int
    methods: tuple[str, ...]
    parties: tuple[int, ...]
    accuracies: tuple[float, ...]
    mean: float | None
    deviation: float | None
    epsilons: tuple[float, ...]
    unprotected: bool
    traffic: tuple[float, float] | None
    fid: tuple[float | None, ...]
    tokens: float | None
    seconds: float | None
    figures: Mapping[str, float]
    deviations: Mapping[str, float]
    paper: Mapping[str, float]
    against: Mapping[str, RowDifference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table of a sweep, with its rows in the order of the experiment or of the runs.

    Attributes:
        title: Title of the table.
        rows: Rows of the table.
        runs: All runs, including failed ones, as returned by `runs_of`.
        traffic: Whether to show the bytes to and from a party.
        columns: Additional figures to show, by name, such as "fidelity: mauve".
        difference: Name of the figure for which differences from other rows are shown.
    """

    title: str
    rows: tuple[Row, ...]
    runs: pd.DataFrame
    traffic: bool = False
    columns: tuple[str, ...] = ()
    difference: str = "accuracy"

    @property
    def failures(self) -> dict[str, str]:
        """Reason for the failure of each failed run, keyed by folder name."""
        return dict(self.runs["error"].dropna())

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Data sets for which the paper has figures."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.paper))

    @property
    def unknown_columns(self) -> dict[str, str | None]:
        """Advice on each column whose figure no run has, such as a misspelt one; keyed by column."""
        figures = {name for row in self.rows for name in row.figures}
        return {name: suggest_name(name, figures) for name in self.columns if figures and name not in figures}

    def to_dict(self) -> dict[str, object]:
        """Return the title, the rows, the number of runs and the failures as a dictionary for `write_json`."""
        return {"title": self.title, "rows": self.rows, "runs": len(self.runs), "failures": self.failures}


def read_table(folder: Path) -> Table:
    """Return the table of a sweep, read from its run folders.

    Raises:
        CheckpointError: The folder contains no runs.
    """
    runs = runs_of(folder)
    rounds = rounds_of(folder, runs[runs["error"].isna()])
    experiment: Any = values(folder / runs.index[0] / FILE).get("experiment") or {}
    planned = experiments.experiment_rows(experiment)
    data, difference = experiment.get("data", ()), _column(experiment.get("difference", "accuracy"))
    return Table(
        title=experiment.get("title", f"Sweep {folder.name}"),
        rows=tuple(
            _row(name, runs, rounds, planned.get(name, {}), data=data, difference=difference)
            for name in dict.fromkeys((*planned, *runs["row"]))
        ),
        runs=runs,
        traffic=experiment.get("traffic", False),
        columns=tuple(map(_column, experiment.get("columns", []))),
        difference=difference,
    )


def _row(
    name: str,
    runs: pd.DataFrame,
    rounds: pd.DataFrame,
    planned: Mapping[str, Any],
    *,
    data: Sequence[str],
    difference: str,
) -> Row:
    done = runs[(runs["row"] == name) & runs["error"].isna()]
    figures = pd.DataFrame(list(done["figures"]), dtype="float64")
    traffic = done[["bytes_to_party", "bytes_from_party"]].mean()
    mine = _by_seed(runs, name, difference)
    others = {short: _by_seed(runs, other, difference) for short, other in planned.get("against", {}).items()}
    return Row(
        row=name,
        runs=len(done),
        failed=int((runs["row"] == name).sum()) - len(done),
        methods=tuple(sorted(done["method"].dropna().unique())),
        parties=tuple(map(int, sorted(done["parties"].dropna().unique()))),
        accuracies=tuple(done["accuracy"].dropna().tolist()),
        mean=_mean(done["accuracy"]),
        deviation=_deviation(done["accuracy"]),
        epsilons=tuple(done["epsilon"].dropna().unique().tolist()),
        unprotected=bool(done["unprotected"].any()),
        traffic=None if traffic.isna().any() else tuple(traffic.tolist()),
        fid=tuple(_mean(values) for _, values in rounds[rounds["row"] == name].groupby("round")["fid"]),
        tokens=_mean(done["tokens"]),
        seconds=_mean(done["seconds"]),
        figures={str(figure): mean for figure in figures if (mean := _mean(figures[figure])) is not None},
        deviations={str(figure): spread for figure in figures if (spread := _deviation(figures[figure])) is not None},
        paper=dict(zip(data, planned.get("paper", ()), strict=False)),
        against={short: paired_differences(mine, theirs) for short, theirs in others.items()},
    )


def _by_seed(runs: pd.DataFrame, row: str, figure: str) -> Mapping[int, float]:
    """Return a figure for each of a row's runs, keyed by seed; omit runs that share a seed, which cannot be paired."""
    mine = runs[(runs["row"] == row) & runs["error"].isna() & runs["seed"].notna()]
    mine = mine[~mine["seed"].duplicated(keep=False)].set_index("seed")
    column = mine["accuracy"] if figure == "accuracy" else mine["figures"].map(lambda figures: figures.get(figure))
    return dict(column.dropna())


def paired_differences(mine: Mapping[Any, float], theirs: Mapping[Any, float]) -> RowDifference:
    """Return `mine` minus `theirs` for each key that is in both, in the order of the keys."""
    differences = tuple(mine[key] - theirs[key] for key in sorted(mine.keys() & theirs.keys()))
    return RowDifference(differences=differences, interval=interval_over_seeds(differences))


def _mean(values: pd.Series) -> float | None:
    """Return the mean of the values that are not missing; None if all values are missing."""
    there = values.dropna()
    return None if there.empty else statistics.fmean(there)


def _deviation(values: pd.Series) -> float | None:
    """Return the sample standard deviation of the values that are not missing; None if there are fewer than two."""
    there = values.dropna()
    return None if len(there) < 2 else statistics.stdev(there)


def _column(name: str) -> str:
    """Return the report's name for a figure in `metrics.json`: "fidelity.fid" becomes "fidelity: fid"."""
    return name.replace(".", ": ").replace("_", " ")
