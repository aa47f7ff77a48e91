"""Diagnosis of a data file that cannot be read as a table of the wanted columns, without quoting it.

If a file lacks a header, its first line is a private record. So a message about a header says how many columns it has
and which of the wanted names it contains. Other names are shown only if the reader allows it, for public files and in
simulations, and only if all of them look like names of columns: short identifiers, unlike a text. Separator,
encoding and format are facts about the file and are always shown.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common.errors import DataError

Row = tuple[str, dict[str, str]]
"""A row's place in its file, for messages, such as "notes.csv:3" by its first line, and the requested columns."""

SEPARATOR = ";"
"""Character between the labels of a text, which no label's name contains."""
LONGEST_NAME = 30
"""Largest number of characters of a column's name that may be shown."""

_SEPARATORS = {"semicolons": ";", "tabs": "\t", "vertical bars": "|"}
_UNPACK = "Unpack it first."
_SHEET = "Export the sheet as CSV in UTF-8, with commas."
_TABLE = "Export it as CSV in UTF-8 or as Parquet, with the columns wanted."
_ENDINGS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), _UNPACK),
    **dict.fromkeys((".feather", ".arrow", ".pkl"), _TABLE),
    ".tsv": "Save it with commas, as .csv.",
    ".xml": "FHIR is read as JSON: export it as .json or .ndjson.",
    ".txt": "A .txt holds texts alone: records need a label each.",
}
"""Advice for a file that is not read, by the ending of its name."""
_BEGINNINGS = {
    b"PK\x03\x04": ("an Excel file or another ZIP archive", _SHEET),
    b"\xd0\xcf\x11\xe0": ("an old Excel file", _SHEET),
    b"\x1f\x8b": ("a gzip archive", _UNPACK),
    b"PAR1": ("a Parquet file", "Name it .parquet."),
    b"\xff\xfe": ("UTF-16", "Save it as UTF-8."),
    b"\xfe\xff": ("UTF-16", "Save it as UTF-8."),
}
"""Format and advice, by the first bytes of a file."""
TYPES = {int: "a number", float: "a number", bool: "true or false", type(None): "null", list: "a list"}
"""Words for values that are no texts, in messages."""


class Shape(NamedTuple):
    """The words that messages use for the parts of a table format.

    Attributes:
        unit: What the format calls a column.
        holder: Where the names of the columns stand.
        advice: Sentence that begins the advice on names.
    """

    unit: str
    holder: str
    advice: str


HEADER = Shape("column", "a header", "The first line has to name the columns")
OBJECT = Shape("field", "an object", "Each line needs these fields")
TABLE = Shape("column", "a table", "The file needs these columns")
_SAVED = ("dataset_info.json", "dataset_dict.json")
"""Files in a folder that the library `datasets` saved."""
_SAMPLE = 200
"""Number of bytes examined at the beginning of a file; a NUL among them shows that it is not text in UTF-8."""


def unknown_kind(file: Path, *, endings: Sequence[str]) -> DataError:
    """Return the error for a path that is not a file, or whose ending belongs to no format that we read."""
    if file.is_dir() or not file.exists():
        return unreadable(file, os.strerror(errno.ENOENT))
    expected = f"a name that ends in {' or '.join(endings)}"
    got = file.suffix or "no ending"
    return DataError("unknown kind of file", expected=expected, got=got, where=file, do=_ENDINGS.get(got.lower()))


def unreadable(file: Path, reason: str | None) -> DataError:
    """Return the error for a file that cannot be opened, for the given reason or because it is a folder."""
    if file.is_dir():
        return DataError("the file cannot be read", expected="a file", got="a folder", where=file, do=on_folder(file))
    return DataError("the file cannot be read", expected="a readable file", got=reason, where=file)


def on_folder(folder: Path) -> str | None:
    """Return advice if this folder, given in place of a file, was written by `datasets.save_to_disk`; else None."""
    saved = any((folder / name).exists() for name in _SAVED)
    return "Save the data set as one file: dataset.to_parquet('records.parquet')." if saved else None


def broken_row(reason: str, *, where: str) -> DataError:
    """Return the error for a broken row of a CSV file, with the reason that the module `csv` gave."""
    open_ended = reason.startswith("unexpected end")
    got = "a quote that is never closed" if open_ended else "a quote inside a field that is not doubled"
    return DataError("broken CSV row", expected="quotes that are closed and doubled inside", got=got, where=where)


def other_format(file: Path, content: bytes) -> DataError | None:
    """Return the error for content in a known format other than text in UTF-8; None if nothing indicates one."""
    for beginning, (format_, advice) in _BEGINNINGS.items():
        if content.startswith(beginning):
            return DataError("not UTF-8", expected="text in UTF-8", got=format_, where=f"{file}:1", do=advice)
    if b"\0" in content[:_SAMPLE]:
        got = "UTF-16, or no text at all"
        return DataError("not UTF-8", expected="text in UTF-8", got=got, where=f"{file}:1", do="Save it as UTF-8.")
    return None


def missing_columns(
    names: Sequence[str],
    wanted: Sequence[str],
    *,
    where: str,
    shape: Shape,
    header: str = "",
    show_names: bool,
) -> DataError:
    """Return the error for a table without some wanted columns, or with one of them twice.

    Args:
        names: Names of the table's columns, without spaces around them.
        wanted: Names of the columns that must occur exactly once.
        where: File and line.
        shape: Words for the format.
        header: The unchanged header of a CSV file, from which the separator is guessed. It is never shown.
        show_names: Show also names that are not wanted, if all look like names of columns.
    """
    columns = shape.unit + "s" * (len(names) != 1)
    shown = show_names and names and look_like_names(names)
    facts = [f"the {columns} {', '.join(names)}" if shown else f"{len(names)} {columns}"]
    counts = {name: list(names).count(name) for name in wanted}
    facts += [f"without {name}" for name, count in counts.items() if count == 0]
    facts += [f"with {name} {count} times" for name, count in counts.items() if count > 1]
    return DataError(
        "missing column",
        expected=f"{shape.holder} with {' and '.join(wanted)}, each once",
        got=", ".join(facts),
        where=where,
        do=_advice(names, wanted, shape, header),
    )


def _advice(names: Sequence[str], wanted: Sequence[str], shape: Shape, header: str) -> str:
    for name, separator in _SEPARATORS.items():
        if header.count(separator) > header.count(","):
            return f"The fields seem to be separated by {name}: save the file with commas."
    if {name.lower() for name in names} >= set(wanted) and not set(names) >= set(wanted):
        return f"Write {' and '.join(wanted)} in lower case."
    advice = f"{shape.advice}, among them {' and '.join(wanted)}."
    if [name for name in wanted if name not in names] == ["label"]:
        advice += " Or say that texts have no labels: task.labels=unlabelled, or labelled: false in client.yaml."
    return advice


def label_columns(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the wanted columns, with `labels` in place of `label` for a table that has only the former."""
    several = "label" not in names and "labels" in names
    return tuple("labels" if several and name == "label" else name for name in wanted)


def joined(name: str, value: object) -> object:
    """Return a list of `labels` as one text, with `SEPARATOR` between them; anything else unchanged."""
    if name != "labels" or not isinstance(value, list):
        return value
    return SEPARATOR.join(value) if all(isinstance(one, str) and SEPARATOR not in one for one in value) else value


def wrong_type(name: str, value: object, *, expected: str, other: str, where: str) -> DataError:
    """Return the error for a value that is not text; `other` describes a value of an unusual type."""
    if name == "labels":
        expected = f"a list of texts without semicolons, or a text of labels with {SEPARATOR} between them"
    return DataError(f"wrong {name}", expected=expected, got=TYPES.get(type(value), other), where=where)


def look_like_names(names: Sequence[object]) -> bool:
    """Return whether all names are short identifiers, so that none is a text. A label can be an identifier too."""
    return all(isinstance(name, str) and len(name) <= LONGEST_NAME and _identifies(name) for name in names)


def _identifies(name: str) -> bool:
    return name.replace("-", "_").replace(".", "_").isidentifier()
