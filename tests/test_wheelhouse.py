"""An installation without a network, from the wheels that `make wheelhouse` has collected.

The scripts are tried on a package that stands for ours, with one dependency and one encoder, whose wheels lie in a
folder in place of pip's index. A folder that `make wheelhouse` has made is installed too, where there is one.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.hosts import NOTHING_BUT_LOOPBACK
from tests.support.wheels import sha256, wheel

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MADE = Path(os.environ.get("WHEELHOUSE", ROOT / "wheelhouse"))
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "caucus"
version = "1.0"
dependencies = ["tiny-dependency>=1"]

[project.scripts]
caucus-party = "caucus:main"

[tool.setuptools]
py-modules = ["caucus"]
"""
CATALOGUE = """\
from types import SimpleNamespace
ENCODER = "encoder"
def catalogue():
    return {"tiny": SimpleNamespace(package="tiny-model", version="1.0", wheel=%r, purpose=ENCODER)}
"""
ALONE = NOTHING_BUT_LOOPBACK if os.geteuid() == 0 else ()


def run(*words, code=0, **variables):
    """Output and errors of a command in an environment without settings of pip but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    command = list(map(str, words))
    ended = subprocess.run(command, env=kept | variables, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The folder of a package that stands for ours."""
    here = tmp_path_factory.mktemp("repository")
    index, scripts = here / "index", here / "configs" / "deployment"
    wheel(index, name="tiny-dependency", version="1.5", requires=())
    wheel(index, name="tiny-dependency", version="2.0", requires=())
    entry = wheel(index)
    scripts.mkdir(parents=True)
    for name in ("wheelhouse.sh", "install.sh"):
        shutil.copy(ROOT / "configs" / "deployment" / name, scripts / name)
    (here / "common" / "models").mkdir(parents=True)
    (here / "common" / "models" / "catalogue.py").write_text(CATALOGUE % entry.wheel)
    (here / "pyproject.toml").write_text(PROJECT)
    (here / "constraints.txt").write_text("tiny-dependency==1.5\n")
    (here / "caucus.py").write_text("def main():\n    print('caucus-party 1.0')\n")
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_NO_BUILD_ISOLATION": "0"}
    made = here / "wheelhouse"
    output = run(scripts / "wheelhouse.sh", made, PYTHON=sys.executable, PYTHONPATH=str(here), **variables)
    assert output.splitlines()[-1] == sha256((made / "SHA256SUMS").read_bytes())
    return made


def test_there_are_pinned_wheels_and_digests_of_all_files(collected):
    wheels = {path.name: sha256(path.read_bytes()) for path in collected.glob("*.whl")}
    assert [name.split("-py3")[0] for name in sorted(wheels)] == ["caucus-1.0", "tiny_dependency-1.5", "tiny_model-1.0"]
    pinned = {name: digest for name, digest in wheels.items() if "model" not in name}
    assert (collected / "requirements.txt").read_text().splitlines() == [
        f"{name.split('-')[0]}=={name.split('-')[1]} --hash=sha256:{digest}" for name, digest in sorted(pinned.items())
    ]
    lines = (line.split("  ") for line in (collected / "SHA256SUMS").read_text().splitlines())
    digests = {name: digest for digest, name in lines}
    assert digests == {
        path.name: sha256(path.read_bytes()) for path in collected.iterdir() if path.name != "SHA256SUMS"
    }
    assert f"3 wheels, 1 MB, for Python {PYTHON}" in (collected / "README.md").read_text()


def test_they_are_installed_without_a_network_but_for_the_encoder(collected, tmp_path):
    output = run(*ALONE, collected / "install.sh", tmp_path / "here", sys.executable)
    assert output == "caucus-party 1.0\n"
    listed = run(tmp_path / "here" / "bin" / "pip", "list", "--format", "freeze", PIP_NO_INDEX="1")
    assert {"caucus==1.0", "tiny-dependency==1.5"} <= set(listed.split())
    assert "tiny-model" not in listed


@pytest.mark.parametrize("name", ["caucus-1.0-py3-none-any.whl", "requirements.txt"])
def test_a_file_that_was_changed_on_the_way_is_named_and_nothing_is_installed(name, collected, tmp_path):
    here = shutil.copytree(collected, tmp_path / "wheels")
    with (here / name).open("ab") as file:
        file.write(b"\n")
    output = run(here / "install.sh", tmp_path / "here", sys.executable, code=2)
    assert f"{name}: FAILED" in output
    assert not (tmp_path / "here").exists()


def test_another_python_and_a_folder_that_exists_are_refused(collected, tmp_path):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.9\n")
    other.chmod(0o755)
    assert f"expected {PYTHON}" in run(collected / "install.sh", tmp_path / "here", other, code=2)
    assert "got none" in run(collected / "install.sh", tmp_path / "here", tmp_path / "none", code=2)
    assert "Nothing is" in run(collected / "install.sh", tmp_path, sys.executable, code=2)


@pytest.mark.skipif(not MADE.is_dir(), reason="`make wheelhouse` has not been run")
def test_a_hospital_is_installed_and_has_its_encoder_without_a_network(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    here = tmp_path / "here"
    output = run(*ALONE, MADE / "install.sh", here, sys.executable)
    assert f" {project['version']}" in output
    models = {"CAUCUS_MODELS": str(tmp_path / "models")}
    fetched = run(*ALONE, here / "bin" / "caucus-party", "models", "--from", MADE, **models)
    assert f"minilm: in {tmp_path / 'models' / 'minilm'}" in fetched
