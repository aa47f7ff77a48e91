"""One table for a sweep: each row's accuracy over its runs, with the paper's figures beside, failed runs included.

    caucus-simulate +experiment=wasp_table4 method.samples=1000
    caucus-simulate --multirun +experiment=wasp_table4 row=WASP experiment_seed=3,4
    caucus-simulate --multirun privacy.epsilon=1,4,8 experiment_seed=0,1,2
    python -m simulations.tables SWEEP_FOLDER

A sweep makes its table when it ends, and `python -m` makes it again, after a run was resumed. An experiment
(`configs/experiment/`) names its rows: the overrides that each sets, and what the paper reports for it. Of any other
sweep a row is a combination of its overrides without the experiment seed.
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from common.errors import CheckpointError, ConfigError
from server.app import composed, load, store
from server.run import for_json

ERROR = "error.txt"
"""In the folder of a run that failed: why, in one line."""

_SEED = "experiment_seed="


class AfterSweep(Callback):
    """Hydra calls this when all runs of a sweep have ended."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:  # noqa: ANN401
        """Print and keep the table; exit with an error if a run failed."""
        made = write_table(Path(config.hydra.sweep.dir))
        if made.failures:
            sys.exit(f"caucus-simulate: {len(made.failures)} of {made.runs} runs failed")


def in_row(config: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """The configuration of one run of a sweep: what its row sets, below what the command line does.

    Raises:
        ConfigError: The experiment has no such row.
    """
    if config.row is None:
        config.row = [override for override in overrides if not override.startswith(_SEED)]
        return config
    rows = config.get("experiment", {}).get("rows", {})
    if "set" not in rows.get(config.row, {}):
        known = ", ".join(name for name in rows if "set" in rows[name])
        raise ConfigError("row", expected=f"one of the experiment's: {known}", got=config.row)
    return composed([*rows[config.row]["set"], *overrides])


def failed(config: DictConfig, folder: Path, error: str) -> None:
    """Leave in a run's folder that it failed, and why."""
    if not (folder / "config.yaml").exists():
        store(config, folder)
    (folder / ERROR).write_text(error + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep.

    Attributes:
        folder: Its name in the sweep's folder.
        row: Which row it belongs to.
        error: Why there is no result; None where there is one.
        accuracy: Of the small model, 0 to 1; None where there are no held-out texts.
        epsilon: What its privacy statement says.
        traffic: Mean bytes to and from a party for each answer, keys and all; None where it was not measured.
    """

    folder: str
    row: str
    error: str | None = None
    accuracy: float | None = None
    epsilon: float | None = None
    traffic: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one row's runs came to; the paper's rows that nothing here runs have no runs.

    Attributes:
        row: Its name.
        runs: How many ended with a result.
        failed: How many did not.
        accuracies: Of those with held-out texts, 0 to 1.
        epsilons: Different values among the runs.
        traffic: Mean bytes to and from a party for each answer.
        paper: The paper's figures by data set.
    """

    row: str
    runs: int = 0
    failed: int = 0
    accuracies: tuple[float, ...] = ()
    epsilons: tuple[float, ...] = ()
    traffic: tuple[float, float] | None = None
    paper: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float | None:
        """Of the accuracies."""
        return statistics.fmean(self.accuracies) if self.accuracies else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation of the accuracies; None for fewer than two."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows, in the experiment's order or that of the runs.

    Attributes:
        title: What is compared.
        rows: One each.
        runs: How many there were.
        failures: Folder and reason of each failed one.
        traffic: Whether to show it.
    """

    title: str
    rows: tuple[Row, ...]
    runs: int
    failures: Mapping[str, str]
    traffic: bool = False


def write_table(folder: Path) -> Table:
    """Print the table of a sweep and write it into its folder as `table.md` and `table.json`.

    Raises:
        CheckpointError: The folder holds no run.
    """
    made = table(folder)
    text = as_markdown(made)
    (folder / "table.md").write_text(text, encoding="utf-8")
    rows = [asdict(row) | {"mean": row.mean, "deviation": row.deviation} for row in made.rows]
    plain = json.dumps(for_json(asdict(made) | {"rows": rows}), ensure_ascii=False, indent=2)
    (folder / "table.json").write_text(plain, encoding="utf-8")
    sys.stdout.write(text)
    return made


def table(folder: Path) -> Table:
    """Read all run folders of a sweep."""
    configs = {path.parent: load(path.parent) for path in folder.glob("*/config.yaml")}
    if not configs:
        raise CheckpointError("sweep folder", expected="folders of runs, each with a config.yaml", where=folder)
    # Hydra numbers the runs: 10 comes after 9.
    folders = sorted(configs, key=lambda path: (len(path.name), path.name))
    names = _names([configs[path].get("row") for path in folders])
    runs = [_run(path, name) for path, name in zip(folders, names, strict=True)]
    experiment: Any = OmegaConf.to_container(OmegaConf.create(configs[folders[0]].get("experiment", {})))
    planned, data = experiment.get("rows", {}), experiment.get("data", [])
    return Table(
        title=experiment.get("title", f"Sweep {folder.name}"),
        rows=tuple(
            _row(name, [run for run in runs if run.row == name], _paper(planned, name, data))
            for name in dict.fromkeys((*planned, *names))
        ),
        runs=len(runs),
        failures={run.folder: run.error for run in runs if run.error is not None},
        traffic=experiment.get("traffic", False),
    )


def as_markdown(made: Table) -> str:
    """The table in Markdown, with what its figures mean."""
    data_sets = list(dict.fromkeys(name for row in made.rows for name in row.paper))
    head = ["row", "runs", "accuracy", "ε"]
    head += ["KiB to a party", "KiB from a party"] * made.traffic + [f"paper: {name}" for name in data_sets]
    lines = [head, ["---"] * len(head)]
    for row in made.rows:
        traffic = row.traffic or (None, None)
        lines.append(
            [row.row, _runs(row), _accuracy(row), ", ".join(f"{value:g}" for value in row.epsilons) or "–"]
            + [_number(value and value / 1024, 1) for value in traffic] * made.traffic
            + [_number(row.paper.get(name), 2) for name in data_sets]
        )
    notes = "Accuracy of the small model on real texts, in percent: mean ± standard deviation over the runs."
    notes += " Traffic: mean for each answer, all of the protocol's messages." * made.traffic
    notes += " The paper's language models, small model and data sets differ from ours: compare orders only." * bool(
        data_sets
    )
    failures = "".join(f"- run {folder} failed: {reason}\n" for folder, reason in made.failures.items())
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"# {made.title}\n\n{body}\n{notes}\n" + (f"\n{failures}" if failures else "")


def _names(rows: Sequence[Any]) -> list[str]:
    """Row of each run: the experiment's, or those of its overrides that not all share."""
    lists = [list(row) for row in rows if row is not None and not isinstance(row, str)]
    shared = set.intersection(*map(set, lists)) if lists else set()
    return [
        row if isinstance(row, str) else ", ".join(each for each in row or () if each not in shared) or "all runs"
        for row in rows
    ]


def _run(folder: Path, row: str) -> Run:
    ended = _read(folder / "run.json")
    if ended.get("status") != "complete":
        error = folder / ERROR
        why = error.read_text(encoding="utf-8").strip() if error.exists() else "it did not reach its end"
        return Run(folder=folder.name, row=row, error=why)
    privacy, metrics, bytes_ = (_read(folder / f"{name}.json") for name in ("privacy", "metrics", "traffic"))
    scores = metrics.get("synthetic") or metrics.get("real_private")
    asked = privacy["spent"]["queries_asked"]
    each = asked * bytes_["parties"] if bytes_ else 0
    return Run(
        folder=folder.name,
        row=row,
        accuracy=scores["accuracy"] if scores else None,
        epsilon=float(privacy["epsilon"]),
        traffic=(bytes_["bytes_to_parties"] / each, bytes_["bytes_from_parties"] / each) if each else None,
    )


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _row(name: str, runs: Sequence[Run], paper: Mapping[str, float]) -> Row:
    done = [run for run in runs if run.error is None]
    traffic = [run.traffic for run in done if run.traffic is not None]
    return Row(
        row=name,
        runs=len(done),
        failed=len(runs) - len(done),
        accuracies=tuple(run.accuracy for run in done if run.accuracy is not None),
        epsilons=tuple(dict.fromkeys(run.epsilon for run in done if run.epsilon is not None)),
        traffic=(statistics.fmean(to for to, _ in traffic), statistics.fmean(back for _, back in traffic))
        if traffic
        else None,
        paper=paper,
    )


def _paper(planned: Mapping[str, Any], row: str, data: Sequence[str]) -> dict[str, float]:
    return dict(zip(data, planned.get(row, {}).get("paper", ()), strict=False))


def _runs(row: Row) -> str:
    return f"{row.runs}, {row.failed} failed" if row.failed else str(row.runs or "–")


def _accuracy(row: Row) -> str:
    if row.mean is None:
        return "failed" if row.failed else "–"
    spread = "" if row.deviation is None else f" ± {100 * row.deviation:.1f}"
    return f"{100 * row.mean:.1f}{spread}"


def _number(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m simulations.tables SWEEP_FOLDER")
    write_table(Path(sys.argv[1]))
