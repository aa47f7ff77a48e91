"""Reading of texts with spans from JSON Lines.

    {"text": "took aspirin", "spans": [{"start": 5, "end": 12, "type": "drug"}]}

Such files contain public or held-out texts. A hospital's file has no spans, since its records are embedded as they are.
Files in other formats, and rows without the field `spans`, count as texts without spans.
"""

import json
from collections.abc import Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.labelled_files import read_texts
from server.documents.codec import MALFORMED, from_json
from server.domain import Example
from server.spans import Span, Spans, misfit

_EXPECTED = "a list of {start, end, type} of the planned types, in order and apart, each on some of the text"


def read_spans(path: str | Path, types: Collection[str]) -> list[Spans | None]:
    """Return the spans of each row of a file that `common.labelled_files` has read without an error.

    Args:
        path: The file.
        types: The planned types. Spans of other types are left out: a corpus may have more types than the task uses.

    Returns:
        One entry for each row, in the file's order; the entry is None if the row lacks the field `spans`. The list is
        empty for other formats.

    Raises:
        DataError: Spans are malformed, or do not fit their text; the message contains the path, the line, the number of
            the first wrong span (counted from 1) and the problem, but no text.
    """
    return [_spans(row, types, where=where) for where, row in _rows(path)]


def read_types(path: str | Path) -> set[str]:
    """Return all types of spans in a file, planned or not; errors are the same as in `read_spans`."""
    return {span.type for where, row in _rows(path) for _, span in _numbered(row.get("spans") or [], where=where)}


def read_examples(path: str | Path, types: Collection[str]) -> list[Example]:
    """Return the texts of a file that have spans; an empty list if `types` is empty.

    Raises:
        DataError: As in `read_spans`, or the file cannot be read.
    """
    if not types:
        return []
    rows = zip_longest(read_texts(path), read_spans(path, types))
    return [Example(text=text, spans=spans) for text, spans in rows if spans is not None]


def _rows(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a JSON Lines file, each with its location; yield nothing for other formats."""
    file = Path(path)
    if file.suffix.lower() != ".jsonl":
        return
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if line.strip():
            yield f"{file}:{number}", json.loads(line)


def _spans(row: dict[str, Any], types: Collection[str], *, where: str) -> Spans | None:
    given = row.get("spans")
    if given is None:
        return None
    numbered = [(number, span) for number, span in _numbered(given, where=where) if span.type in types]
    if wrong := misfit(row["text"], numbered):
        raise _wrong(wrong, where)
    return tuple(span for _, span in numbered)


def _numbered(given: object, *, where: str) -> list[tuple[int, Span]]:
    """Return the spans of a row, each with its number, counted from 1."""
    if not isinstance(given, list):
        raise _wrong("no list", where)
    numbered = []
    for number, one in enumerate(given, start=1):
        try:
            numbered.append((number, from_json(Span, one)))
        except MALFORMED:
            raise _wrong(f"span {number} that is no object with start, end and type", where) from None
    return numbered


def _wrong(got: str, where: str) -> DataError:
    do = "Mend the row; places are counted in Unicode code points, from 0"
    return DataError("wrong spans", expected=_EXPECTED, got=got, where=where, do=do)
