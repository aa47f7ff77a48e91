"""Packages of common names: a stranger's is refused with one line, and each proper way of installing ours is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.system.packages import FILE, NAMES, refuse_strangers, strangers

ROOT = Path(__file__).parents[3]
COMMANDS = {"caucus-simulate": "simulations", "caucus-coordinator": "server", "caucus-party": "client"}
EDITABLE = """\
import sys
from importlib.machinery import PathFinder

class Editable:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{root!r}]) if name in {names!r} else None

sys.meta_path.append(Editable)
"""
"""What setuptools leaves for an editable installation, in short: a finder behind all others."""


@pytest.fixture
def ours(tmp_path):
    """Our packages, as empty as can be, in a folder of their own."""
    for name in NAMES:
        (tmp_path / "ours" / name).mkdir(parents=True)
        (tmp_path / "ours" / name / "__init__.py").touch()
    for name in COMMANDS.values():
        (tmp_path / "ours" / name / "__init__.py").write_bytes((ROOT / name / "__init__.py").read_bytes())
        (tmp_path / "ours" / name / "command.py").write_text("def main():\n    print('starts')\n")
    system = tmp_path / "ours" / "common" / "system"
    system.mkdir()
    (system / "packages.py").write_bytes(FILE.read_bytes())
    return tmp_path / "ours"


def start(command, *path, cwd):
    """What a console script does, in a Python without any package but those on this path."""
    program = f"import sys; sys.argv = ['/venv/bin/{command}']; from {COMMANDS[command]}.command import main; main()"
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", program],
        env={"PYTHONPATH": os.pathsep.join(map(str, path))},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_packages_of_one_folder_are_accepted_and_a_folder_without_modules_shadows_none(command, ours, tmp_path):
    (tmp_path / "project" / "server").mkdir(parents=True)
    assert start(command, tmp_path / "project", ours, cwd=tmp_path).stdout == "starts\n"


def test_links_are_accepted(ours, tmp_path):
    (tmp_path / "whole").symlink_to(ours)
    assert start("caucus-party", tmp_path / "whole", cwd=tmp_path).stdout == "starts\n"
    one_by_one = tmp_path / "links"
    one_by_one.mkdir()
    for name in NAMES:
        (one_by_one / name).symlink_to(ours / name)
    assert start("caucus-party", one_by_one, cwd=tmp_path).stdout == "starts\n"
    (ours / "configs").rename(tmp_path / "elsewhere")
    (ours / "configs").symlink_to(tmp_path / "elsewhere")
    assert start("caucus-party", ours, cwd=tmp_path).stdout == "starts\n"


def test_a_worktree_before_an_editable_installation_is_accepted(ours, tmp_path):
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(EDITABLE.format(root=str(ours), names=NAMES))
    program = "import sitecustomize, sys; sys.argv = ['caucus-party']; from client.command import main; main()"
    for path in (hook, f"{ROOT}{os.pathsep}{hook}"):
        code = program if path == hook else program.replace("from client.command import main; main()", "import client")
        ended = subprocess.run(
            [sys.executable, "-S", "-P", "-c", code],
            env={"PYTHONPATH": str(path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("taken", ["common/__init__.py", "configs/__init__.py", "server.py"])
def test_a_package_or_module_of_the_same_name_that_comes_first_is_refused_with_one_line(taken, ours, tmp_path):
    stranger = tmp_path / "project" / taken
    stranger.parent.mkdir(parents=True)
    stranger.touch()
    ended = start("caucus-party", tmp_path / "project", ours, cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("caucus-party: package ")
    assert f"at {tmp_path / 'project' / taken.partition('/')[0]}" in ended.stderr


def test_in_a_notebook_the_import_fails_and_python_goes_on(tmp_path, monkeypatch):
    (tmp_path / "protos.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "protos", raising=False)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py"])
    with pytest.raises(ImportError, match="protos;"):
        refuse_strangers()


def test_nothing_here_is_a_stranger():
    assert strangers() == {}
