"""Reading the files of a run folder for its report. Files that cannot be read are named, never quoted."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
JsonObject = Mapping[str, Any]

_FOREIGN = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors of `parse` for a file in another format."""


def read(path: Path, parse: Callable[[str], _T], problems: list[str], *, needed: bool = True) -> _T | None:
    """Parse a file, or add the reason to `problems` if that fails.

    Args:
        path: The file.
        parse: Converts the content of the file.
        problems: Receives a sentence without a full stop, except for a missing file that is not `needed`.
        needed: Whether every run has the file.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problems.extend([f"{path.name} is missing"] * needed)
    except OSError:
        problems.append(f"{path.name} cannot be opened")
    except json.JSONDecodeError:
        problems.append(f"{path.name} is not valid JSON")
    except UnicodeDecodeError:
        problems.append(f"{path.name} is not UTF-8")
    except _FOREIGN:
        problems.append(f"{path.name} is not in the format of this program")
    return None


def read_lines(path: Path, parse: Callable[[Any], _T], problems: list[str]) -> list[_T]:
    """Parse each line of a JSON Lines file; unreadable lines are counted, and the first one is named."""
    # Not splitlines: JSON allows other line separators, such as U+2028, inside a text.
    lines = read(path, lambda text: [line for line in text.split("\n") if line.strip()], problems) or []
    parsed, unreadable = [], []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(parse(json.loads(line)))
        except _FOREIGN:
            unreadable.append(number)
    if unreadable:
        problems.append(
            f"{path.name}: {len(unreadable)} of {len(lines)} lines cannot be read, the first is line {unreadable[0]}"
        )
    return parsed


def as_object(text: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        TypeError: The value is not an object.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def finite(value: object) -> float | None:
    """The value as a finite float; None for anything else."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
