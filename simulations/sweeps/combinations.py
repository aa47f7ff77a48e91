"""The runs of a sweep in progress: the settings of each run, and which runs remain after the sweep was stopped.

    caucus-simulate --multirun privacy.epsilon=1,4,8 experiment_seed=0,1,2
    caucus-simulate --resume SWEEP

Each combination has its own folder. A sweep continues after the failure of a run, and ends with a table of all runs
(`table.py`). A stopped sweep continues with the interrupted run, and then with the runs that had not begun.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback

from common.errors import ConfigError
from common.system.commands import command_to_copy, exit_code
from common.validate import suggest_name
from server.documents.metrics import Metrics
from server.documents.run import RunSummary
from server.failure import FAILURE, WRONG_SETTINGS, missing_folders
from server.prepare.compose import FILE, check_simulation, compose_settings, plain, reload_settings, values, write_yaml
from server.settings.schema import Settings, SimulationSettings
from simulations.sweeps.experiments import experiment_rows, run_names

PLANNED = "multirun.yaml"
"""Name of Hydra's file in a sweep's folder, which contains the overrides from the command line."""

ROW = "row"
SEED = "experiment_seed="
RESUME = "--resume"
_FIRST = ("state/state.json", Metrics.FILE, RunSummary.FILE)
"""Files of a run's folder; a run that has begun has one of them before its first text."""
made: list[Path] = []
"""Folders that Hydra made for this process's only run, the innermost first; none for a sweep."""


class SweepCallback(Callback):
    """Callback that Hydra calls at the start of a run, and at the start and the end of a sweep."""

    def on_run_start(self, config: Any, **_: Any) -> None:
        """Note which folders the run makes."""
        with suppress(*WRONG_SETTINGS, OSError):  # Hydra would warn of it; it fails on the same setting next
            made[:] = missing_folders(Path(config.hydra.run.dir))

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Make Hydra sweep over the experiment's rows, if there are any, and store the sweep's folder in its state.

        The runs of a parallel sweep do not set that state in this process.
        """
        try:
            names = run_names(plain(config).get("experiment"))
        except ConfigError as error:  # Hydra would warn of it and go on
            sys.stderr.write(f"caucus-simulate: {error}\n")
            sys.exit(exit_code(error))
        params = config.hydra.sweeper.params or {}
        if names and ROW not in params:
            config.hydra.sweeper.params = {ROW: sweep_over(names), **params}
        HydraConfig.instance().set_config(config)

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        """Print and write the table; exit with an error if a run failed."""
        from simulations.sweeps.render import write_table

        HydraConfig.instance().cfg = None
        table = write_table(relative_path(Path(config.hydra.sweep.dir)))
        if table.failures:
            sys.exit(f"caucus-simulate: {len(table.failures)} of {len(table.runs)} runs failed")


def sweep_over(names: Iterable[str]) -> str:
    """Return a sweep over rows in Hydra's grammar; each name is one choice, even if it contains commas or brackets."""
    return ", ".join("'" + name.replace("'", r"\'") + "'" for name in names)


def planned_overrides(sweep: Path) -> list[list[str]]:
    """Return the overrides of each run of a sweep, in order."""
    hydra = values(sweep / PLANNED)["hydra"]
    typed = [f"{name}={value}" for name, value in (hydra["sweeper"]["params"] or {}).items()]
    typed += hydra["overrides"]["task"]
    (runs,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(typed), None)
    return runs


def resuming_arguments(sweep: Path) -> list[str]:
    """Return the arguments of the command that resumes a stopped sweep."""
    hydra = values(sweep / PLANNED)["hydra"]
    typed = hydra["overrides"]
    of_hydra = [override for override in typed["hydra"] if not override.startswith(("hydra.mode=", "hydra.sweep.dir="))]
    return [
        "--multirun",
        *config_dir(hydra["runtime"]["config_sources"]),
        *typed["task"],
        *of_hydra,
        f"hydra.sweep.dir='{sweep.resolve()}'",
    ]


def config_dir(sources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the arguments that specify the user's own folder of configurations; empty without such a folder."""
    given = [source["path"] for source in sources if source["provider"] == "command-line"]
    return [part for path in given for part in ("--config-dir", path)]


def with_overrides(settings: SimulationSettings, overrides: Sequence[str]) -> SimulationSettings:
    """Return the settings of one run of a sweep: those of its row, changed by the overrides of the run.

    Raises:
        ConfigError: The experiment has no such row.
    """
    if settings.row is None:
        return replace(settings, row=row_overrides(overrides))
    planned = experiment_rows(settings.experiment)
    if "set" not in planned.get(settings.row, {}):
        names = run_names(settings.experiment)
        expected, do = f"one of the experiment's: {', '.join(names)}", suggest_name(settings.row, names)
        raise ConfigError("row", expected=expected, got=settings.row, do=do)
    return check_simulation(compose_settings([*planned[settings.row]["set"], *overrides]))


def settings_to_continue(settings: SimulationSettings, overrides: Sequence[str], folder: Path) -> Settings:
    """Return the stored settings if a run with these overrides stopped in the folder, else `settings` with them."""
    begun = any((folder / name).exists() for name in _FIRST)
    if begun and values(folder / FILE).get("overrides") == list(overrides):
        return reload_settings(folder, [])
    return replace(settings, overrides=tuple(overrides))


def is_complete(folder: Path) -> bool:
    """Return whether the run in this folder reached its end without a failure."""
    if (folder / FAILURE).exists():
        return False
    ended = RunSummary.load_if_there(folder)
    return ended is not None and ended.complete


def row_overrides(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that name the row of a run without an experiment: all except the seed."""
    return [override for override in overrides if not override.startswith(SEED)]


def record_failure(settings: Mapping[str, Any], overrides: Sequence[str], folder: Path, error: str) -> None:
    """Write the reason for a failure into the folder of the run, with the run's settings if they are missing there.

    Args:
        settings: Settings of the run's row; if building them failed, the settings that Hydra composed.
        overrides: Overrides of the run.
        folder: The run folder.
        error: The reason.
    """
    if not (folder / FILE).exists():
        write_yaml({**settings, "row": settings.get("row") or row_overrides(overrides)}, folder / FILE)
    (folder / FAILURE).write_text(error + "\n", encoding="utf-8")


def remaining_runs(sweep: Path) -> str:
    """Return a message with the finished runs of a stopped sweep and the command for the remaining runs."""
    runs = planned_overrides(sweep)
    done = [number for number, _ in enumerate(runs, 1) if is_complete(sweep / str(number - 1))]
    said = f"run{'s' * (len(done) > 1)} {', '.join(map(str, done))} of {len(runs)} done" if done else "no run is done"
    return f"{said}; {resumption(sweep)}"


def relative_path(folder: Path) -> Path:
    """Return the folder's path relative to the working directory, or unchanged if the folder lies outside."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def resumption(folder: Path) -> str:
    """Return a clause with the command that resumes the run or the sweep in a folder."""
    return f"{command_to_copy('caucus-simulate', RESUME, str(folder))} goes on"
