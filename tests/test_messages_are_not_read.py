"""An error is handled by its type and its fields: no code of ours compares, searches or patches its sentence."""

import ast
import inspect
import re
from pathlib import Path

from common import errors
from common.errors import CaucusError

OURS = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, CaucusError)}
OURS |= {"RefusalError"}
OF_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "replace", "split"}
OF_REGEX = {"match", "search", "fullmatch", "sub", "findall", "split"}
NAMED = re.compile(r"\bexcept\b[^:]* as ")


def handlers():
    """Each handler of our errors, with the name that it gives to the error."""
    for part in ("common", "client", "server", "simulations"):
        for path in Path(part).rglob("*.py"):
            source = path.read_text("utf-8")
            for node in ast.walk(ast.parse(source)) if NAMED.search(source) else ():
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    caught = {leaf.id for leaf in ast.walk(node.type) if isinstance(leaf, ast.Name)}
                    if caught & OURS:
                        yield path, node


def is_sentence(node, name):
    """Whether an expression is the message of the error, such as `str(error)`, `f"{error}"` or `error.problem`."""
    code = ast.unparse(node)
    in_text = isinstance(node, ast.JoinedStr) and f"{{{name}" in code and f"{{{name}.what" not in code
    return in_text or code in {f"str({name})", f"{name}.problem"} or code.startswith(f"{name}.text(")


def readings(handler):
    """Lines in which the sentence is compared, searched or cut."""
    for node in ast.walk(handler):
        operands = []
        match node:
            case ast.Compare(left=left, comparators=others):
                operands = [left, *others]
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments):
                operands = [value] * (method in OF_TEXT) + arguments * (method in OF_REGEX)
        if any(is_sentence(operand, handler.name) for operand in operands):
            yield node.lineno


def test_no_handler_reads_the_sentence_of_our_errors():
    all_handlers = list(handlers())
    assert len(all_handlers) > 20
    assert not [f"{path}:{line}" for path, handler in all_handlers for line in readings(handler)]


def test_what_would_read_it_is_seen():
    code = """
try: pass
except ConfigError as error:
    if "party" in str(error): pass
    error.problem.removeprefix("x")
    re.sub("a", "b", f"{error}")
    if error.what in known: pass
"""
    (handler,) = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ExceptHandler)]
    assert list(readings(handler)) == [4, 5, 6]
