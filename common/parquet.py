"""Reads rows from Parquet files; this requires pyarrow (extra `parquet`).

As in `labelled_files.py`, an error message names a location and never quotes the file, and no error is raised inside an
`except` block: pyarrow's errors can contain values.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import file_diagnosis
from common.errors import DataError
from common.system.extras import needs

_JOINED = b"PAR1PAR1"
"""What stands between two Parquet files that were joined: the end of one, and the beginning of the next."""


def check_installed() -> None:
    """Raise MissingPackageError if pyarrow, which reads Parquet, is not installed."""
    needs("a Parquet file", "pyarrow", extra="parquet")


def parquet_rows(
    file: Path, content: bytes, columns: tuple[str, ...], optional: tuple[str, ...], *, show_names: bool
) -> Iterator[file_diagnosis.Row]:
    """Yield the rows of a Parquet file.

    Args:
        file: The file's path, for error messages.
        content: The file's content.
        columns: Names of the required columns.
        optional: Names of columns that are read if the file has them.
        show_names: Whether messages may show column names.

    Raises:
        DataError: The file is damaged, lacks a column, or contains a value that is not text; the message contains the
            file's path and, for a value, the row.
        MissingPackageError: pyarrow is not installed.
    """
    check_installed()
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
                table = table.set_column(place, field.name, pa.array([b""] * len(table)))
        return names, table.to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        return None


def _is_plain(kind: object) -> bool:
    """Return whether all values of a type are texts or numbers, or lists of them, which Python can always express."""
    from pyarrow import types

    inner = getattr(kind, "value_type", kind)  # of a list, or of categories
    texts = types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner)
    return texts or types.is_null(inner) or (types.is_primitive(inner) and not types.is_temporal(inner))
