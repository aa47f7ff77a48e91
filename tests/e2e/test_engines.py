"""The engines agree: with noise off, one experiment seed gives one data set in process, on Ray and under `flwr run`."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.runs import SMALL, lines, read, texts, tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXACT = (*SMALL, "privacy.epsilon=.inf")
BIN = Path(sys.executable).parent
LAUNCHERS = [[], ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"], ["hydra/launcher=submitit_local"]]


@pytest.fixture
def environment(tmp_path):
    """Of a user without any Flower configuration, offline."""
    home = tmp_path / "flwr"
    home.mkdir()
    (home / "config.toml").write_text(
        '[superlink]\ndefault = "local"\n\n[superlink.local]\naddress = ":local-in-memory:"\n'
        "options.num-supernodes = 3\n"
    )
    return os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "OMP_NUM_THREADS": "1",
        "CAUCUS_TEST": str(tmp_path),
    }


@pytest.fixture(autouse=True)
def nothing_runs_on(tmp_path, environment):
    """Whatever a test starts carries its folder in the environment: what is left of it is found, ended and reported."""
    yield
    deadline = time.monotonic() + 120
    while left := descendants(tmp_path):
        if time.monotonic() > deadline:
            for process in left:
                os.kill(process, signal.SIGKILL)
            pytest.fail(f"{len(left)} processes ran on")
        time.sleep(0.5)


def descendants(folder):
    """Processes that were started with this folder in their environment."""
    processes = []
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"CAUCUS_TEST={folder}\0".encode() in status.read_bytes():
                processes.append(int(status.parent.name))
        except OSError:
            continue
    return processes


def simulate(environment, *arguments):
    return subprocess.run(
        [BIN / "caucus-simulate", *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_ray_gives_the_same_texts_as_one_process(environment, tmp_path):
    here = tiny(tmp_path / "local", *EXACT)
    ended = simulate(environment, *EXACT, "engine=flower", f"hydra.run.dir={tmp_path}/ray")
    assert ended.returncode == 0, ended.stderr
    there = tmp_path / "ray"
    assert read(there, "run.json")["status"] == "complete"
    assert texts(there) == texts(here)
    assert [line["queries"] for line in lines(there, "rounds.jsonl")] == [
        line["queries"] for line in lines(here, "rounds.jsonl")
    ]
    assert read(there, "metrics.json") == read(here, "metrics.json")
    assert len(list(there.glob("parties/*.db"))) == 3


def test_flwr_run_as_written_gives_the_same_texts_as_one_process_and_leaves_no_process(environment, tmp_path):
    here = tiny(tmp_path / "local", *EXACT)
    project = tmp_path / "project"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if not name.startswith("tests/"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, project / name)
    (project / ".venv").mkdir()
    for part in BIN.parent.iterdir():
        (project / ".venv" / part.name).symlink_to(part)
    page = (ROOT / "server" / "flower" / "README.md").read_text("utf-8").split("## A simulation by")[1]
    written = page.split("```\n")[1]
    assert "privacy.epsilon=4 &" in written
    with (
        tempfile.TemporaryDirectory() as short,  # a Unix socket's path may have 107 characters
        (tmp_path / "out").open("w") as out,  # no pipes: what runs on would keep them open
        (tmp_path / "err").open("w") as err,
    ):
        subprocess.run(
            ["bash", "-c", written.replace("privacy.epsilon=4", shlex.join(EXACT))],
            cwd=project,
            env={name: value for name, value in environment.items() if not name.startswith(("FLWR", "PYTHONPATH"))}
            | {"TMPDIR": short},
            stdout=out,
            stderr=err,
            check=False,
            timeout=400,
        )
    output = (tmp_path / "out").read_text("utf-8")
    there = project / "runs" / "mine"
    assert (there / "run.json").exists(), output + (tmp_path / "err").read_text("utf-8")
    assert read(there, "run.json")["status"] == "complete", output
    assert texts(there) == texts(here)
    shown = output.splitlines()
    for number in (1, 2, 3):
        assert sum(f"round {number} of 3: " in line for line in shown) == 1
    assert f"report:   {there}/report.html" in shown
    assert shown[-1] == f"{there}/report.html"
    assert "Installing" not in output


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("privacy.epsilon=0", "caucus-simulate: privacy.epsilon; expected a number > 0, or inf"),
        ("client.limits.max_epsilon=1", "caucus-simulate: too few parties"),
    ],
)
def test_a_run_that_fails_on_ray_ends_with_its_line_and_a_code(setting, message, environment, tmp_path):
    ended = simulate(environment, *SMALL, setting, "engine=flower", f"hydra.run.dir={tmp_path}/run")
    assert ended.returncode != 0
    assert message in ended.stderr
    assert message in ended.stderr.splitlines()[-1] + ended.stderr.splitlines()[-2]


def test_a_run_that_was_killed_on_ray_resumes_and_leaves_no_process(environment, tmp_path):
    folder = tmp_path / "run"
    started = subprocess.Popen(
        [BIN / "caucus-simulate", *EXACT, "engine=flower", f"hydra.run.dir={folder}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 600
    while not (folder / "state" / "answer-000.npy").exists():
        assert time.monotonic() < deadline
        assert started.poll() is None
        time.sleep(0.05)
    started.kill()
    started.wait()
    for process in descendants(tmp_path):  # as a power cut would
        os.kill(process, signal.SIGKILL)
    ended = simulate(environment, "--resume", str(folder))
    assert ended.returncode == 0, ended.stderr
    assert texts(folder) == texts(tiny(tmp_path / "local", *EXACT))


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["serial", "joblib", "submitit"])
def test_a_sweep_leaves_one_whole_folder_for_each_run(launcher, environment, tmp_path):
    grid = ["federation.parties=1,3", "privacy.epsilon=1,4"]
    ended = simulate(environment, "--multirun", *SMALL, *grid, *launcher, f"hydra.sweep.dir={tmp_path}/sweep")
    assert ended.returncode == 0, ended.stderr
    folders = sorted((tmp_path / "sweep").glob("[0-9]"))
    settings = [(read(at, "run.json")["parties"], read(at, "privacy.json")["epsilon"]) for at in folders]
    assert settings == [(1, 1.0), (1, 4.0), (3, 1.0), (3, 4.0)]
    assert all(read(at, "run.json")["status"] == "complete" for at in folders)
    assert len({read(at, "run.json")["run"] for at in folders}) == 4
    assert all("done:" in (at / "run.log").read_text() for at in folders)


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["serial", "joblib", "submitit"])
def test_a_sweep_with_a_wrong_setting_fails_with_its_line(launcher, environment, tmp_path):
    grid = ["federation.parties=1,3", "privacy.epsilon=4,0"]
    ended = simulate(environment, "--multirun", *SMALL, *grid, *launcher, f"hydra.sweep.dir={tmp_path}/sweep")
    assert ended.returncode != 0
    assert "2 of 4" in ended.stderr
    failed = sorted((tmp_path / "sweep").glob("*/error.txt"))
    assert [path.parent.name for path in failed] == ["1", "3"]
    assert all("epsilon; " in path.read_text() for path in failed)
