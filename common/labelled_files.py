"""Reads records and public texts from CSV, JSON Lines and text files.

The one rule: a message names file and line and never quotes the file, neither text nor label nor header, since all of
it may be private. For the same reason no error is raised inside an `except` block of a decoder: the decoder's error
carries the file and would become its context.
"""

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common.domain import Record
from common.errors import DataError

_Row = tuple[int, dict[str, str]]
"""Number of a row's first line, from 1, and the requested columns."""


def read_records(path: str | Path, labels: Sequence[str] | None = None, *, may_be_empty: bool = False) -> list[Record]:
    """Reads labelled records; only a party, or a simulation that plays one, reads private files with it.

    Repeated rows are kept: each is a record and votes.

    Args:
        path: A `.csv` with a header, or a `.jsonl` with an object a line, both UTF-8, with `text` and `label`; and
            `user`, in all rows or in none. Further columns are ignored.
        labels: The labels allowed; None allows any that is not empty.
        may_be_empty: Accept a file without rows; a CSV needs its header.

    Returns:
        The records in the file's order; at least one unless it may be empty.

    Raises:
        DataError: With path and line of the first error.
    """
    file = Path(path)
    records = []
    for line, row in _rows(file, ("text", "label"), optional=("user",), may_be_empty=may_be_empty):
        if labels is not None and row["label"] not in labels:
            expected = f"one of {', '.join(labels)}"
            raise DataError("unknown label", expected=expected, got="another (not shown)", where=f"{file}:{line}")
        records.append(Record(text=row["text"], label=row["label"], user=row.get("user")))
        if (records[-1].user is None) != (records[0].user is None):
            raise DataError("user", expected="one in each row, or in none", where=f"{file}:{line}")
    return records


def read_texts(path: str | Path) -> list[str]:
    """Reads public texts.

    Args:
        path: A `.txt` with one text a line, empty lines skipped; or a `.csv` or `.jsonl` with `text`. UTF-8.

    Returns:
        At least one text, in the file's order.

    Raises:
        DataError: With path and line of the first error.
    """
    file = Path(path)
    return _lines(file) if file.suffix.lower() == ".txt" else [row["text"] for _, row in _rows(file, ("text",))]


def read_topics(path: str | Path) -> list[tuple[str, str | None]]:
    """Reads public texts with their topics.

    Args:
        path: As in `read_texts`; a row's topic is in `topic` or, if it has none, in `label`.

    Returns:
        At least one text, in the file's order, each with its topic or None.

    Raises:
        DataError: With path and line of the first error.
    """
    file = Path(path)
    if file.suffix.lower() == ".txt":
        return [(text, None) for text in _lines(file)]
    rows = _rows(file, ("text",), optional=("topic", "label"))
    return [(row["text"], row.get("topic", row.get("label"))) for _, row in rows]


def duplicates(records: Sequence[Record]) -> int:
    """Number of records equal to an earlier one in text and label. A private count, for a simulation's report alone."""
    return len(records) - len(set(records))


def _lines(file: Path) -> list[str]:
    texts = [line.strip() for line in _decoded(file).split("\n") if line.strip()]
    if not texts:
        raise _empty(file)
    return texts


def _rows(
    file: Path, columns: tuple[str, ...], optional: tuple[str, ...] = (), *, may_be_empty: bool = False
) -> Iterator[_Row]:
    parsers: dict[str, Callable[[Path, tuple[str, ...], tuple[str, ...]], Iterator[_Row]]]
    parsers = {".csv": _csv, ".jsonl": _json_lines}
    parse = parsers.get(file.suffix.lower())
    if parse is None:
        raise DataError("unknown kind of file", expected="a name that ends in .csv or .jsonl", where=file)
    empty = True
    for line, row in parse(file, columns, optional):
        for name, value in row.items():
            if not value.strip():
                raise DataError(f"empty {name}", where=f"{file}:{line}", do="Fill it in or remove the row.")
            if not _is_unicode(value):
                raise DataError(f"broken {name}", expected="valid Unicode", where=f"{file}:{line}")
        yield line, row
        empty = False
    if empty and not (may_be_empty and (parse is _json_lines or _decoded(file).strip())):
        raise _empty(file)


def _csv(file: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[_Row]:
    # strict: a stray or unterminated quote is an error, not a text that swallows the rows behind it.
    reader = csv.reader(io.StringIO(_decoded(file), newline=""), strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            expected = f"quotes that are closed and doubled inside, fields below {csv.field_size_limit():,} characters"
            raise DataError("broken CSV row", expected=expected, where=f"{file}:{line}") from None
        if not fields:
            continue
        if header is None:
            header = [name.strip() for name in fields]
            if any(header.count(column) != 1 for column in columns):
                expected = f"a header with {' and '.join(columns)}, each once"
                raise DataError("missing column", expected=expected, where=f"{file}:{line}")
            columns += tuple(column for column in optional if column in header)
        elif len(fields) != len(header):
            expected = f"{len(header)} fields as in the header"
            raise DataError("broken CSV row", expected=expected, got=len(fields), where=f"{file}:{line}")
        else:
            yield line, {column: fields[header.index(column)] for column in columns}


def _json_lines(file: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[_Row]:
    # Not splitlines: a JSON string may hold the other separators of Unicode as they are.
    for line, content in enumerate(_decoded(file).split("\n"), start=1):
        if not content.strip():
            continue
        row = _object(content)
        if row is None:
            raise DataError("malformed JSON", expected="one JSON object a line", where=f"{file}:{line}")
        names = (*columns, *(column for column in optional if column in row))
        if not all(isinstance(row.get(column), str) for column in names):
            expected = f"an object with the strings {' and '.join(columns)}"
            raise DataError("missing column", expected=expected, where=f"{file}:{line}")
        yield line, {column: row[column] for column in names}


def _object(content: str) -> dict[str, Any] | None:
    try:
        row = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _decoded(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError("the file cannot be read", got=error.strerror, where=file) from None
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    raise DataError("not UTF-8", expected="text in UTF-8", where=f"{file}:{line}", do="Convert the file.")


def _is_unicode(value: str) -> bool:
    """Whether the value has no lone surrogates, which JSON can express and no message can carry."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _empty(file: Path) -> DataError:
    return DataError("the file holds no data", expected="at least one row", where=f"{file}:1")
