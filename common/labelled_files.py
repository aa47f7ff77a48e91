"""Reads records and public texts from CSV, JSON Lines, Parquet, FHIR and text files.

An error message names the file and the line, row or entry, but never quotes a text or a label, since the whole file may
be private; `file_diagnosis.py` decides how much of a header is shown. For the same reason, no error is raised inside an
`except` block for a decoder's error: that error contains the file's content and would become the new error's context.
"""

import codecs
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import fhir, file_diagnosis, tables
from common.domain import UNLABELLED, Record, is_one_population
from common.errors import DataError
from common.file_diagnosis import Row
from common.spelling import is_blank

log = logging.getLogger("caucus.data")

LONG = 100_000
"""Number of characters (about 20,000 words) above which a text causes a warning."""
_PARQUET = ".parquet"
_ENDINGS = (".csv", ".jsonl", _PARQUET, ".json", ".ndjson")
"""File name extensions of files of records."""
_FORMATTED = "texts that look like RTF, HTML, XML, PDF, HL7 or base64"
_ESCAPED = "texts with escaped characters such as &amp;"
Reader = Callable[[tuple[str, ...], tuple[str, ...]], Iterator[Row]]
"""Returns the rows of a source, given the names of required columns and of columns that are read if there are any."""


def read_records(
    path: str | Path,
    labels: Sequence[str] | None = None,
    *,
    labelled: bool = True,
    may_be_empty: bool = False,
    show_names: bool = False,
    remarks: list[str] | None = None,
    reader: Reader | None = None,
) -> list[Record]:
    """Read records from a file. Only a party, or a simulation that acts as one, reads private files with this function.

    Repeated rows are kept: each counts as a separate record.

    Args:
        path: A `.csv` with a header (`common/tables.py`) or a `.jsonl` with one object per line, both in UTF-8, or
            a `.parquet`. The columns are `text`, `label` and, in all rows or in none, `user`; other columns are
            ignored, unless their names are similar to one of these. For texts with several labels, `labels` replaces
            `label`: it contains the labels separated by `;` or, except in CSV, a list of labels. FHIR files (`.json` or
            `.ndjson`, see `common/fhir.py`) can be read too.
        labels: The allowed labels; None allows any label that is not empty. The single label `UNLABELLED` means that
            records have no labels.
        labelled: Whether each row needs a label; if not, columns with labels are ignored.
        may_be_empty: Whether a file without rows is accepted; a CSV file still needs its header, and a FHIR file its
            Bundle.
        show_names: Whether messages may show column names (`file_diagnosis.columns_of`): true in simulations and
            for files that do not belong to a party.
        remarks: Receives lines on what was found in the file, such as its separator, and on what was not read. They
            may contain counts: in a party's file these are private.
        reader: Reads the rows of a source that is no file; None for a file.

    Returns:
        The records in the order of the file; at least one unless `may_be_empty`.

    Raises:
        DataError: The file is invalid; the message contains the path and the line of the first error.
        MissingPackageError: The file is Parquet, and pyarrow is not installed.
    """
    file = Path(path)
    records = []
    labelled = labelled and not (labels and is_one_population(labels))
    columns, optional = (("text", "label") if labelled else ("text",)), ("user",)
    remarks = [] if remarks is None else remarks
    if reader:
        rows = reader(columns, optional)
    else:
        rows = _rows(file, columns, optional, show_names=show_names, remarks=remarks)
    for place, row in _checked(file, rows, may_be_empty=may_be_empty, remarks=remarks):
        first, *more = _label_set(row["labels"], place) if "labels" in row else (row.get("label", UNLABELLED),)
        if labels is not None and not {first, *more} <= set(labels):
            expected, got = f"one of {', '.join(labels)}", "another (not shown)"
            if {label.strip() for label in (first, *more)} <= set(labels):
                do = "Remove the spaces around it, and around others like it"
            elif "labels" in row and set(re.split(r"\s*[,;|/]\s*", row["labels"].strip(" ,;|/"))) <= set(labels):
                do = f"Separate the labels of a text by {file_diagnosis.SEPARATOR}"
            else:
                do = "Correct the label, or add it to task.labels"
            raise DataError("unknown label", expected=expected, got=got, where=place, do=do)
        further = tuple(more) if "labels" in row else None
        records.append(Record(text=row["text"], label=first, user=row.get("user"), more=further))
        if (records[-1].user is None) != (records[0].user is None):
            raise DataError("user", expected="one in each row, or in none", where=place)
    return records


def read_texts(path: str | Path) -> list[str]:
    """Read public texts from a file.

    Args:
        path: A `.txt` in UTF-8 with one text per line, whose empty lines are skipped; or a file in any format of
            `read_records`, with a column `text`.

    Returns:
        At least one text, in the order of the file.

    Raises:
        DataError: The file is invalid; the message contains the path and the line of the first error.
    """
    file = Path(path)
    return [row["text"] for _, row in _public_rows(file, optional=())]


def read_topics(path: str | Path) -> list[tuple[str, str | None]]:
    """Read public texts with their topics from a file.

    Args:
        path: As for `read_texts`; a row's topic is read from the column `topic` or, if there is no such column, from
            `label`.

    Returns:
        At least one text, in the order of the file, each with its topic or None.

    Raises:
        DataError: The file is invalid; the message contains the path and the line of the first error.
    """
    rows = _public_rows(Path(path), optional=("topic", "label"))
    return [(row["text"], row.get("topic", row.get("label"))) for _, row in rows]


def check_ending(path: Path) -> None:
    """Check, before a file of records is opened, that `read_records` can read files with its extension.

    Raises:
        DataError: The file has a different extension; the message contains the path.
        MissingPackageError: The file is Parquet, and pyarrow is not installed.
    """
    if path.suffix.lower() == _PARQUET:
        tables.check_parquet_installed()
    if path.suffix.lower() not in _ENDINGS:
        raise file_diagnosis.unknown_kind(path, endings=_ENDINGS)


@contextmanager
def named_by(setting: str) -> Iterator[None]:
    """Add the name of the setting that specifies a file's path, such as `task.train`, to errors about the file."""
    try:
        yield
    except DataError as error:
        error.what = f"{setting}: {error.what}"
        raise


def _label_set(joined: str, place: str) -> tuple[str, ...]:
    """Return the distinct labels in a text of labels with `SEPARATOR` between them, in order."""
    names = [name.strip() for name in joined.split(file_diagnosis.SEPARATOR)]
    if any(map(is_blank, names)):
        expected = f"names with one {file_diagnosis.SEPARATOR} between them"
        raise DataError("labels", expected=expected, got="an empty one", where=place)
    return tuple(dict.fromkeys(names))


def _public_rows(file: Path, optional: tuple[str, ...]) -> Iterator[Row]:
    if file.suffix.lower() != ".txt":
        rows = _rows(file, ("text",), optional, show_names=True, endings=(".txt", *_ENDINGS), remarks=[])
        return _checked(file, rows, may_be_empty=False, remarks=[])
    texts = [line.strip() for line in _decoded(file).split("\n")]
    if not any(texts):
        raise file_diagnosis.no_data(file)
    rows = ((f"{file}:{line}", {"text": text}) for line, text in enumerate(texts, start=1) if text)
    return _long_ones_noted(file, rows)


def _long_ones_noted(file: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows unchanged. After the last row, log the number of overlong texts and where the first is."""
    places = []
    for place, row in rows:
        if len(row["text"]) > LONG:
            places.append(place)
        yield place, row
    if places:
        log.warning(
            "%s: %d text%s of more than %d characters, the first at %s: most encoders drop what is behind the first "
            "256 to 512 tokens, hashed n-grams and built-in language models read all, slowly; split or remove them",
            file,
            len(places),
            "s" * (len(places) > 1),
            LONG,
            places[0],
        )


def _checked(file: Path, rows: Iterator[Row], *, may_be_empty: bool, remarks: list[str]) -> Iterator[Row]:
    """Yield the rows unchanged, after checking each value; add remarks on their texts after the last row."""
    number, odd = 0, Counter[str]()
    for place, row in _long_ones_noted(file, rows):
        file_diagnosis.check_row(row, place)
        number += 1
        odd[_FORMATTED] += file_diagnosis.format_of(row["text"]) is not None
        odd[_ESCAPED] += file_diagnosis.has_escapes(row["text"])
        yield place, row
    if not number and not may_be_empty:
        raise file_diagnosis.no_data(file)
    remarks += [f"{what}, read as they are ({count})" for what, count in odd.items() if count]


def _rows(
    file: Path,
    columns: tuple[str, ...],
    optional: tuple[str, ...],
    *,
    show_names: bool,
    endings: tuple[str, ...] = _ENDINGS,
    remarks: list[str],
) -> Iterator[Row]:
    match file.suffix.lower():
        case ".csv":
            content = _decoded(file)
            return tables.csv_rows(file, content, columns, optional, show_names=show_names, remarks=remarks)
        case ".jsonl":
            return _json_lines(file, _decoded(file), columns, optional, show_names)
        case ".parquet":
            return tables.parquet_rows(file, _bytes(file), columns, optional, show_names=show_names)
        case ".json" | ".ndjson":
            return fhir.fhir_rows(file, _decoded(file), columns, optional, remarks)
    raise file_diagnosis.unknown_kind(file, endings=endings)


def _json_lines(
    file: Path, content: str, columns: tuple[str, ...], optional: tuple[str, ...], show_names: bool
) -> Iterator[Row]:
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # of objects with these keys, as most lines have the same
    # Not splitlines: a JSON string may hold the other separators of Unicode as they are.
    for line, text_line in enumerate(content.split("\n"), start=1):
        if not text_line.strip():
            continue
        where = f"{file}:{line}"
        row = file_diagnosis.json_value(text_line, where=where)
        if not isinstance(row, dict):
            raise DataError("malformed JSON", expected="one JSON object a line", got="something else", where=where)
        if (keys := tuple(row)) not in known:
            known[keys] = file_diagnosis.columns_of(keys, columns, optional, where=where, show_names=show_names)
        yield where, file_diagnosis.text_values({name: row[name] for name in known[keys]}, where)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise file_diagnosis.unreadable(file, error.strerror) from None


def _decoded(file: Path) -> str:
    content = _bytes(file)
    if other := file_diagnosis.other_format(file, content):
        raise other
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    raise DataError(
        "not UTF-8",
        expected="text in UTF-8",
        got="another encoding, such as Latin-1 or Windows-1252",
        where=f"{file}:{line}",
        do="Save it as UTF-8: in Excel as CSV UTF-8, whose separator may be a comma or a semicolon.",
    )
