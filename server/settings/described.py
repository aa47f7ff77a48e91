"""One-sentence descriptions of settings and methods, taken from their docstrings, for forms and other pages."""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def setting_in_a_sentence(schema: type[Any], name: str) -> str:
    """Return the first sentence of a setting's description, from its class or the nearest parent class with one."""
    described = re.compile(rf"^ {{8}}{name}: (.+?)(?=^ {{8}}\S|^ {{0,4}}\S|\Z)", re.MULTILINE | re.DOTALL)
    for parent in schema.__mro__:
        if match := described.search(parent.__doc__ or ""):
            return _line(match[1].partition(". ")[0].partition(".\n")[0].rstrip(". \n") + ".")
    return ""


def method_in_a_sentence(schema: type[Any]) -> str:
    """Return the first sentence of a method's own file, or of its settings if it is a variant of another method.

    Args:
        schema: Settings class of the method; the class of a variant inherits `made_by` from the other method.
    """
    if "made_by" in vars(schema):
        return _of_file(schema.made_by)
    return _line((schema.__doc__ or "").partition("\n\n")[0])


@cache
def _of_file(made_by: str) -> str:
    """Return the first sentence of a file, which is parsed, not imported, as importing it may need large packages."""
    module = find_spec(made_by.rpartition(".")[0])
    if module is None or module.origin is None:
        return ""
    docstring = ast.get_docstring(ast.parse(Path(module.origin).read_text("utf-8"))) or ""
    return _line(docstring.partition("\n\n")[0])


def _line(text: str) -> str:
    """Return a text as one line, without backticks."""
    return " ".join(text.replace("`", "").split())
