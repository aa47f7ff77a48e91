"""Reads texts with spans from JSON Lines.

    {"text": "took aspirin", "spans": [{"start": 5, "end": 12, "type": "drug"}]}

Such files are public texts or held-out ones. No hospital's file has spans: its records are embedded as they are. Files
in other formats, and rows without the field, have none.
"""

import json
from collections.abc import Collection
from itertools import zip_longest
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.labelled_files import read_texts
from server.documents.codec import MALFORMED
from server.domain import Example
from server.spans import Span, Spans, fit

_EXPECTED = "a list of {start, end, type} of the planned types, in order and apart, each on some of the text"


def read_spans(path: str | Path, types: Collection[str]) -> list[Spans | None]:
    """Return the spans of each row of a file that `common.labelled_files` has read without an error.

    Args:
        path: The file.
        types: The planned types. Spans of other types are left out: a corpus may have more than the task wants.

    Returns:
        One entry for each row, in the file's order: None without the field. An empty list for another format.

    Raises:
        DataError: Spans are malformed, or do not fit their text; the message has path and line, and no text.
    """
    file = Path(path)
    if file.suffix.lower() != ".jsonl":
        return []
    content = file.read_text(encoding="utf-8-sig")
    lines = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
    return [_spans(json.loads(line), types, where=f"{file}:{number}") for number, line in lines]


def read_examples(path: str | Path, types: Collection[str]) -> list[Example]:
    """Return those texts of a file that have spans; none without types.

    Raises:
        DataError: As in `read_spans`, or the file cannot be read.
    """
    if not types:
        return []
    rows = zip_longest(read_texts(path), read_spans(path, types))
    return [Example(text=text, spans=spans) for text, spans in rows if spans is not None]


def _spans(row: dict[str, Any], types: Collection[str], *, where: str) -> Spans | None:
    given = row.get("spans")
    if given is None:
        return None
    spans: Spans | None
    try:
        spans = tuple(span for span in map(Span.from_json, given) if span.type in types)
    except MALFORMED:
        spans = None
    if spans is None or not fit(row["text"], spans):
        do = "Mend the row; places are counted in Unicode code points, from 0"
        raise DataError("wrong spans", expected=_EXPECTED, got="something else", where=where, do=do)
    return spans
