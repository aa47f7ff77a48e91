"""Habits that no linter keeps: tests share what `tests/support` has, and exceptions stand in pyproject.toml alone."""

import re
import subprocess
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parents[1]
OTHER_TEST = re.compile(r"^\s*(?:from|import) tests\.[\w.]*?(?:test_\w+|conftest)\b", re.MULTILINE)
EXCEPTION = re.compile(r"# fmt: (?:skip|off)|# noqa: [\w, ]*(?:PLC0415|ANN401)")

PRONOUNS = {"found", "held", "own", "some", "told"}
"""Words that say nothing of a value: a variable has a noun as its name."""
_RUNS = 'if __name__ == "__main__":'


@pytest.fixture(scope="module")
def sources():
    """Path to content of every Python file of the project."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: (ROOT / name).read_text("utf-8") for name in listed.stdout.split() if (ROOT / name).is_file()}


def test_no_test_imports_another(sources):
    assert {name: imports for name, text in sources.items() if (imports := OTHER_TEST.findall(text))} == {}


def test_late_imports_untyped_values_and_layout_are_excepted_by_policy_alone(sources):
    """Which modules are imported late, and where a type is `Any`, is said once, with the reason, in pyproject.toml."""
    del sources[Path(__file__).relative_to(ROOT).as_posix()]
    assert {name: exceptions for name, text in sources.items() if (exceptions := EXCEPTION.findall(text))} == {}


def test_variables_are_named_by_nouns(sources):
    rooms = ("client/", "common/", "server/", "simulations/")
    product = {name: compile(text, name, "exec") for name, text in sources.items() if name.startswith(rooms)}
    named = {name: PRONOUNS.intersection(_variables(code)) for name, code in product.items()}
    assert {name: pronouns for name, pronouns in named.items() if pronouns} == {}


def _variables(code):
    yield from (*code.co_varnames, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _variables(constant)


def test_each_module_that_is_named_as_a_command_runs_as_one(sources):
    """Without these lines `python -m MODULE` would import the module, say nothing and succeed."""
    named = {module for text in sources.values() for module in re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)+)", text)}
    files = [f"{module.replace('.', '/')}{end}" for module in named for end in (".py", "/__main__.py")]
    commands = {file for file in files if file in sources and not Path(file).name.startswith("test_")}
    assert len(commands) > 20
    runs = {file for file in commands if file.endswith("__main__.py") or _RUNS in sources[file]}
    assert sorted(commands - runs) == []
