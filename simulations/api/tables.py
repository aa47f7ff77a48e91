"""Files with the texts of a run; callers pass texts in memory (a data frame, a list of records) or a file's path.

Errors name an invalid row by its position in the table, counted from 0 as in Python, and never quote it. They show
column names only if all of them look like names, since in a file without a header the first record would be taken for
the column names.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import pandas as pd

from common.domain import Record
from common.errors import DataError
from common.file_diagnosis import AS_TEXT, check_row, joined, label_columns, look_like_names
from common.system.files import SECRET

Table = pd.DataFrame | Iterable[Mapping[str, Any] | tuple[str, str] | Record] | str | PathLike[str]
"""Labelled texts: a data frame with the columns `text` and `label`, and optionally `user`; rows as mappings with these
keys, as pairs (text, label) or as `Record`; or the path of a file as in `task.train`. Texts with several labels have
`labels`, a list, in place of `label`. Without labels, `text` is enough, and rows may be plain texts."""

Texts = pd.DataFrame | Iterable[Mapping[str, Any] | str] | str | PathLike[str]
"""Public texts: a data frame with the column `text`, optionally `topic` or `label`; rows as mappings or texts; or a
path."""


class Columns(NamedTuple):
    """Required and optional columns of a type of table; optional columns are used if the table has them."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]


LABELLED, ALONE = Columns(("text", "label"), ("user",)), Columns(("text",), ("user",))
"""Columns of records with labels, and of records without."""
PUBLIC = Columns(("text",), ("topic", "label"))


def as_file(name: str, table: object, columns: Columns, folder: Path) -> Path:
    """Return the path of a table's file: the given path, or a new file in `folder` that no other account can read.

    Args:
        name: Name of the table, for errors and the new file.
        table: A `Table` or `Texts`.
        columns: `LABELLED`, `ALONE` or `PUBLIC`.
        folder: An existing folder that is closed to other accounts.

    Raises:
        DataError: A row is invalid; the message contains the position of the first invalid row.
    """
    if is_path(table):
        return Path(table).resolve()
    path = folder / f"{name}.jsonl"
    with open(path, "x", encoding="ascii", opener=lambda new, flags: os.open(new, flags, SECRET)) as file:
        file.writelines(json.dumps(row) + "\n" for row in _checked(name, table, columns))
    return path


def is_path(table: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether the table is given as the path of a file."""
    return isinstance(table, str | PathLike)


def _checked(name: str, table: object, columns: Columns) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, after checking that each value is a non-empty text."""
    empty = True
    rows = _of_frame(name, table, columns) if isinstance(table, pd.DataFrame) else _of_rows(name, table, columns)
    for where, row in rows:
        texts = {column: _text(column, joined(column, value), where) for column, value in row.items()}
        check_row(texts, where)
        yield row
        empty = False
    if empty:
        raise DataError(name, expected="at least one row", got="none")


def _of_frame(name: str, frame: pd.DataFrame, columns: Columns) -> Iterator[tuple[str, dict[str, Any]]]:
    there = list(frame.columns)
    columns = _as_there(columns, there)
    for column in columns.needed:
        if there.count(column) != 1:
            expected = f"a column {column!r}, once"
            raise DataError(
                name, expected=expected, got=_column_names(there), do=f"Rename it: {name}.rename(columns=...)"
            )
    wanted = [*columns.needed, *(column for column in columns.optional if column in there)]
    for number, values in enumerate(frame[wanted].itertuples(index=False, name=None)):
        yield f"{name}.iloc[{number}]", dict(zip(wanted, values, strict=True))


def _of_rows(name: str, table: object, columns: Columns) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(table, Iterable) or isinstance(table, Mapping | bytes):
        expected = "a data frame, a list of rows or a path"
        raise DataError(name, expected=expected, got=type(table).__name__)
    for number, row in enumerate(table):
        yield f"{name}[{number}]", _row(f"{name}[{number}]", row, columns)


def _row(where: str, row: object, columns: Columns) -> dict[str, Any]:
    match row:
        case Record():
            label = {"label": row.label} if row.more is None else {"labels": list(row.labels)}
            named = {"text": row.text, **label, "user": row.user}
            columns = _as_there(columns, list(named))
            values: dict[str, Any] = {
                name: value
                for name, value in named.items()
                if name in columns.needed or (name in columns.optional and value)
            }
        case Mapping():
            columns = _as_there(columns, list(row))
            values = {column: row[column] for column in (*columns.needed, *columns.optional) if column in row}
        case tuple() | list():
            values = dict(zip(columns.needed, row, strict=True)) if len(row) == len(columns.needed) else {}
        case str() if columns.needed == PUBLIC.needed:
            values = {"text": row}
        case _:
            values = {}
    for column in columns.needed:
        if column not in values:
            got = _column_names(list(row)) if isinstance(row, Mapping) else type(row).__name__
            raise DataError("row", expected=f"{' and '.join(columns.needed)}", got=got, where=where)
    return values


def _as_there(columns: Columns, names: Sequence[str]) -> Columns:
    """Return the columns, with `labels` in place of `label` if the table or row has only `labels`."""
    return columns._replace(needed=label_columns(columns.needed, names))


def _text(column: str, value: object, where: str) -> str:
    """Return a value, after checking that it is a text."""
    if isinstance(value, str):
        return value
    do = AS_TEXT if column in {"label", "labels", "user"} else None
    if pd.Series([value], dtype=object).hasnans:
        raise DataError(f"missing {column}", expected="text", got="no value", where=where, do=do or "Remove the row.")
    raise DataError(column, expected="text", got=type(value).__name__, where=where, do=do)


def _column_names(names: Sequence[object]) -> str:
    """Return a phrase with the column names if all of them look like names, otherwise with their number."""
    if not names:
        return "no column"
    if not look_like_names(names):
        return f"{len(names)} column{'s' * (len(names) > 1)}, of names that may be a record"
    return f"the columns {', '.join(dict.fromkeys(map(str, names)))}"
