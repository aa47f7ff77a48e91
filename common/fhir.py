"""Reads texts from FHIR DocumentReferences in JSON: in a Bundle, as single resources, or one per line in a bulk export.

    text    the first of `content` whose attachment is text/plain in UTF-8, given in `data` as base64
    label   `type.coding[0].code`; no other element can be used: put other labels into a CSV or JSON Lines file
    user    `subject.reference` as Type/id, without server and version; else system and value of `subject.identifier`

Other resources of a Bundle are skipped, and so are documents that were never valid or are so no longer, by `status` or
`docStatus`. Values that FHIR does not define are refused, and so is a Bundle that is one page of several. As in
`labelled_files.py`, an error message names a location and never quotes the file.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.file_diagnosis import Row, json_value

_DOCUMENT = "DocumentReference"
_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii")
_WANTED = "text/plain in UTF-8, given in `data` as base64"
_READ = ("registered", "partial", "preliminary", "final", "amended", "corrected", "appended", "unknown")
_STATES = {
    "status": {"current": True, "superseded": False, "entered-in-error": False},
    "docStatus": dict.fromkeys(_READ, True) | dict.fromkeys(("cancelled", "deprecated", "entered-in-error"), False),
}
"""Values of FHIR, of its releases 4 to 5, by element, and whether a document with that value is a record."""
_REFERENCE = re.compile(r"(?:https?://\S+/)?([A-Z][A-Za-z]*/[A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]{1,64})?")
_URN = re.compile(r"urn:\S+", re.IGNORECASE)
_ROWS = "Write other rows as one JSON object a line, as .jsonl."


def rows(file: Path, content: str, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    """Yield a row for each current document in a `.json` or `.ndjson` file; a Bundle without documents has no rows.

    Args:
        file: The file's path, for error messages.
        content: The file's content.
        columns: The required columns, from `text` and `label`.
        optional: Columns to include where a document has them, from `label` and `user`.

    Raises:
        DataError: The file is not FHIR JSON or not all of a Bundle, or a document lacks a required element or has an
            unknown value; the message contains the location of the first error.
    """
    forms = set[str]()
    for place, resource in _documents(file, content):
        if not _is_valid(resource, place):
            continue
        form, user = _user(resource, place) if "user" in optional else ("", None)
        if user is not None and len(forms := forms | {form}) > 1:
            # The same patient would be another user in another form.
            expected, got = "subjects in one form in the whole file", " and ".join(sorted(forms))
            raise DataError("user", expected=expected, got=got, where=place)
        elements = {"label": _label(resource), "user": user}
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
    entries, links = ([] if whole.get(name) is None else whole[name] for name in ("entry", "link"))
    if not isinstance(entries, list) or not isinstance(links, list):
        raise DataError("Bundle", expected="lists of entries and links", got="something else", where=f"{file}:1")
    if any(isinstance(link, dict) and link.get("relation") == "next" for link in links):
        expected, got = "one with all entries", "a page of several, with a link to the next"
        do = "Export all pages, as one Bundle without this link, or in bulk as .ndjson."
        raise DataError("Bundle", expected=expected, got=got, where=f"{file}:1", do=do)
    for number, entry in enumerate(entries, start=1):
        place = f"{file}, entry {number} of the Bundle"
        kind = _kind(entry)
        if kind in {"", "Bundle"}:
            got = "another Bundle" if kind else "something else"
            raise DataError("Bundle's entry", expected="an object with a resource", got=got, where=place)
        if kind == _DOCUMENT:
            yield place, entry["resource"]


def _kind(entry: object) -> str | None:
    """Return the type of an entry's resource; None if the entry has no resource, and empty if it is malformed."""
    if not isinstance(entry, dict):
        return ""
    resource = entry.get("resource")
    if resource is None and "resourceType" not in entry:
        return None
    kind = resource.get("resourceType") if isinstance(resource, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_valid(resource: dict[str, Any], place: str) -> bool:
    """Return whether a document is a record, by its status and that of what it refers to."""
    given = {element: resource[element] for element in _STATES if element in resource}
    for element, state in given.items():
        if not isinstance(state, str) or state not in _STATES[element]:
            expected = f"none, or one of {', '.join(_STATES[element])}"
            raise DataError(element, expected=expected, got="another (not shown)", where=place)
    return all(_STATES[element][state] for element, state in given.items())


def _resource(text: str, place: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    value = json_value(text, where=place)
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


def _user(resource: dict[str, Any], place: str) -> tuple[str, str | None]:
    """Return the form in which a document names its subject, and the subject; None if it names none.

    Raises:
        DataError: The reference has none of the forms that stay the same in all documents of a subject.
    """
    subject = _object(resource, "subject")
    reference, identifier = subject.get("reference"), _object(subject, "identifier")
    if reference is not None:
        given = reference.strip() if isinstance(reference, str) else ""
        if plain := _REFERENCE.fullmatch(given):
            return "Type/id", plain[1]
        if _URN.fullmatch(given):
            return "urn", given.lower()
        expected = "subject.reference as Type/id, at the end of an address or alone, or a urn"
        raise DataError("user", expected=expected, got="another form", where=place)
    system, value = (identifier.get(name) for name in ("system", "value"))
    if isinstance(value, str):
        return "identifier", f"{system}|{value}" if isinstance(system, str) else value
    return "", None


def _object(value: object, name: str) -> dict[str, Any]:
    """Return the element with this name if it is a JSON object; otherwise return an empty object."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[Any]:
    """Return the element with this name if it is a list; otherwise return an empty list."""
    inner = value.get(name)
    return inner if isinstance(inner, list) else []
