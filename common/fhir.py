"""Reads texts from FHIR DocumentReferences in JSON: in a Bundle, as single resources, or one per line in a bulk export.

    text    the first of `content` whose attachment is text/plain in UTF-8, given in `data` as base64
    label   `type.coding[0].code`; no other element can be used: put other labels into a CSV or JSON Lines file
    user    `subject.reference`

Other resources of a Bundle are skipped, and so are documents whose `status` is not `current`: FHIR calls them
superseded or entered in error. As in `labelled_files.py`, an error message names a location and never quotes the file.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.file_diagnosis import Row

_DOCUMENT = "DocumentReference"
_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii")
_WANTED = "text/plain in UTF-8, given in `data` as base64"
_ROWS = "Write other rows as one JSON object a line, as .jsonl."


def rows(file: Path, content: str, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Yield a row for each current document in a `.json` or `.ndjson` file; a Bundle without documents has no rows.

    Args:
        file: The file's path, for error messages.
        content: The file's content.
        columns: The required columns, from `text` and `label`.
        optional: Columns to include where a document has them, from `label` and `user`.

    Raises:
        DataError: The file is not FHIR JSON, or a document lacks a required element; the message contains the location
            of the first error.
    """
    for place, resource in _documents(file, content):
        if resource.get("status", "current") != "current":
            continue
        elements = {"label": _label(resource), "user": _user(resource)}
        taken = {name: value for name, value in elements.items() if value is not None and name in (*columns, *optional)}
        if "label" in columns and "label" not in taken:
            raise DataError("missing label", expected="a text in type.coding[0].code", got="none", where=place)
        row = {"text": _text(resource, place), **taken}
        yield place, row


def _documents(file: Path, content: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: a DocumentReference's location in the file, which messages use, and the DocumentReference itself."""
    if file.suffix.lower() == ".ndjson":
        for line, text in enumerate(content.split("\n"), start=1):
            if text.strip():
                yield f"{file}:{line}", _resource(text, f"{file}:{line}", (_DOCUMENT,))
        return
    whole = _resource(content, f"{file}:1", ("Bundle", _DOCUMENT))
    if whole["resourceType"] == _DOCUMENT:
        yield f"{file}:1", whole
        return
    for number, entry in enumerate(_list(whole, "entry"), start=1):
        resource = _object(entry, "resource")
        if resource.get("resourceType") == _DOCUMENT:
            yield f"{file}, entry {number} of the Bundle", resource


def _resource(text: str, place: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("resourceType") not in kinds:
        got = "malformed JSON" if value is None else "other JSON"
        raise DataError("no FHIR", expected=f"a {' or a '.join(kinds)}", got=got, where=place, do=_ROWS)
    return value


def _text(resource: dict[str, Any], place: str) -> str:
    """Return the text of a document's first plain-text attachment."""
    attachments = [_object(content, "attachment") for content in _list(resource, "content")]
    plain = [attachment for attachment in attachments if _is_plain(attachment.get("contentType"))]
    given = [attachment for attachment in plain if isinstance(attachment.get("data"), str)]
    if not given:
        got = "another content type" if attachments else "no attachment"
        if plain:
            got = "an address (`url`), which is not followed" if "url" in plain[0] else "no `data`"
        raise DataError("attachment", expected=_WANTED, got=got, where=place, do="Export the texts themselves.")
    decoded = _decoded(given[0].get("data", ""))
    if decoded is None:
        raise DataError("attachment", expected=_WANTED, got="broken base64, or another encoding", where=place)
    return decoded


def _is_plain(content_type: object) -> bool:
    """Return whether a MIME type denotes plain text in UTF-8; a type without a character set is taken to be UTF-8."""
    if not isinstance(content_type, str):
        return False
    name, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    return name == "text/plain" and all(charset in _CHARSETS for charset in charsets)


def _decoded(data: str) -> str | None:
    """Decode base64-encoded UTF-8 text; return None if the data are not valid base64 or not valid UTF-8."""
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode("utf-8-sig")
    except (binascii.Error, ValueError):
        return None


def _label(resource: dict[str, Any]) -> str | None:
    codings = _list(_object(resource, "type"), "coding")
    code = codings[0].get("code") if codings and isinstance(codings[0], dict) else None
    return code if isinstance(code, str) else None


def _user(resource: dict[str, Any]) -> str | None:
    reference = _object(resource, "subject").get("reference")
    return reference if isinstance(reference, str) else None


def _object(value: object, name: str) -> dict[str, Any]:
    """Return the element with this name if it is a JSON object; otherwise return an empty object."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[Any]:
    """Return the element with this name if it is a list; otherwise return an empty list."""
    inner = value.get(name)
    return inner if isinstance(inner, list) else []
