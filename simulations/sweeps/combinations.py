"""The runs of a sweep, while it is at work: which settings each has, how many there are, and what is left to do.

    caucus-simulate --multirun privacy.epsilon=1,4,8 experiment_seed=0,1,2
    caucus-simulate --resume SWEEP

Each combination has its own folder. A sweep goes on after the failure of a run, and ends with a table of all
(`table.py`). One that was stopped goes on with the run that was at work, and with those that had not begun.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from common.errors import ConfigError
from common.validate import meant
from server.configuration import composed, load, reloaded, store
from server.failure import FAILURE

PLANNED = "multirun.yaml"
"""File of Hydra's in the folder of a sweep: what was typed."""

SEED = "experiment_seed="
RESUME = "--resume"


class AfterSweep(Callback):
    """Hydra's callback for the begin and the end of a sweep."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:  # noqa: ANN401
        """Keep the sweep's folder in Hydra's state, where a parallel sweep leaves nothing in this process."""
        HydraConfig.instance().set_config(config)

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:  # noqa: ANN401
        """Print and write the table; exit with an error if a run failed."""
        from simulations.sweeps.render import write_table  # noqa: PLC0415 the report's plots

        HydraConfig.instance().cfg = None
        table = write_table(near(Path(config.hydra.sweep.dir)))
        if table.failures:
            sys.exit(f"caucus-simulate: {len(table.failures)} of {len(table.runs)} runs failed")


def planned(sweep: Path) -> list[list[str]]:
    """The overrides of each run of a sweep, in order."""
    hydra = OmegaConf.load(sweep / PLANNED).hydra
    typed = [f"{name}={value}" for name, value in (hydra.sweeper.params or {}).items()] + list(hydra.overrides.task)
    (runs,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(typed), None)
    return runs


def again(sweep: Path) -> list[str]:
    """The arguments with which a stopped sweep goes on."""
    hydra = OmegaConf.load(sweep / PLANNED).hydra
    typed = hydra.overrides
    of_hydra = [each for each in typed.hydra if not each.startswith(("hydra.mode=", "hydra.sweep.dir="))]
    return ["--multirun", *config_dir(hydra), *typed.task, *of_hydra, f"hydra.sweep.dir='{sweep.resolve()}'"]


def config_dir(hydra: Any) -> list[str]:  # noqa: ANN401 Hydra's own settings
    """The arguments that name a folder of configurations of the user's own, if one was given."""
    given = [source.path for source in hydra.runtime.config_sources if source.provider == "command-line"]
    return [part for path in given for part in ("--config-dir", path)]


def in_row(config: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """The configuration of one run of a sweep: settings of its row, then overrides of the command line.

    Raises:
        ConfigError: The experiment has no such row.
    """
    if config.row is None:
        config.row = [override for override in overrides if not override.startswith(SEED)]
        return config
    rows = config.get("experiment", {}).get("rows", {})
    if "set" not in rows.get(config.row, {}):
        names = [name for name in rows if "set" in rows[name]]
        expected, do = f"one of the experiment's: {', '.join(names)}", meant(config.row, names)
        raise ConfigError("row", expected=expected, got=config.row, do=do)
    return composed([*rows[config.row]["set"], *overrides])


def continued(config: DictConfig, overrides: Sequence[str], folder: Path) -> DictConfig:
    """The stored configuration of the same run of the same sweep, if it was stopped before its end; else this one."""
    if (folder / "run.json").exists() and load(folder).get("overrides") == list(overrides):
        return reloaded(folder, [])
    OmegaConf.update(config, "overrides", list(overrides), force_add=True)
    return config


def complete(folder: Path) -> bool:
    """Whether the run of this folder reached its end."""
    if not (folder / "run.json").exists() or (folder / FAILURE).exists():
        return False
    return bool(json.loads((folder / "run.json").read_text(encoding="utf-8"))["status"] == "complete")


def failed(config: DictConfig, folder: Path, error: str) -> None:
    """Write the reason of a failure into the folder of the run."""
    if not (folder / "config.yaml").exists():
        store(config, folder)
    (folder / FAILURE).write_text(error + "\n", encoding="utf-8")


def left(sweep: Path) -> str:
    """What of a stopped sweep is done, and what goes on with the rest."""
    runs = planned(sweep)
    done = [number for number, _ in enumerate(runs, 1) if complete(sweep / str(number - 1))]
    said = f"run{'s' * (len(done) > 1)} {', '.join(map(str, done))} of {len(runs)} done" if done else "no run is done"
    return f"{said}; {resumption(sweep)}"


def near(folder: Path) -> Path:
    """The folder as one would type it here."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def resumption(folder: Path) -> str:
    """What goes on with the run or the sweep of a folder."""
    return f"caucus-simulate {RESUME} {shlex.quote(str(folder))} goes on"
