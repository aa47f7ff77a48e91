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
from common.file_diagnosis import AS_TEXT, check_row, join_labels, label_columns, look_like_names
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
    for where, row in _rows(name, table, columns):
        values = _row(where, row, columns)
        check_row({column: _text(column, join_labels(column, value), where) for column, value in values.items()}, where)
        yield values
        empty = False
    if empty:
        raise DataError(name, expected="at least one row", got="none")


def _rows(name: str, table: object, columns: Columns) -> Iterator[tuple[str, object]]:
    """Yield each row with its place in the table; a row of a data frame is a mapping."""
    if isinstance(table, pd.DataFrame):
        there = list(table.columns)
        wanted = [*label_columns(columns.needed, there), *(column for column in columns.optional if column in there)]
        for column in wanted:
            if there.count(column) != 1:
                expected, do = f"a column {column!r}, once", f"Rename it: {name}.rename(columns=...)"
                raise DataError(name, expected=expected, got=_column_names(there), do=do)
        for number, values in enumerate(table[wanted].itertuples(index=False, name=None)):
            yield f"{name}.iloc[{number}]", dict(zip(wanted, values, strict=True))
    elif not isinstance(table, Iterable) or isinstance(table, Mapping | bytes):
        expected = "a data frame, a list of rows or a path"
        raise DataError(name, expected=expected, got=type(table).__name__)
    else:
        yield from ((f"{name}[{number}]", row) for number, row in enumerate(table))


def _row(where: str, row: object, columns: Columns) -> dict[str, Any]:
    """Return the columns of a row; texts with several labels have `labels` in place of `label`."""
    needed, values = columns.needed, dict[str, Any]()
    if isinstance(row, Record):
        label = {"label": row.label} if row.more is None else {"labels": list(row.labels)}
        row = {"text": row.text, **label} | ({"user": row.user} if row.user else {})
    match row:
        case Mapping():
            needed = label_columns(needed, list(row))
            values = {column: row[column] for column in (*needed, *columns.optional) if column in row}
        case tuple() | list() if len(row) == len(needed):
            values = dict(zip(needed, row, strict=True))
        case str() if needed == PUBLIC.needed:
            values = {"text": row}
    if not values.keys() >= set(needed):
        got = _column_names(list(row)) if isinstance(row, Mapping) else type(row).__name__
        raise DataError("row", expected=" and ".join(needed), got=got, where=where)
    return values


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
