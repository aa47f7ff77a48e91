"""A settings file in YAML whose errors name the key and the line.

YAML keeps the last of two equal keys: a second `limits:` would silently replace the first. Here this is an error.
Numbers such as 1e-4 are read as numbers, as in Hydra; YAML 1.1 reads them as text.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from common.errors import ConfigError

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """YAML loader that reads numbers such as 1e-4."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """The content of one YAML file.

    Attributes:
        path: The file.
        values: The content as plain mappings, lists and scalars; None if the file is empty.
        lines: Line of each key, keyed by its full name, such as "limits.max_epsilon".
        empty: Full names of the keys with nothing behind them, which YAML reads as null.
        ends: Whether the last line ends with a newline; without one, its value may have been cut off.
    """

    path: Path
    values: Any
    lines: dict[str, int] = field(repr=False)
    empty: frozenset[str] = frozenset()
    ends: bool = True

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a YAML file.

        Raises:
            ConfigError: The file is not YAML, or has a key twice; the message contains the line if it is known.
            OSError: The file cannot be read.
        """
        lines: dict[str, int] = {}
        empty = set()
        content = path.read_bytes()
        try:
            loader = _Loader(content)
            node = loader.get_single_node()
            for name, line, value in _keys(node, "", set()):
                if name in lines:
                    raise ConfigError(
                        name,
                        expected="one entry",
                        got=f"another in line {lines[name]}",
                        where=f"{path}:{line}",
                        do="Remove one of the two",
                    )
                lines[name] = line
                if isinstance(value, yaml.ScalarNode) and not value.value and value.style is None:  # not ""
                    empty.add(name)
            values = None if node is None else loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{path}:{mark.line + 1}" if mark else path
            raise _not_yaml(path.name, error.problem or error.context, where) from None
        except yaml.YAMLError as error:  # bytes that are no text
            raise _not_yaml(path.name, str(error).partition("\n")[0], path) from None
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):  # they quote it
            raise _not_yaml(path.name, "a value that is not what it looks like, as the date 2001-99-99", path) from None
        return cls(path=path, values=values, lines=lines, empty=frozenset(empty), ends=content.endswith(b"\n"))

    def where(self, key: str) -> str:
        """Return the file and line of a key, or of the section that should have it."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return f"{self.path}:{self.lines[key]}" if key else str(self.path)


def _not_yaml(name: str, got: object, where: object) -> ConfigError:
    return ConfigError(name, expected="YAML", got=got, where=where, do="Correct it there")


@contextmanager
def add_location(where: Callable[[str], object]) -> Iterator[None]:
    """Add the location of a key, such as `YamlFile.where` returns it, to errors about the key in the context."""
    try:
        yield
    except ConfigError as error:
        raise error.placed(where(error.what)) from None


def _keys(node: yaml.Node, section: str, above: set[int]) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield every key's full name, line and value; `above`: IDs of enclosing nodes, which an alias may repeat."""
    if not isinstance(node, yaml.MappingNode) or id(node) in above:
        return
    for key, value in node.value:
        name = f"{section}{key.value}"
        yield name, key.start_mark.line + 1, value
        yield from _keys(value, f"{name}.", above | {id(node)})
