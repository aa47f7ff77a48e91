"""Explains why a data file cannot be read as a table with the required columns, without quoting the file.

If a file lacks a header, its first line is a private record. So a message about a header states only the number of
columns and which of the required names the header contains. Other names are shown only if all of them look like column
names, that is, short identifiers rather than text, and if the caller allows it, as for public files and in simulations.
The encoding and format are always shown. Texts that are no plain text, such as RTF, are recognised by their characters.
"""

import base64
import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import DataError
from common.phrases import series
from common.spelling import CONTROL, fold_word, is_blank

Row = tuple[str, dict[str, str]]
"""A row's location for messages, such as "notes.csv:3" (the row's first line), and its values, keyed by column."""

QUERY = ".sql.yaml"
"""File name extension of a query of a database, which a hospital alone reads (`client/database.py`)."""
SEPARATOR = ";"
"""Character that separates the labels of a text; no label's name contains it."""
LONGEST_NAME = 30
"""Maximum length, in characters, of a column name that may be shown."""

_UNPACK = "Unpack it first."
_SHEET = "Export the sheet as CSV in UTF-8, in Excel as CSV UTF-8."
_TABLE = "Export it as CSV in UTF-8 or as Parquet, with the columns wanted."
_ENDINGS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), _UNPACK),
    **dict.fromkeys((".feather", ".arrow", ".pkl"), _TABLE),
    ".tsv": "Name it .csv: tabs are read too.",
    ".xml": "FHIR is read as JSON: export it as .json or .ndjson.",
    ".txt": "A .txt holds texts alone: records need a label each.",
}
"""Advice for files in unsupported formats, keyed by file name extension."""
_BEGINNINGS = {
    b"PK\x03\x04": ("an Excel file or another ZIP archive", _SHEET),
    b"\xd0\xcf\x11\xe0": ("an old Excel file", _SHEET),
    b"\x1f\x8b": ("a gzip archive", _UNPACK),
    b"PAR1": ("a Parquet file", "Name it .parquet."),
    b"\xff\xfe": ("UTF-16", "Save it as UTF-8."),
    b"\xfe\xff": ("UTF-16", "Save it as UTF-8."),
}
"""Format and advice, keyed by the first bytes of a file in that format."""
_TYPES: Mapping[type, str] = {
    **dict.fromkeys((int, float), "a number"),
    bool: "true or false",
    type(None): "null",
    list: "a list",
    bytes: "bytes, or a text in another encoding",
}
"""Descriptions, for messages, of values that are not text, keyed by type."""
AS_TEXT = (
    "Export the column as text. pandas reads codes such as 1E50 as numbers, and labels such as NA and None as missing: "
    "pandas.read_csv(PATH, dtype=str, keep_default_na=False) reads both as they are."
)
"""Advice for a label or user that is no text: the value that was meant is lost, and no later cast brings it back."""
_SAVED = ("dataset_info.json", "dataset_dict.json")
"""Names of files by which a folder saved by the `datasets` library is recognised."""
_HALF = re.compile("[\ud800-\udfff]")
"""Pattern of one half of a surrogate pair, which JSON can express but no message can contain."""
_MARK = "\ufeff"
"""The mark of byte order, which stands before the second header if two files were joined."""
_SAMPLE = 200
"""Number of bytes examined at the beginning of a file; more than a quarter of NUL shows that it is not UTF-8."""
_TEXT_BEGINNINGS = {
    "RTF": re.compile(r"\s*\{\\rtf"),
    "PDF": re.compile(r"\s*%PDF-"),
    "HL7 version 2": re.compile(r"\s*MSH\|\^~"),
}
"""How a text begins that is no plain text, keyed by its format."""
_MARKUP = re.compile(r"<(?:\?xml|!doctype|html|br\s*/?>|/[a-z][\w:-]*\s*>)", re.IGNORECASE)
"""What texts in HTML, XML or C-CDA contain: a tag that begins the whole, ends an element, or breaks a line."""
_ESCAPE = re.compile("&(?:#[0-9]+|#x[0-9a-f]+|[a-z]{2,8});", re.IGNORECASE)
_SHORTEST_BASE64, _LONGEST_WORD = 24, 64
"""Number of characters below which a word is not taken for base64, and from which it is, whatever it encodes."""


def unknown_kind(file: Path, *, endings: Sequence[str]) -> DataError:
    """Return the error for a path that is not a file, or that has an unsupported extension."""
    if file.name.endswith(QUERY):
        do = "Only a hospital reads one: caucus-party init --records. Export a file."
        return DataError("unknown kind of file", expected="a file of texts", got="a query", where=file, do=do)
    if file.is_dir() or not file.exists():
        return unreadable(file, os.strerror(errno.ENOENT))
    expected = f"a name that ends in {' or '.join(endings)}"
    got = file.suffix or "no ending"
    return DataError("unknown kind of file", expected=expected, got=got, where=file, do=_ENDINGS.get(got.lower()))


def unreadable(file: Path, reason: str | None) -> DataError:
    """Return the error for a file that cannot be opened, either for the given reason or because it is a folder."""
    if file.is_dir():
        do = advice_on_folder(file) or "Give a file in it"
        return DataError("the file cannot be read", expected="a file", got="a folder", where=file, do=do)
    return DataError("the file cannot be read", got=reason, where=file, do="Check its path and its permissions")


def advice_on_folder(folder: Path) -> str | None:
    """Return advice if a folder was given in place of a file and `datasets.save_to_disk` wrote it; otherwise None."""
    saved = any((folder / name).exists() for name in _SAVED)
    return "Save the data set as one file: dataset.to_parquet('records.parquet')." if saved else None


def no_data(file: Path) -> DataError:
    """Return the error for a file without rows, or without the header that a CSV file needs in any case."""
    return DataError("the file holds no data", expected="at least one row", where=f"{file}:1")


def other_format(file: Path, content: bytes) -> DataError | None:
    """Return the error for content in a known format other than UTF-8 text; None if no such format is recognised."""
    for beginning, (format_, advice) in _BEGINNINGS.items():
        if content.startswith(beginning):
            return DataError("not UTF-8", expected="text in UTF-8", got=format_, where=f"{file}:1", do=advice)
    if 4 * content[:_SAMPLE].count(b"\0") > len(content[:_SAMPLE]):
        got = "UTF-16, or no text at all"
        return DataError("not UTF-8", expected="text in UTF-8", got=got, where=f"{file}:1", do="Save it as UTF-8.")
    return None


def columns_of(
    names: Sequence[str],
    columns: Sequence[str],
    optional: Sequence[str],
    *,
    where: str,
    show_names: bool,
) -> tuple[str, ...]:
    """Return the columns to read from a table: the required ones, and the optional ones that it has.

    A column that occurs twice, or in another spelling, would be lost without a word, and with it, for example, whose
    the records are.

    Args:
        names: The table's column names, without surrounding spaces.
        columns: Names of the required columns; a table may have `labels` in place of `label`.
        optional: Names of the columns that are read where the table has them.
        where: File and line.
        show_names: Whether to show the other column names too, provided that all of them look like column names.

    Raises:
        DataError: A required column is missing or occurs twice; or any of the columns occurs twice or in another
            spelling (`common.spelling.fold_word`).
    """
    wanted = label_columns(columns, names)
    if any(names.count(column) != 1 for column in wanted):
        raise _missing_columns(names, wanted, where=where, show_names=show_names)
    spelt = [fold_word(name) for name in names]
    for column in dict.fromkeys((*columns, *wanted, *optional)):
        similar = spelt.count(fold_word(column))
        if similar != names.count(column) or similar > 1:
            expected = f"`{column}` once or not at all, and no similar name"
            got = f"{similar} like it" if similar > 1 else "another spelling of it"
            do = f"Write {column} in lower case, without spaces, and rename or remove all other columns like it."
            raise DataError(f"column {column}", expected=expected, got=got, where=where, do=do)
    return (*wanted, *(column for column in optional if column in names))


def _missing_columns(names: Sequence[str], wanted: Sequence[str], *, where: str, show_names: bool) -> DataError:
    columns = "column" + "s" * (len(names) != 1)
    shown = show_names and names and look_like_names(names)
    found = f"the {columns} {', '.join(names)}" if shown else f"{len(names)} {columns}"
    missing = [name for name in wanted if name not in names]
    problems = [f"there is no column {' and no column '.join(missing)}"] * bool(missing)
    problems += [f"there are {names.count(name)} columns named {name}" for name in wanted if names.count(name) > 1]
    return DataError(series(problems, "and"), got=found, where=where, do=_advice(names, wanted))


def json_value(text: str, *, where: str) -> object:
    """Return the value of a JSON text; None if the text is malformed.

    Raises:
        DataError: An object has a key twice, of which only one value would be read.
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(values := dict(pairs)) < len(pairs):
            raise DataError("JSON", expected="each key of an object once", got="a key twice", where=where)
        return values

    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def _advice(names: Sequence[str], wanted: Sequence[str]) -> str:
    if {name.lower() for name in names} >= set(wanted) and not set(names) >= set(wanted):
        return f"Write {' and '.join(wanted)} in lower case."
    advice = f"Name {' and '.join(wanted)} in the first line of a CSV file, in each object of JSON Lines or in a query."
    if [name for name in wanted if name not in names] == ["label"]:
        advice += " Or say that texts have no labels: task.labels=unlabelled, or labelled: false in client.yaml."
    return advice


def label_columns(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the required columns, with `label` replaced by `labels` for a table that has only `labels`."""
    several = "label" not in names and "labels" in names
    return tuple("labels" if several and name == "label" else name for name in wanted)


def join_labels(name: str, value: object) -> object:
    """Join a list of `labels` into one text, with `SEPARATOR` between them; return any other value unchanged."""
    if name != "labels" or not isinstance(value, list):
        return value
    return SEPARATOR.join(value) if all(isinstance(one, str) and SEPARATOR not in one for one in value) else value


def check_row(row: Mapping[str, str], where: str) -> None:
    """Check the values of a row, of any kind of file: what can be seen of them, and what no message can contain.

    Raises:
        DataError: A value is blank, or has half a surrogate pair, NUL, or a control character if it is not the text; or
            the values are the columns' names.
    """
    for name, value in row.items():
        if is_blank(value):
            raise DataError(f"empty {name}", where=where, do="Fill it in or remove the row.")
        if not value.isascii() and _HALF.search(value):
            raise DataError(f"broken {name}", expected="valid Unicode", where=where)
        if "\0" in value or (name != "text" and CONTROL.search(value)):
            expected, got = ("no NUL", "one") if name == "text" else ("a name on one line", "a control character in it")
            raise DataError(f"broken {name}", expected=expected, got=got, where=where, do="Take it out of the value.")
    if {value.removeprefix(_MARK).strip() for value in row.values()} == {*row}:
        got = "the header again, as in files that were joined"
        raise DataError("broken row", expected="a record", got=got, where=where, do="Remove the row.")


def text_values(row: Mapping[str, object], where: str) -> dict[str, str]:
    """Return the values of a row, with a list of labels joined into one text.

    Raises:
        DataError: A value is no text.
    """
    texts = {}
    for name, given in row.items():
        value = join_labels(name, given)
        if not isinstance(value, str):
            labels = f"a list of texts without semicolons, or a text of labels with {SEPARATOR} between them"
            expected, got = labels if name == "labels" else "a text", _TYPES.get(type(value), "another type")
            do = AS_TEXT if name != "text" else None
            raise DataError(f"wrong {name}", expected=expected, got=got, where=where, do=do)
        texts[name] = value
    return texts


def look_like_names(names: Sequence[object]) -> bool:
    """Return whether all names are short identifiers and therefore not texts; they may still be labels."""
    return all(isinstance(name, str) and len(name) <= LONGEST_NAME and _identifies(name) for name in names)


def _identifies(name: str) -> bool:
    return name.replace("-", "_").replace(".", "_").isidentifier()


def format_of(text: str) -> str | None:
    """Return the format of a text that is no plain text, such as "RTF"; None if no such format is recognised.

    HTML, XML and C-CDA are recognised by tags that clinical notes do not have, such as one that closes an element.
    """
    for name, pattern in _TEXT_BEGINNINGS.items():
        if pattern.match(text):
            return name
    if "<" in text and _MARKUP.search(text):  # the first is the faster one, and most texts have none
        return "HTML or XML"
    return "base64" if _is_base64(text) else None


def has_escapes(text: str) -> bool:
    """Return whether a text has characters that HTML or XML writes as names or numbers, such as &amp; or &#228;."""
    return "&" in text and _ESCAPE.search(text) is not None


def _is_base64(text: str) -> bool:
    """Return whether a text is one word, perhaps in several lines, of base64 that is long or encodes text."""
    word = "" if " " in text else "".join(text.split())
    if len(word) < _SHORTEST_BASE64 or len(word) % 4:
        return False
    try:
        content = base64.b64decode(word, validate=True)
        return len(word) >= _LONGEST_WORD or content.decode().isprintable()
    except ValueError:
        return False
