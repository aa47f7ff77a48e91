"""Documents in files, written atomically, and read strictly or with a list of problems.

A file that contains one JSON object ends with `"format": 1`, the version of its format. The version increases only if
an older program would misread a new file, not if a field is added. A file without a version was written by version
0.2.0 of Caucus or earlier.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from common.system.files import write_atomic
from server.documents.codec import MALFORMED, FieldError, from_json, strict, to_json

FORMAT = 1
"""Version of the format that this program writes, and the highest version that it reads."""

_FORMAT = "format"
_T = TypeVar("_T")


class LaterFormatError(ValueError):
    """The file was written by a later version of Caucus."""


class Document:
    """A frozen dataclass that is stored as a JSON object, within a document or as a whole file in the run folder.

    Attributes:
        FILE: The document's file name in the run folder, if it is stored as a file there.
    """

    __slots__ = ()
    FILE: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the document as strict JSON, with the fields in the order of their declaration."""
        return to_json(self)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the document back from the form of `to_json`, or from that of an earlier version.

        Raises:
            KeyError, TypeError, ValueError: `value` is not the JSON of such a document.
        """
        return from_json(cls, value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the document from the text of its file; errors are those of `of_file`."""
        return cls.of_file(json.loads(text))

    @classmethod
    def of_file(cls, value: object) -> Self:
        """Return the document from the parsed JSON of its file.

        Raises:
            LaterFormatError: A later version of Caucus wrote it.
            KeyError, TypeError, ValueError: As in `from_json`.
        """
        if isinstance(value, Mapping) and _FORMAT in value:
            number = value[_FORMAT]
            if not isinstance(number, int):
                raise FieldError(_FORMAT, "a whole number")
            if number > FORMAT:
                raise LaterFormatError
            value = {key: inner for key, inner in value.items() if key != _FORMAT}
        return cls.from_json(value)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the document from a run folder.

        Raises:
            OSError: The file does not exist or cannot be opened.
            LaterFormatError, KeyError, TypeError, ValueError: As in `of_file`.
        """
        return cls.parse((folder / cls.FILE).read_text(encoding="utf-8"))

    @classmethod
    def load_if_there(cls, folder: Path) -> Self | None:
        """Return the document from a run folder; None if the file does not exist."""
        return cls.load(folder) if (folder / cls.FILE).exists() else None

    @classmethod
    def read(cls, folder: Path, problems: list[str], *, needed: bool = True) -> Self | None:
        """Return the document from a run folder; if that fails, append the reason to `problems` and return None.

        The arguments are the same as for this module's `read_document` function.
        """
        return read_document(folder / cls.FILE, cls.parse, problems, needed=needed)

    def save(self, folder: Path, name: str | None = None) -> None:
        """Write the document to a run folder atomically, with the format's version; `name` replaces `FILE`."""
        write_json(folder / (name or self.FILE), self.to_json() | {_FORMAT: FORMAT})


def write_json(path: Path, value: object) -> None:
    """Write a document or a mapping as JSON, atomically."""
    write_atomic(path, json.dumps(strict(value), ensure_ascii=False, indent=2).encode())


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write a JSON Lines file atomically, with one document or mapping per line."""
    write_atomic(path, "".join(json.dumps(strict(row), ensure_ascii=False) + "\n" for row in rows).encode())


def read_document(path: Path, parse: Callable[[str], _T], problems: list[str], *, needed: bool = True) -> _T | None:
    """Parse a file; if that fails, append the reason to `problems`, without quoting the file, and return None.

    Args:
        path: The file.
        parse: Function that converts the content of the file.
        problems: List to which the reason is appended, as a sentence without a full stop. If the file is missing and
            not `needed`, nothing is appended.
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
    except LaterFormatError:
        problems.append(f"{path.name} is from a later version of Caucus")
    except MALFORMED:
        problems.append(f"{path.name} is not in the format of this program")
    return None


def read_lines(path: Path, parse: Callable[[Any], _T], problems: list[str]) -> list[_T]:
    """Parse each line of a JSON Lines file; report in `problems` how many lines are unreadable, and the first one."""
    lines = read_document(path, split, problems) or []
    parsed, unreadable = [], []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(parse(json.loads(line)))
        except MALFORMED:
            unreadable.append(number)
    if unreadable:
        problems.append(
            f"{path.name}: {len(unreadable)} of {len(lines)} lines cannot be read, the first is line {unreadable[0]}"
        )
    return parsed


def split(text: str) -> list[str]:
    """Return the lines of a JSON Lines file; `splitlines` would also split at other separators, such as U+2028."""
    return [line for line in text.split("\n") if line.strip()]
