"""Reads rows from CSV files, whose fields are separated by commas, semicolons, tabs or vertical bars.

An Excel whose list separator is a semicolon, as in German, cannot save a sheet with commas. So the separator is found
from the header, which has to name the columns, and is told. As in `labelled_files.py`, an error message names a
location and never quotes the file.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from common import file_diagnosis
from common.errors import DataError
from common.file_diagnosis import Row

_LONGEST_FIELD = 2**31 - 1
"""Maximum number of characters in a CSV field; the default of the `csv` module, 131,072, is too low for long texts."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


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
