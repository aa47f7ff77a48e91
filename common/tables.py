"""Reads rows from CSV files, and from Parquet files, which requires pyarrow (extra `parquet`).

The fields of a CSV file are separated by commas, semicolons, tabs or vertical bars. An Excel whose list separator is a
semicolon, as in German, cannot save a sheet with commas. So the separator is found from the header, which has to name
the columns, and is told. As in `labelled_files.py`, an error message names a location and never quotes the file, and no
error is raised inside an `except` block: pyarrow's errors can contain values.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import file_diagnosis
from common.errors import DataError
from common.file_diagnosis import Row
from common.system.extras import needs

_LONGEST_FIELD = 2**31 - 1
"""Maximum number of characters in a CSV field; the default of the `csv` module, 131,072, is too low for long texts."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_JOINED = b"PAR1PAR1"
"""What stands between two Parquet files that were joined: the end of one, and the beginning of the next."""


def csv_rows(
    file: Path,
    content: str,
    columns: tuple[str, ...],
    optional: tuple[str, ...],
    *,
    show_names: bool,
    remarks: list[str],
) -> Iterator[Row]:
    """Yield the rows of a CSV file.

    Args:
        file: The file's path, for error messages.
        content: The file's content.
        columns: Names of the required columns.
        optional: Names of columns that are read if the header has them.
        show_names: Whether messages may show column names.
        remarks: Receives a line that names the separator, if it is no comma.

    Raises:
        DataError: A row is broken, or the header or a column is missing; the message contains the line.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    separator = _separator(content, {*columns, *optional, *file_diagnosis.label_columns(columns, ("labels",))})
    if separator != ",":
        remarks.append(f"its fields are separated by {_SEPARATORS[separator]}")
    parsed = _fields(file, content, separator)
    where, fields = next(parsed, (f"{file}:1", []))
    header = [name.strip() for name in fields]
    if not header:
        raise file_diagnosis.no_data(file)
    columns = file_diagnosis.columns_of(header, columns, optional, where=where, show_names=show_names)
    for where, fields in parsed:
        if len(fields) != len(header):
            expected = f"{len(header)} fields as in the header"
            raise DataError("broken CSV row", expected=expected, got=len(fields), where=where)
        yield where, {column: fields[header.index(column)] for column in columns}


def parquet_rows(
    file: Path, content: bytes, columns: tuple[str, ...], optional: tuple[str, ...], *, show_names: bool
) -> Iterator[Row]:
    """Yield the rows of a Parquet file; the arguments are those of `csv_rows`.

    Raises:
        DataError: The file is damaged, lacks a column, or contains a value that is not text; the message contains the
            file's path and, for a value, the row.
        MissingPackageError: pyarrow is not installed.
    """
    check_parquet_installed()
    if _JOINED in content:
        got = "several, of which only one would be read"
        raise DataError("no Parquet file", expected="one file", got=got, where=file, do="Join their tables instead.")
    read = _table(content, (*columns, *optional))
    if read is None:
        expected, got = "a file that pyarrow reads", "another or a damaged one"
        raise DataError("no Parquet file", expected=expected, got=got, where=file)
    names, table = read
    file_diagnosis.columns_of(names, columns, optional, where=str(file), show_names=show_names)
    for number, row in enumerate(table, start=1):
        place = f"{file}, row {number}"
        yield place, file_diagnosis.text_values(row, place)


def check_parquet_installed() -> None:
    """Raise MissingPackageError if pyarrow, which reads Parquet, is not installed."""
    needs("a Parquet file", "pyarrow", extra="parquet")


def _separator(content: str, names: set[str]) -> str:
    """Return the separator under which the first row has most of the names or, if it has none, most fields."""

    def names_and_fields(separator: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
        fields = next(filter(None, reader), [])
        return len(names & {field.strip() for field in fields}), len(fields)

    return max(_SEPARATORS, key=names_and_fields)  # the first of equal ones, a comma


def _fields(file: Path, content: str, separator: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of each row that is not empty, with the location of its first line."""
    # strict: a stray or unterminated quote is an error, not a text that swallows the rows behind it.
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    where = f"{file}:1"
    try:
        for fields in reader:
            if fields:
                yield where, fields
            where = f"{file}:{reader.line_num + 1}"
    except csv.Error:
        expected, got = "quotes that are closed, and doubled inside a field", "others"
        raise DataError("broken CSV row", expected=expected, got=got, where=where) from None


def _table(content: bytes, wanted: tuple[str, ...]) -> tuple[list[str], list[dict[str, Any]]] | None:
    """Return all column names, and the rows with the wanted columns; None if the content cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # From memory: pyarrow would read a folder as one table, and a path as an address.
        opened = parquet.ParquetFile(pa.BufferReader(content))
        names = list(opened.schema_arrow.names)
        wanted = file_diagnosis.label_columns(wanted, names)
        table = opened.read(columns=[name for name in dict.fromkeys(wanted) if names.count(name) == 1])
        table.validate(full=True)  # else a text that is no UTF-8 ends in an error that quotes it
        for place, field in enumerate(table.schema):
            if not _is_plain(field.type):  # a time, for example, can be out of the range of Python's
                table = table.set_column(place, field.name, pa.array([{"another": None}] * len(table)))
        return names, table.to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        return None


def _is_plain(kind: object) -> bool:
    """Return whether all values of a type are texts or numbers, or lists of them, which Python can always express."""
    from pyarrow import types

    inner = getattr(kind, "value_type", kind)  # of a list, or of categories
    texts = types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner)
    return texts or types.is_null(inner) or (types.is_primitive(inner) and not types.is_temporal(inner))
