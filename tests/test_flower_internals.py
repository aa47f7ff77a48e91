"""Flower's internals stand in two rooms alone, and a page lists them; and the installed Flower has every one of them.

`python -m pytest tests/test_flower_internals.py` says in one line which names a new Flower lacks.
"""

import ast
import re
import subprocess
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from flwr.superlink.grid import http_grid

ROOT = Path(__file__).parents[1]
ROOMS = ("client/flower", "server/flower")
PUBLIC = ("app", "clientapp", "serverapp", "simulation")
"""Packages of `flwr` that Flower documents as its interface (and `flwr/__init__.py` exports)."""
OUTSIDE = ("tests/client/flower/", "tests/server/flower/", "tests/support/parts.py", "tests/test_flower_internals.py")
"""Tests of the rooms, which look at what the rooms change."""
ROW = re.compile(r"^\| `(flwr\.[\w.]+)` \| ([^|]+) \|", re.MULTILINE)


def internals(source):
    """Dotted names inside Flower that this source imports, and the attributes that it uses of them."""
    tree = ast.parse(source)
    named = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    inside = {name: path for name, path in named.items() if is_internal(path)}
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in inside
    }
    attributes = {f"{inside[name]}.{attribute}" for name, attribute in used}
    whole = {path for path in inside.values() if not any(name.startswith(f"{path}.") for name in attributes)}
    return whole | attributes


def is_internal(path):
    first, *rest = path.split(".")
    return first == "flwr" and bool(rest) and rest[0] not in PUBLIC


def listed(room):
    """The dotted names in a room's part of the page: a module, and names in it, in each row of its tables."""
    page = (ROOT / "server" / "flower" / "README.md").read_text(encoding="utf-8")
    rows = ROW.findall(page.partition(f"\n## In `{room}`")[2].partition("\n## ")[0])
    return {f"{module}.{name}" for module, names in rows for name in re.findall(r"`([\w.]+)`", names)}


def lacking(names):
    """Those of these names that the installed Flower does not have, in one line; empty if it has all."""
    missing = sorted(name for name in names if not exists(name))
    return f"Flower {version('flwr')} lacks {', '.join(missing)}" if missing else ""


def exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            reached = import_module(".".join(parts[:end]))
        except ImportError:
            continue
        try:
            for part in parts[end:]:
                reached = getattr(reached, part)
        except AttributeError:
            return False
        except RuntimeError:  # a property that has no value yet
            return True
        return True
    return False


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_lists_the_names_that_a_room_s_code_uses(room):
    used = set().union(*(internals(file.read_text(encoding="utf-8")) for file in (ROOT / room).glob("*.py")))
    assert used == listed(room)


@pytest.mark.parametrize("room", ROOMS)
def test_the_installed_flower_has_every_name(room):
    assert not lacking(listed(room))


def test_a_flower_without_a_name_is_told_in_one_line(monkeypatch):
    monkeypatch.delattr(http_grid, "pull_objects")
    names = set().union(*map(listed, ROOMS)) | {"flwr.superlink.gone.thing"}
    expected = "lacks flwr.superlink.gone.thing, flwr.superlink.grid.http_grid.pull_objects"
    assert lacking(names) == f"Flower {version('flwr')} {expected}"


def test_no_test_of_another_room_names_them():
    """For the packages an import contract says the same (pyproject.toml)."""
    files = subprocess.run(["git", "ls-files", "tests/*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    others = [name for name in files.stdout.split() if not name.startswith(OUTSIDE)]
    sources = {name: (ROOT / name).read_text(encoding="utf-8") for name in others if (ROOT / name).exists()}
    named = {name: internals(source) for name, source in sources.items() if "flwr" in source}
    assert {name: names for name, names in named.items() if names} == {}
    assert named
