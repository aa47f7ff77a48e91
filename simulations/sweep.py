"""One table for a sweep: each row's accuracy over its runs, with the paper's figures beside, failed runs included.

    caucus-simulate +experiment=wasp_table4 method.samples=1000
    caucus-simulate --multirun +experiment=wasp_table4 row=WASP experiment_seed=3,4
    caucus-simulate --multirun privacy.epsilon=1,4,8 experiment_seed=0,1,2
    python -m simulations.sweep SWEEP_FOLDER

A sweep writes its table and a page, `report.html`, when it ends; `python -m` writes them again, after a run was
resumed, and prints the table. An experiment (`configs/experiment/`) names its rows, with the overrides of each and the
figures of the paper. In any other sweep, a row is a combination of overrides, without the experiment seed.
`experiment.columns` names figures of `metrics.json` to show in addition, such as [fidelity.mauve, membership.PPL],
unscaled, not in percent, or `seconds`, the wall time; in a sweep without an experiment `+experiment.columns=[...]`.

A row that names others (`against: {WASP: WASP epsilon 4}`) shows how much higher its `experiment.difference` is than
theirs, a figure of `metrics.json` or the accuracy: the mean of the differences between runs with the same experiment
seed, with its 95 % interval. Data, private records and first texts are the same in such a pair.
"""

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from common.errors import CheckpointError
from server.configuration import load
from server.documents.codec import strict
from server.documents.files import read_lines
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary, Traffic
from server.failure import FAILURE
from server.guarantee.case import effective_epsilon, unprotected
from server.metrics.intervals import over_seeds
from server.report import read_weaknesses
from server.report.sweep import Run, Table, TableRow, paired, write_comparison


def write_table(folder: Path) -> Table:
    """Print the table of a sweep and write it into its folder: `table.md`, `table.json`, and a page, `report.html`.

    Raises:
        CheckpointError: The folder contains no run.
    """
    table = read_table(folder)
    (folder / "table.md").write_text(as_markdown(table), encoding="utf-8")
    plain = json.dumps(strict(table.to_dict()), ensure_ascii=False, indent=2)
    (folder / "table.json").write_text(plain, encoding="utf-8")
    write_comparison(folder, table)
    sys.stdout.write(f"{as_text(table)}\nreport:   {folder / 'report.html'}\ntable:    {folder / 'table.md'}\n")
    return table


def read_table(folder: Path) -> Table:
    """Read all run folders of a sweep."""
    configs = {path.parent: load(path.parent) for path in folder.glob("*/config.yaml")}
    if not configs:
        raise CheckpointError("sweep folder", expected="folders of runs, each with a config.yaml", where=folder)
    # Hydra numbers the runs: 10 comes after 9.
    folders = sorted(configs, key=lambda path: (len(path.name), path.name))
    names = _names([configs[path].get("row") for path in folders])
    runs = [
        read_run(path, name, configs[path].get("experiment_seed")) for path, name in zip(folders, names, strict=True)
    ]
    experiment: Any = OmegaConf.to_container(OmegaConf.create(configs[folders[0]].get("experiment", {})))
    planned, data = experiment.get("rows", {}), experiment.get("data", [])
    difference = _column(experiment.get("difference", "accuracy"))
    return Table(
        title=experiment.get("title", f"Sweep {folder.name}"),
        rows=tuple(
            _row(name, runs, planned.get(name, {}), data, difference) for name in dict.fromkeys((*planned, *names))
        ),
        runs=tuple(runs),
        traffic=experiment.get("traffic", False),
        columns=tuple(_column(name) for name in experiment.get("columns", [])),
        difference=difference,
    )


def as_markdown(table: Table) -> str:
    """The table in Markdown, with the meaning of its figures."""
    head, *rows = _cells(table)
    lines = [head, ["---"] * len(head), *rows]
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    failures = "".join(f"- run {folder} failed: {reason}\n" for folder, reason in table.failures.items())
    return f"# {table.title}\n\n{body}\n{_notes(table)}\n" + (f"\n{failures}" if failures else "")


def as_text(table: Table) -> str:
    """The table for a terminal: aligned columns, numbers to the right."""
    lines = _cells(table)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["─" * width for width in widths])
    body = "".join(
        "  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(aligned)) + "\n"
        for aligned in (list(zip(cells, widths, strict=True)) for cells in lines)
    )
    failures = "".join(f"run {folder} failed: {reason}\n" for folder, reason in table.failures.items())
    return f"{table.title}\n\n{body}\n{_notes(table)}\n" + (f"\n{failures}" if failures else "")


def _cells(table: Table) -> list[list[str]]:
    """Head and rows."""
    data_sets = _data_sets(table)
    head = ["row", "runs", "accuracy", "ε"]
    against = list(dict.fromkeys(other for row in table.rows for other in row.against))
    head += list(table.columns) + [f"over {other}" for other in against]
    head += ["KiB to a party", "KiB from a party"] * table.traffic + [f"paper: {name}" for name in data_sets]
    lines = [head]
    for row in table.rows:
        traffic = row.traffic or (None, None)
        lines.append(
            [row.row, _runs(row), _accuracy(row), ", ".join(map(_epsilon, row.epsilons)) or "–"]
            + [_figure(row, name) for name in table.columns]
            + [_difference(row.against.get(other, ())) for other in against]
            + [_number(value and value / 1024, 1) for value in traffic] * table.traffic
            + [_number(row.paper.get(name), 2) for name in data_sets]
        )
    return lines


def _notes(table: Table) -> str:
    notes = "Accuracy of the small model on real texts, in percent: mean ± standard deviation over the runs."
    if any(row.against for row in table.rows):
        notes += (
            f" Over another row: mean difference in {table.difference} between runs with the same experiment seed, "
            "in points of a hundred, ± half its 95 % interval (Student's t)."
        )
    notes += " Traffic: mean for each answer, all of the protocol's messages." * table.traffic
    differ = " The paper's language models, small model and data sets differ from ours: compare orders only."
    return notes + differ * bool(_data_sets(table))


def _data_sets(table: Table) -> list[str]:
    return list(dict.fromkeys(name for row in table.rows for name in row.paper))


def _names(rows: Sequence[Any]) -> list[str]:
    """Row of each run: the row of the experiment, or the overrides that are not common to all runs."""
    lists = [list(row) for row in rows if row is not None and not isinstance(row, str)]
    shared = set.intersection(*map(set, lists)) if lists else set()
    return [
        row
        if isinstance(row, str)
        else ", ".join(override for override in row or () if override not in shared) or "all runs"
        for row in rows
    ]


def read_run(folder: Path, row: str, seed: int | None = None) -> Run:
    """Read one run folder; a run without a result has an error."""
    ended = RunSummary.load(folder) if (folder / RunSummary.FILE).exists() else None
    if ended is None or not ended.complete:
        error = folder / FAILURE
        why = error.read_text(encoding="utf-8").strip() if error.exists() else "it did not reach its end"
        return Run(folder=folder.name, row=row, error=why)
    privacy, metrics = Privacy.load(folder), Metrics.load(folder)
    scores = metrics.synthetic or metrics.real_private
    rounds = read_lines(folder / RoundReport.FILE, RoundReport.from_json, [])
    return Run(
        folder=folder.name,
        row=row,
        seed=seed,
        method=ended.method,
        parties=ended.parties,
        accuracy=scores.accuracy.value if scores else None,
        epsilon=effective_epsilon(privacy),
        unprotected=unprotected(privacy),
        traffic=_traffic(folder, privacy.spent.queries_asked),
        fid=tuple(report.fid for report in rounds),
        tokens=sum(report.tokens.input + report.tokens.output for report in rounds),
        seconds=ended.seconds,
        figures=metrics.finite | {"seconds": ended.seconds},
        figures_of_records=frozenset(name for name, figure in metrics.named.items() if figure.private),
        weaknesses=tuple(map(str, read_weaknesses(folder))),
    )


def _traffic(folder: Path, queries: int) -> tuple[float, float] | None:
    """Mean bytes to and from a party for each answer; None where they were not counted."""
    traffic = Traffic.load(folder) if (folder / Traffic.FILE).exists() else None
    if traffic is None or not queries * traffic.parties:
        return None
    answers = queries * traffic.parties
    return traffic.bytes_to_parties / answers, traffic.bytes_from_parties / answers


def _row(name: str, runs: Sequence[Run], planned: Mapping[str, Any], data: Sequence[str], difference: str) -> TableRow:
    def done(row: str) -> tuple[Run, ...]:
        return tuple(run for run in runs if run.row == row and run.error is None)

    return TableRow(
        row=name,
        runs=done(name),
        failed=sum(run.row == name and run.error is not None for run in runs),
        paper=dict(zip(data, planned.get("paper", ()), strict=False)),
        against={
            short: paired(done(name), done(other), difference) for short, other in planned.get("against", {}).items()
        },
    )


def _runs(row: TableRow) -> str:
    return f"{len(row.runs)}, {row.failed} failed" if row.failed else str(len(row.runs) or "–")


def _accuracy(row: TableRow) -> str:
    if row.mean is None:
        return "failed" if row.failed else "–"
    spread = "" if row.deviation is None else f" ± {100 * row.deviation:.1f}"
    return f"{100 * row.mean:.1f}{spread}"


def _epsilon(value: float) -> str:
    return "∞: no guarantee" if math.isinf(value) else f"{value:g}"


def _column(name: str) -> str:
    """The report's name of a figure in `metrics.json`: "fidelity.fid" becomes "fidelity: fid"."""
    return name.replace(".", ": ").replace("_", " ")


def _figure(row: TableRow, name: str) -> str:
    """Mean and, for two or more values, standard deviation of a figure over the runs that have it."""
    values = [run.figures[name] for run in row.runs if name in run.figures]
    if not values:
        return "–"
    return f"{statistics.fmean(values):.4g}" + (f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else "")


def _difference(differences: Sequence[float]) -> str:
    """Mean and half the width of its 95 % interval, in percentage points."""
    interval = over_seeds(differences)
    if interval is None:
        return f"{100 * differences[0]:+.1f}" if differences else "–"
    return f"{100 * statistics.fmean(differences):+.1f} ± {50 * (interval[1] - interval[0]):.1f}"


def _number(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m simulations.sweep SWEEP_FOLDER")
    write_table(Path(sys.argv[1]))
