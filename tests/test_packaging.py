"""The wheel has all files of our packages but the laboratory's, and the commands run where it alone is installed.

Its name is one that the package index has for nobody else: `caucus` there is another project.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile

import pytest
from packaging.requirements import Requirement

from common.system.packages import NAMES
from common.versions import DISTRIBUTION
from tests.support.requirements import PROJECT, ROOT

SMALL = ("method.samples=36", "method.rounds=2", "task.records_per_party=16", "task.test_records=24")
LABORATORY = "simulations/laboratory/"
HOSPITAL = "configs/deployment/hospital"
"""Where the compose file has a hospital's keys and records."""


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if not name.startswith("tests/")]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The tracked files, where a hospital has its folder."""
    folder = tmp_path_factory.mktemp("source")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    (folder / HOSPITAL).mkdir()
    for name in ("client.yaml", "notes.csv", "identity.key", "README.md"):
        (folder / HOSPITAL / name).write_text("secret")
    return folder


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    return wheel_of(source, tmp_path_factory.mktemp("wheel"))


def wheel_of(source, folder):
    """Build the wheel of a folder or of an sdist, without the network, by the setuptools here."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run(*pip, "--wheel-dir", folder, source, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def run(*words, cwd):
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, cwd=cwd)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def packed(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_the_wheel_has_every_file_of_our_packages_but_the_laboratory_and_nothing_else(wheel):
    assert wheel.name == f"{DISTRIBUTION.replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"
    ours = {name for name in tracked() if name.split("/")[0] in NAMES}
    assert any(name.startswith(LABORATORY) for name in ours)
    assert packed(wheel) == {name for name in ours if not name.startswith(LABORATORY)}


def test_the_name_is_one_for_all_and_not_the_other_project_s():
    assert PROJECT["name"] == DISTRIBUTION != "caucus"
    ours = [line for extra in PROJECT["optional-dependencies"].values() for line in extra if line.startswith("caucus")]
    assert ours
    assert {Requirement(line).name for line in ours} == {DISTRIBUTION}


def test_the_sdist_is_enough_to_build_the_same_wheel(source, wheel, tmp_path):
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, tmp_path, cwd=source)
    (sdist,) = tmp_path.glob("*.tar.gz")
    assert sdist.name == f"{DISTRIBUTION.replace('-', '_')}-{PROJECT['version']}.tar.gz"
    assert packed(wheel_of(sdist, tmp_path)) == packed(wheel)
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if HOSPITAL in name]


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
    assert len((tmp_path / "run" / "synthetic.jsonl").read_text("utf-8").splitlines()) == 36
    assert (tmp_path / "run" / "report.html").exists()
    assert json.loads(said("caucus-coordinator", "plan", "--json"))["epsilon"] == 4
