"""The output formats of a sweep's table: text for a terminal, Markdown, JSON, and a page with curves."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from common.system.files import only_for_owner
from server.documents.files import write_json
from server.guarantee.case import NO_GUARANTEE
from server.metrics.intervals import interval_over_seeds
from server.report import plots
from server.report.write import render, replace
from simulations.sweeps.runs import TABLE
from simulations.sweeps.table import Row, RowDifference, Table, read_table

GAIN = "zero shot: difference"
"""Name, in `Metrics.named`, of the gain in accuracy over the same models without the hospitals."""
_COMPARED = {"zero shot: as many: accuracy": "with as many", "zero shot: accuracy": "without the hospitals"}
"""Names, in `Metrics.named`, of the accuracies whose difference is the gain, with the headings of their columns."""
_AXES = {
    "epsilon": ("privacy.epsilon", "ε", "Accuracy by ε"),
    "parties": ("federation.parties", "parties", "Accuracy by number of parties"),
}
"""Setting, name of the axis, and title of each plot, keyed by the setting's column in `runs_of`."""


@only_for_owner()
def write_table(folder: Path) -> Table:
    """Print a sweep's table, and write it as `table.md`, `table.json` and the page `report.html`; return the table.

    Raises:
        CheckpointError: The folder contains no runs.
    """
    table = read_table(folder)
    replace(folder / "table.md", as_markdown(table))
    write_json(folder / TABLE, table.to_dict())
    replace(folder / "report.html", as_page(folder, table))
    sys.stdout.write(f"{as_text(table)}\nreport:   {folder / 'report.html'}\ntable:    {folder / 'table.md'}\n")
    return table


def as_markdown(table: Table) -> str:
    """Return the table in Markdown, with an explanation of its figures and a list of the failed runs."""
    head, *rows = _cells(table)
    body = "".join(map(markdown_row, [head, ["---"] * len(head), *rows]))
    failures = "".join(f"- run {folder} failed: {reason}\n" for folder, reason in table.failures.items())
    return f"# {table.title}\n\n{body}\n{_notes(table)}\n" + (f"\n{failures}" if failures else "")


def markdown_row(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table; line breaks in a cell become spaces, and its vertical bars are escaped."""
    escaped = (" ".join(cell.splitlines()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def as_text(table: Table) -> str:
    """Return the table as text for a terminal, with the same explanation as in Markdown and aligned columns."""
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
    """Return the heading and the rows of the table, with each cell as text."""
    head = ["row", "runs", *_headings(table), "ε"]
    against = list(dict.fromkeys(other for row in table.rows for other in row.against))
    head += list(table.columns) + [f"over {other}" for other in against]
    head += ["KiB to a party", "KiB from a party"] * table.traffic + [f"paper: {name}" for name in table.data_sets]
    lines = [head]
    for row in table.rows:
        traffic = row.traffic or (None, None)
        lines.append(
            [row.row, _runs(row), *_scores(table, row), ", ".join(map(_epsilon, row.epsilons)) or "–"]
            + [_figure(row, name) for name in table.columns]
            + [_difference(row.against.get(other)) for other in against]
            + [_number(value and value / 1024, 1) for value in traffic] * table.traffic
            + [_number(row.paper.get(name), 2) for name in table.data_sets]
        )
    return lines


def _notes(table: Table) -> str:
    notes = "Accuracy of the small model on real texts, in percent: mean ± standard deviation over the runs."
    if _has_gain(table):
        notes += (
            " Gain: the accuracy with as many synthetic texts as without the hospitals, minus that of the same models "
            "without the hospitals, in points: mean ± standard deviation over the runs."
        )
    if any(row.against for row in table.rows):
        notes += (
            f" Over another row: mean difference in {table.difference} between runs with the same experiment seed, "
            "in points of a hundred, ± half its 95% interval (Student's t)."
        )
    for name, advice in table.unknown_columns.items():
        notes += f" No run has the figure {name!r}. {advice or ''}".rstrip()
    notes += " Traffic: mean for each answer, all of the protocol's messages." * table.traffic
    differ = " The paper's language models, small model and data sets differ from ours: compare orders only."
    return notes + differ * bool(table.data_sets)


def _has_gain(table: Table) -> bool:
    return any(GAIN in row.figures for row in table.rows)


def _headings(table: Table) -> list[str]:
    """Return the headings of `_scores`."""
    return ["accuracy", *([*_COMPARED.values(), "gain"] if _has_gain(table) else [])]


def _scores(table: Table, row: Row) -> list[str]:
    """Return a row's accuracy and, if any row has a gain, both accuracies that its gain compares and the gain."""
    compared = [_percent(row, name) for name in _COMPARED]
    return [_accuracy(row), *([*compared, _percent(row, GAIN, sign="+")] if _has_gain(table) else [])]


def _runs(row: Row) -> str:
    return f"{row.runs}, {row.failed} failed" if row.failed else str(row.runs or "–")


def _accuracy(row: Row) -> str:
    if row.mean is None:
        return "failed" if row.failed else "–"
    spread = "" if row.deviation is None else f" ± {100 * row.deviation:.1f}"
    return f"{100 * row.mean:.1f}{spread}"


def _percent(row: Row, name: str, sign: str = "-") -> str:
    """Return the mean of a figure and, if two or more runs have it, its standard deviation, in percent."""
    if name not in row.figures:
        return "–"
    spread = f" ± {100 * row.deviations[name]:.1f}" if name in row.deviations else ""
    return f"{100 * row.figures[name]:{sign}.1f}{spread}"


def _epsilon(value: float) -> str:
    return f"∞: {NO_GUARANTEE}" if math.isinf(value) else f"{value:g}"


def _figure(row: Row, name: str) -> str:
    """Return the mean of a figure and, if two or more runs have it, its standard deviation, as text."""
    if name not in row.figures:
        return "–"
    return f"{row.figures[name]:.4g}" + (f" ± {row.deviations[name]:.2g}" if name in row.deviations else "")


def _difference(other: RowDifference | None) -> str:
    """Return the mean difference and the half-width of its 95% interval, in percentage points."""
    if other is None or not other.differences:
        return "–"
    mean = f"{100 * other.mean:+.1f}"
    return mean if other.interval is None else f"{mean} ± {50 * (other.interval[1] - other.interval[0]):.1f}"


def _number(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


def as_page(folder: Path, table: Table) -> str:
    """Return the page of a sweep, with links to the pages of its runs in this folder."""
    by_row = pd.DataFrame([row.figures for row in table.rows if row.runs], dtype="float64")
    runs = table.runs.astype("object").where(table.runs.notna(), None)
    return render(
        "comparison.html",
        table=table,
        rows=[asdict(row) | {"scores": _scores(table, row), "runs_failed": _runs(row)} for row in table.rows],
        headings=_headings(table),
        notes=_notes(table),
        runs=[{"folder": name, **run} for name, run in runs.to_dict(orient="index").items()],
        plots=[plot for plot in (*(_by_setting(table.runs, axis) for axis in _AXES), _by_round(table.rows)) if plot],
        figures=_by_group({str(name): _missing_as_none(values) for name, values in by_row.items()}),
        marked=frozenset().union(*table.runs["figures_of_records"].dropna()),
        data_sets=list(table.data_sets),
        no_guarantee=NO_GUARANTEE,
        has_page={name: (folder / name / "report.html").is_file() for name in table.runs.index},
    )


def _by_group(figures: Mapping[str, list[float | None]]) -> dict[str, dict[str, list[float | None]]]:
    """Return the figures of each group, keyed by the group's title: the part of a name before its first colon."""
    groups: dict[str, dict[str, list[float | None]]] = {}
    for name, values in figures.items():
        groups.setdefault(name.partition(": ")[0], {})[name] = values
    return groups


def _by_setting(runs: pd.DataFrame, axis: str) -> plots.Lines | None:
    """Return a plot of mean accuracies against a setting; None if there are no lines.

    Rows that differ only in this setting form a line.
    """
    setting, name, title = _AXES[axis]
    by_row = runs.assign(rest=runs["row"].map(lambda row: _without(setting, row)))
    means = by_row.pivot_table("accuracy", "rest", axis, sort=False).sort_index(axis="columns")
    if means.empty or means.count(axis="columns").max() < 2:
        return None
    grouped = by_row.dropna(subset=["accuracy", axis]).groupby(["rest", axis])["accuracy"].agg(list)
    several = any(len(accuracies) > 1 for accuracies in grouped)
    return plots.lines(
        axis,
        title,
        note="Mean accuracy on real texts of the small model"
        + (", with its 95% interval over the seeds (Student's t)." if several else ", of one run each."),
        x_name=name,
        places=[f"{place:g}".replace("inf", "∞") for place in means.columns],
        values={str(row): _missing_as_none(line) for row, line in means.iterrows()},
        intervals={row: [_interval(grouped.get((row, place), [])) for place in means.columns] for row in means.index},
        singles={row: [grouped.get((row, place), []) for place in means.columns] for row in means.index if several},
    )


def _interval(accuracies: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95% interval of the mean, limited to [0, 1]; None if there is only one run."""
    interval = interval_over_seeds(accuracies)
    return interval and (max(0.0, interval[0]), min(1.0, interval[1]))


def _without(setting: str, row: str) -> str:
    return ", ".join(part for part in row.split(", ") if not part.startswith(f"{setting}=")) or "all runs"


def _by_round(rows: Sequence[Row]) -> plots.Lines | None:
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


def _missing_as_none(values: pd.Series) -> list[float | None]:
    return [None if pd.isna(value) else float(value) for value in values]
