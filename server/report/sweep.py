"""Several runs, compared: a table of rows, curves over epsilon, parties and rounds, and every figure side by side."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from server.report import plots
from server.report.write import render, replace

_AXES = {
    "epsilon": ("privacy.epsilon", "ε", "Accuracy by ε"),
    "parties": ("federation.parties", "parties", "Accuracy by number of parties"),
}
"""Of a run: the setting that names it in a row, the axis, and the plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep.

    Attributes:
        folder: Its name in the sweep's folder.
        row: Which row it belongs to.
        error: Why there is no result; None where there is one.
        method: Its name.
        parties: L.
        accuracy: Of the small model, 0 to 1; None where there are no held-out texts.
        epsilon: What its privacy statement says.
        unprotected: Whether nothing is guaranteed.
        traffic: Mean bytes to and from a party for each answer, keys and all; None where it was not measured.
        fid: After each round; None where it was not measured.
        tokens: Read and written by all models.
        seconds: Wall time.
        figures: Everything measured, by name.
    """

    folder: str
    row: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one row's runs came to; the paper's rows that nothing here runs have no runs.

    Attributes:
        row: Its name.
        runs: Those that ended with a result.
        failed: How many did not.
        paper: The paper's figures by data set.
    """

    row: str
    runs: tuple[Run, ...] = ()
    failed: int = 0
    paper: Mapping[str, float] = field(default_factory=dict)

    @property
    def accuracies(self) -> tuple[float, ...]:
        """Of the runs with held-out texts, 0 to 1."""
        return tuple(run.accuracy for run in self.runs if run.accuracy is not None)

    @property
    def mean(self) -> float | None:
        """Of the accuracies."""
        return mean(self.accuracies)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation of the accuracies; None for fewer than two."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Different values among the runs."""
        return tuple(dict.fromkeys(run.epsilon for run in self.runs if run.epsilon is not None))

    @property
    def traffic(self) -> tuple[float, float] | None:
        """Mean bytes to and from a party for each answer."""
        each = [run.traffic for run in self.runs if run.traffic is not None]
        return (statistics.fmean(to for to, _ in each), statistics.fmean(back for _, back in each)) if each else None

    @property
    def fid(self) -> tuple[float | None, ...]:
        """Mean by round, over the runs that came so far."""
        rounds = max((len(run.fid) for run in self.runs), default=0)
        return tuple(mean(run.fid[at] for run in self.runs if at < len(run.fid)) for at in range(rounds))

    @property
    def figures(self) -> dict[str, float]:
        """Mean of everything measured, over the runs that have it."""
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
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows, in the experiment's order or that of the runs.

    Attributes:
        title: What is compared.
        rows: One each.
        runs: All of them, failed ones included.
        traffic: Whether to show it.
        columns: Figures to show besides, by name, such as "fidelity: mauve".
    """

    title: str
    rows: tuple[Row, ...]
    runs: tuple[Run, ...]
    traffic: bool = False
    columns: tuple[str, ...] = ()

    @property
    def failures(self) -> dict[str, str]:
        """Folder and reason of each failed run."""
        return {run.folder: run.error for run in self.runs if run.error is not None}

    def to_dict(self) -> dict[str, object]:
        """JSON-ready form."""
        rows = [row.to_dict() for row in self.rows]
        return {"title": self.title, "rows": rows, "runs": len(self.runs), "failures": self.failures}


def write_comparison(folder: Path, table: Table) -> Path:
    """Write `report.html` of a sweep into its folder; the pages of its runs are reached from it."""
    drawn = [_accuracy(table.runs, axis) for axis in _AXES]
    drawn.append(_fid(table.rows))
    page = render(
        "comparison",
        table=table,
        rows=[row.to_dict() for row in table.rows],
        plots=[plot for plot in drawn if plot is not None],
        figures=_side_by_side(table.rows),
        data_sets=list(dict.fromkeys(name for row in table.rows for name in row.paper)),
        has_page={run.folder: (folder / run.folder / "report.html").is_file() for run in table.runs},
    )
    return replace(folder / "report.html", page)


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that there are; None without any."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _accuracy(runs: Sequence[Run], axis: str) -> plots.Lines | None:
    """Mean accuracy over what an axis has; a line for each row but for that setting; None where nothing is joined."""
    setting, name, title = _AXES[axis]
    found: dict[str, dict[float, list[float]]] = {}
    for run in runs:
        place = getattr(run, axis)
        if place is not None and run.accuracy is not None:
            rest = ", ".join(part for part in run.row.split(", ") if not part.startswith(f"{setting}="))
            found.setdefault(rest or "all runs", {}).setdefault(place, []).append(run.accuracy)
    if all(len(line) < 2 for line in found.values()):
        return None
    places = sorted({place for line in found.values() for place in line})
    return plots.lines(
        axis,
        title,
        note="Mean accuracy on real texts of the small model.",
        x_name=name,
        places=[f"{place:g}".replace("inf", "∞") for place in places],
        values={rest: [mean(line.get(place, ())) for place in places] for rest, line in found.items()},
    )


def _fid(rows: Sequence[Row]) -> plots.Lines | None:
    curves = {row.row: row.fid for row in rows if row.fid}
    rounds = max(map(len, curves.values()), default=0)
    return plots.lines(
        "fid",
        "Distance to real texts (FID)",
        note="Mean over the runs of a row, by round. Lower is nearer.",
        x_name="round",
        places=range(rounds),
        values={name: [*curve, *[None] * (rounds - len(curve))] for name, curve in curves.items()},
    )


def _side_by_side(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """By figure, its mean in each row that has runs."""
    measured = [row.figures for row in rows if row.runs]
    names = dict.fromkeys(name for figures in measured for name in figures)
    return {name: [figures.get(name) for figures in measured] for name in names}
