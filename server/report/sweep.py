"""Comparison of several runs: a table, curves over epsilon, parties and rounds, and all figures side by side."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from server.metrics.intervals import over_seeds
from server.report import plots
from server.report.write import render, replace

_AXES = {
    "epsilon": ("privacy.epsilon", "ε", "Accuracy by ε"),
    "parties": ("federation.parties", "parties", "Accuracy by number of parties"),
}
"""Field of `Run` to its setting, the name of the axis, and the title of the plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep.

    Attributes:
        folder: Name of the run's folder within the folder of the sweep.
        row: Name of the table row.
        error: Reason why there is no result; None if there is one.
        method: Name of the method.
        parties: L, the number of parties.
        accuracy: Accuracy of the small model, 0 to 1; None without held-out texts.
        epsilon: Epsilon of the privacy statement.
        unprotected: Whether there is no guarantee.
        traffic: Mean bytes to and from a party for each answer, keys included; None if not measured.
        fid: FID after each round; None if not measured.
        tokens: Tokens read and written by all models.
        seconds: Wall time.
        figures: All measured figures, by name.
        figures_of_records: Names of the figures that are computed from private records.
        weaknesses: What is poor about its results, and what to change.
        seed: Experiment seed: runs of different rows with the same seed are a pair.
    """

    folder: str
    row: str
    seed: int | None = None
    error: str | None = None
    method: str = ""
    parties: int | None = None
    accuracy: float | None = None
    epsilon: float | None = None
    unprotected: bool = False
    traffic: tuple[float, float] | None = None
    fid: tuple[float | None, ...] = ()
    tokens: int | None = None
    seconds: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    figures_of_records: frozenset[str] = frozenset()
    weaknesses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """Results of one row; rows of the paper that no run reproduces have no runs.

    Attributes:
        row: Name of the row.
        runs: Runs with a result.
        failed: Number of runs without a result.
        paper: The paper's figures by data set.
        against: By the short name of another row, the paired differences from it; see `paired`.
    """

    row: str
    runs: tuple[Run, ...] = ()
    failed: int = 0
    paper: Mapping[str, float] = field(default_factory=dict)
    against: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def accuracies(self) -> tuple[float, ...]:
        """Accuracies of the runs with held-out texts, 0 to 1."""
        return tuple(run.accuracy for run in self.runs if run.accuracy is not None)

    @property
    def mean(self) -> float | None:
        """Mean of the accuracies."""
        return mean(self.accuracies)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation of the accuracies; None for fewer than two."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Distinct values of epsilon among the runs."""
        return tuple(dict.fromkeys(run.epsilon for run in self.runs if run.epsilon is not None))

    @property
    def traffic(self) -> tuple[float, float] | None:
        """Mean bytes to and from a party for each answer."""
        pairs = [run.traffic for run in self.runs if run.traffic is not None]
        return (statistics.fmean(to for to, _ in pairs), statistics.fmean(back for _, back in pairs)) if pairs else None

    @property
    def fid(self) -> tuple[float | None, ...]:
        """Mean FID by round, over the runs that reached the round."""
        rounds = max((len(run.fid) for run in self.runs), default=0)
        return tuple(mean(run.fid[at] for run in self.runs if at < len(run.fid)) for at in range(rounds))

    @property
    def figures(self) -> dict[str, float]:
        """Mean of each figure over the runs that have it."""
        names = dict.fromkeys(name for run in self.runs for name in run.figures)
        return {name: statistics.fmean(run.figures[name] for run in self.runs if name in run.figures) for name in names}

    def to_dict(self) -> dict[str, object]:
        """JSON-ready form."""
        return {
            "row": self.row,
            "runs": len(self.runs),
            "failed": self.failed,
            "methods": sorted({run.method for run in self.runs}),
            "parties": sorted({run.parties for run in self.runs if run.parties is not None}),
            "accuracies": self.accuracies,
            "mean": self.mean,
            "deviation": self.deviation,
            "epsilons": self.epsilons,
            "unprotected": any(run.unprotected for run in self.runs),
            "traffic": self.traffic,
            "fid": self.fid,
            "tokens": mean(run.tokens for run in self.runs),
            "seconds": mean(run.seconds for run in self.runs),
            "figures": self.figures,
            "paper": self.paper,
            "against": {
                name: {"differences": gaps, "interval": over_seeds(gaps)} for name, gaps in self.against.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows, in the experiment's order or that of the runs.

    Attributes:
        title: Title of the table.
        rows: Rows of the table.
        runs: All runs, including failed ones.
        traffic: Whether to show the traffic.
        columns: Additional figures to show, by name, such as "fidelity: mauve".
        difference: Name of the figure of which rows show their difference from others.
    """

    title: str
    rows: tuple[TableRow, ...]
    runs: tuple[Run, ...]
    traffic: bool = False
    columns: tuple[str, ...] = ()
    difference: str = "accuracy"

    @property
    def failures(self) -> dict[str, str]:
        """Folder and reason of each failed run."""
        return {run.folder: run.error for run in self.runs if run.error is not None}

    def to_dict(self) -> dict[str, object]:
        """JSON-ready form."""
        rows = [row.to_dict() for row in self.rows]
        return {"title": self.title, "rows": rows, "runs": len(self.runs), "failures": self.failures}


def paired(runs: Sequence[Run], others: Sequence[Run], figure: str) -> tuple[float, ...]:
    """Differences of a figure between runs with the same seed, in the order of the seeds.

    Seeds that either row lacks are left out, and so are those with several runs in a row: nothing pairs them.

    Args:
        runs: Runs of one row.
        others: Runs of the row that is subtracted.
        figure: Name of a figure, or "accuracy".
    """
    mine, theirs = _by_seed(runs, figure), _by_seed(others, figure)
    return tuple(mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys()))


def _by_seed(runs: Sequence[Run], figure: str) -> dict[int, float]:
    seeds = Counter(run.seed for run in runs)
    values = {run.seed: run.accuracy if figure == "accuracy" else run.figures.get(figure) for run in runs}
    return {
        seed: value for seed, value in values.items() if seed is not None and value is not None and seeds[seed] == 1
    }


def write_comparison(folder: Path, table: Table) -> Path:
    """Write `report.html` of a sweep into its folder, with links to the pages of its runs."""
    drawings = [_accuracy(table.runs, axis) for axis in _AXES]
    drawings.append(_fid(table.rows))
    page = render(
        "comparison.html",
        table=table,
        rows=[row.to_dict() for row in table.rows],
        plots=[plot for plot in drawings if plot is not None],
        figures=_side_by_side(table.rows),
        marked={name for run in table.runs for name in run.figures_of_records},
        data_sets=list(dict.fromkeys(name for row in table.rows for name in row.paper)),
        has_page={run.folder: (folder / run.folder / "report.html").is_file() for run in table.runs},
    )
    return replace(folder / "report.html", page)


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are not None; None without any."""
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else None


def _accuracy(runs: Sequence[Run], axis: str) -> plots.Lines | None:
    """Mean accuracy along an axis, one line for each row without that setting; None if no line has two points."""
    setting, name, title = _AXES[axis]
    lines: dict[str, dict[float, list[float]]] = {}
    for run in runs:
        place = getattr(run, axis)
        if place is not None and run.accuracy is not None:
            rest = ", ".join(part for part in run.row.split(", ") if not part.startswith(f"{setting}="))
            lines.setdefault(rest or "all runs", {}).setdefault(place, []).append(run.accuracy)
    if all(len(line) < 2 for line in lines.values()):
        return None
    places = sorted({place for line in lines.values() for place in line})
    return plots.lines(
        axis,
        title,
        note="Mean accuracy on real texts of the small model.",
        x_name=name,
        places=[f"{place:g}".replace("inf", "∞") for place in places],
        values={rest: [mean(line.get(place, ())) for place in places] for rest, line in lines.items()},
    )


def _fid(rows: Sequence[TableRow]) -> plots.Lines | None:
    curves = {row.row: row.fid for row in rows if row.fid}
    rounds = max(map(len, curves.values()), default=0)
    return plots.lines(
        "fid",
        "Distance to real texts (FID)",
        note="Mean over the runs of a row, by round. Lower is nearer.",
        x_name="round",
        places=range(1, rounds + 1),
        values={name: [*curve, *[None] * (rounds - len(curve))] for name, curve in curves.items()},
    )


def _side_by_side(rows: Sequence[TableRow]) -> dict[str, list[float | None]]:
    """Mean of each figure in each row that has runs."""
    by_row = [row.figures for row in rows if row.runs]
    names = dict.fromkeys(name for figures in by_row for name in figures)
    return {name: [figures.get(name) for figures in by_row] for name in names}
