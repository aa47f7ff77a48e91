"""Sweeps on a cluster, by Hydra's launcher for Slurm: its settings, and what is said of jobs that go on or are lost."""

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra import compose, initialize_config_module
from hydra.types import RunMode
from hydra.utils import instantiate
from submitit.core.utils import FailedJobError, UncompletedJobError

import simulations
from server.prepare.misprints import CONFIGS
from simulations import launch
from simulations.sweeps import combinations

README = Path(simulations.__file__).parent / "README.md"


def launcher(*typed):
    with initialize_config_module(CONFIGS, version_base="1.3"):
        more = ["hydra.job.name=launch", "hydra.sweep.dir=runs/sweep"]
        config = compose("simulation", [*typed, *more], return_hydra_config=True)
    return instantiate(config.hydra.launcher)


def test_the_launcher_composes_with_the_settings_of_the_readme():
    (command,) = [
        line for line in README.read_text("utf-8").replace("\\\n", " ").splitlines() if "=submitit_slurm" in line
    ]
    made = launcher(*(word for word in shlex.split(command) if word.startswith("hydra")))
    assert type(made).__name__ == "SlurmLauncher"  # Hydra imports each plugin twice
    wanted = {"submitit_folder": "runs/sweep/.submitit/%j", "partition": "cpu", "mem_gb": 4, "timeout_min": 120}
    assert {name: made.params[name] for name in wanted} == wanted
    assert type(launcher("hydra/launcher=submitit_local")).__name__ == "LocalLauncher"


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """The folder of a sweep by the launcher, as Hydra's state has it."""
    choices = {"hydra/launcher": "submitit_slurm"}
    state = SimpleNamespace(
        mode=RunMode.MULTIRUN, sweep=SimpleNamespace(dir=str(tmp_path)), runtime=SimpleNamespace(choices=choices)
    )
    monkeypatch.setattr(launch, "HydraConfig", SimpleNamespace(initialized=lambda: True, get=lambda: state))
    rest = "no run is done; caucus-simulate --resume SWEEP goes on"
    monkeypatch.setattr(combinations, "remaining_runs", lambda _: rest)
    (tmp_path / combinations.PLANNED).touch()
    return tmp_path


def begun(monkeypatch, error):
    def composed():
        raise error

    monkeypatch.setattr(launch, "_composed", composed)
    monkeypatch.setattr(sys, "argv", ["caucus-simulate"])
    launch.launch_command(["--multirun", "privacy.epsilon=1,4"])


def test_a_job_without_a_result_is_one_line_with_what_goes_on(sweep, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        begun(monkeypatch, UncompletedJobError("Job 7 (task: 0) has not produced any output (state: TIMEOUT)"))
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert all(fact in error for fact in (f"at {sweep}/.submitit.", f"caucus-simulate --resume {sweep} "))


def test_a_bug_in_a_job_keeps_its_traceback(sweep, monkeypatch):
    with pytest.raises(FailedJobError):
        begun(monkeypatch, FailedJobError("Traceback"))


def test_after_a_stop_it_is_said_that_jobs_go_on(sweep, monkeypatch):
    with pytest.raises(KeyboardInterrupt) as stop:
        begun(monkeypatch, KeyboardInterrupt())
    (message,) = stop.value.args
    assert all(fact in message for fact in ("caucus-simulate --resume SWEEP", "scancel"))
