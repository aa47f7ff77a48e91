"""A task's kind of text: which modules may decide by it. All others read data that every kind of task has."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DECIDING = {
    "spans": {
        "server/app.py",  # the document of a run has no empty mapping
        "server/domain.py",
        "server/evaluation/spans.py",
        "server/llm/marks.py",
    },
    "sectioned": {
        "server/domain.py",
        "server/evaluation/sections.py",
        "server/llm/render.py",
        "server/methods/class_sums.py",
        "server/operators/class_sums_round.py",
        "server/prepare/automatic.py",
        "server/tasks/sources.py",
    },
    "several": {
        "server/domain.py",
        "server/methods/wasp.py",
        "server/operators/class_sums_round.py",
        "server/operators/label_sets.py",
    },
}
"""Modules with a condition on each property of a task that differs by kind."""


def conditions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield each expression whose truth decides what a module does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand


def is_task(owner: ast.AST) -> bool:
    """Return whether an expression is named as a task is, such as `task`, `tools.task` or `source.task()`."""
    if isinstance(owner, ast.Call):
        return is_task(owner.func)
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name in {"task", "_task"}


def decides(source: str, name: str, *, in_domain: bool = False) -> bool:
    """Return whether a module has a condition on this property of a task, or in its own class, of `self`."""
    inside = chain.from_iterable(map(ast.walk, conditions(ast.parse(source))))
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and (is_task(node.value) or (in_domain and getattr(node.value, "id", "") == "self"))
        for node in inside
    )


@pytest.mark.parametrize("name", DECIDING)
def test_a_condition_on_the_kind_of_a_task_stands_in_named_modules_alone(name):
    paths = chain.from_iterable((ROOT / room).rglob("*.py") for room in ("server", "client", "common", "simulations"))
    modules = {path.relative_to(ROOT).as_posix(): path for path in paths if "laboratory" not in path.parts}
    found = {
        module
        for module, path in modules.items()
        if decides(path.read_text("utf-8"), name, in_domain=module == "server/domain.py")
    }
    assert found == DECIDING[name]
