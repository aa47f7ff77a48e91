"""The wheel has all files of our packages but the laboratory's, and the commands run where it alone is installed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from common.system.packages import NAMES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SMALL = ("method.samples=60", "method.rounds=2", "task.records_per_party=16", "task.test_records=24")
LABORATORY = "simulations/laboratory/"
HOSPITAL = "configs/deployment/hospital"
"""Where the compose file has a hospital's keys and records."""


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if not name.startswith("tests/")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the tracked files, where a hospital has its folder; without the network, by the setuptools here."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in tracked():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / "src" / name)
    (folder / "src" / HOSPITAL).mkdir()
    for name in ("client.yaml", "notes.csv", "identity.key", "README.md"):
        (folder / "src" / HOSPITAL / name).write_text("secret")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run(
        [*pip, "--wheel-dir", folder, folder / "src"], capture_output=True, text=True, check=False, cwd=folder
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_has_every_file_of_our_packages_but_the_laboratory_and_nothing_else(wheel):
    assert wheel.name == f"caucus-{PROJECT['version']}-py3-none-any.whl"
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = {name for name in tracked() if name.split("/")[0] in NAMES}
    assert any(name.startswith(LABORATORY) for name in ours)
    assert packed == {name for name in ours if not name.startswith(LABORATORY)}


@pytest.mark.slow
def test_the_commands_run_where_the_wheel_alone_is_installed(wheel, tmp_path):
    """The environment is new, but for its dependencies, which stand in the folder of this one: gigabytes."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    def said(*words):
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(
            [python.with_name(words[0]), *words[1:]],
            cwd=tmp_path,
            env=plain | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert said("python", "-c", f"import {', '.join(NAMES)}; print(server.__file__)").startswith(str(site))
    for command in PROJECT["scripts"]:
        assert said(command, "--version").startswith(f"{command}: caucus {PROJECT['version']}, ")
    said("caucus-simulate", *SMALL, "task.public_notes=120", f"hydra.run.dir={tmp_path}/run")
    assert len((tmp_path / "run" / "synthetic.jsonl").read_text("utf-8").splitlines()) == 60
    assert (tmp_path / "run" / "report.html").exists()
    assert json.loads(said("caucus-coordinator", "plan", "--json"))["epsilon"] == 4
