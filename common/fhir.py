"""Reads texts from FHIR DocumentReferences in JSON: in a Bundle, as single resources, or one per line in a bulk export.

    text    the attachments of `content` that are text/plain in UTF-8, given in `data` as base64; several are joined
    label   `type.coding[0].code`; no other element can be used: put other labels into a CSV or JSON Lines file
    user    `subject.reference` as Type/id, without server and version; else system and value of `subject.identifier`

One patient in two spellings would be two users, and two patients in one spelling one user, whose records would stand in
for each other under a limit. So all subjects of a file have one form, and one resource type and server, or one system.

`fhir_bundles.py` says which documents of a file are read. Values that FHIR does not define are refused. As in
`labelled_files.py`, an error message names a location and never quotes the file.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import DataError
from common.fhir_bundles import documents, list_in, object_in
from common.file_diagnosis import Row, format_of
from common.spelling import fold_word

_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii")
_WANTED = "text/plain in UTF-8, given in `data` as base64"
_ID = "[A-Za-z0-9.-]{1,64}"
_REFERENCE = re.compile(rf"(?:(?i:https?)://(\S+)/)?([A-Z][A-Za-z]*)/({_ID})(?:/_history/{_ID})?")
_URN = re.compile(r"(urn:[^:\s]+):\S+", re.IGNORECASE)
_DEFAULT_PORT = re.compile(":(80|443)$")
_SEVERAL = {
    "Type/id": "several resource types or servers, or only some with a server",
    "urn": "several kinds of urn",
    "identifier": "several systems, or some without one",
}
"""What is wrong if all subjects have one form, but not one scope; keyed by form."""


class Subject(NamedTuple):
    """Whose a document is.

    Attributes:
        form: How the document names its subject: one of `_SEVERAL`.
        scope: The server and the resource type, the kind of urn or the identifier's system, as compared.
        user: The subject's only spelling.
    """

    form: str
    scope: str
    user: str


def fhir_rows(
    file: Path, content: str, columns: tuple[str, ...], optional: tuple[str, ...], remarks: list[str]
) -> Iterator[Row]:
    """Yield a row for each current document in a `.json` or `.ndjson` file; a Bundle without documents has no rows.

    Args:
        file: The file's path, for error messages.
        content: The file's content.
        columns: The required columns, from `text` and `label`.
        optional: Columns to include where a document has them, from `label` and `user`.
        remarks: Receives, after the last row, a line on what was passed over, and one on what was joined.

    Raises:
        DataError: The file is not FHIR JSON or not all of a Bundle, or a document lacks a required element or has an
            unknown value; the message contains the location of the first error.
    """
    passed_over, joined, scopes = Counter[str](), Counter[str](), set[tuple[str, str]]()
    for place, resource, _ in documents(file, content, passed_over):
        subject = _subject(resource, place) if "user" in optional else None
        if subject:
            scopes.add((subject.form, subject.scope))
        if len(scopes) > 1:
            raise _several_forms({form for form, _ in scopes}, place)
        elements = {"label": _label(resource), "user": subject.user if subject else None}
        taken = {name: value for name, value in elements.items() if value is not None and name in (*columns, *optional)}
        if "label" in columns and "label" not in taken:
            raise DataError("missing label", expected="a text in type.coding[0].code", got="none", where=place)
        yield place, {"text": _text(resource, place, passed_over, joined), **taken}
    for verb, counts in (("passed over", passed_over), ("joined", joined)):
        if facts := [f"{what} ({count})" for what, count in sorted(counts.items()) if count]:
            remarks.append(f"{verb}: {', '.join(facts)}")


def _several_forms(forms: set[str], place: str) -> DataError:
    """Return the error for a subject that could be a second user of one subject, or a second subject of one user."""
    return DataError(
        "user",
        expected="subjects in one form in the whole file",
        got=" and ".join(sorted(forms)) if len(forms) > 1 else _SEVERAL[min(forms)],
        where=place,
        do="Name each patient in one way, or write the rows as .jsonl, with a column user.",
    )


def _text(resource: dict[str, Any], place: str, passed_over: Counter[str], joined: Counter[str]) -> str:
    """Return a document's plain texts, in their order; one that occurs twice is taken once."""
    attachments = [object_in(content, "attachment") for content in list_in(resource, "content")]
    plain = [attachment for attachment in attachments if _is_plain(attachment.get("contentType"))]
    given = [attachment["data"] for attachment in plain if isinstance(attachment.get("data"), str)]
    if not given:
        got = "another content type" if attachments else "no attachment"
        if plain:
            got = "an address (`url`), which is not followed" if "url" in plain[0] else "no `data`"
        raise DataError("attachment", expected=_WANTED, got=got, where=place, do="Export the texts themselves.")
    texts = list(dict.fromkeys(text for data in given if (text := _decoded(data, place)).strip()))
    for text in texts:
        if other := format_of(text):
            do = f"It has the content type of plain text: export it as that, not as {other}."
            raise DataError("attachment", expected=_WANTED, got=other, where=place, do=do)
    passed_over["attachments without a plain text in `data`"] += len(attachments) - len(given)
    joined["plain texts of one document"] += len(texts) > 1
    return "\n\n".join(texts)


def _is_plain(content_type: object) -> bool:
    """Return whether a MIME type denotes plain text in UTF-8; a type without a character set is taken to be UTF-8."""
    if not isinstance(content_type, str):
        return False
    name, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    return name == "text/plain" and all(charset in _CHARSETS for charset in charsets)


def _decoded(data: str, place: str) -> str:
    """Return base64-encoded UTF-8 text.

    Raises:
        DataError: The data are not valid base64 or not valid UTF-8.
    """
    with suppress(binascii.Error, ValueError):
        return base64.b64decode("".join(data.split()), validate=True).decode("utf-8-sig")
    raise DataError("attachment", expected=_WANTED, got="broken base64, or another encoding", where=place)


def _label(resource: dict[str, Any]) -> str | None:
    codings = list_in(object_in(resource, "type"), "coding")
    code = codings[0].get("code") if codings and isinstance(codings[0], dict) else None
    return code if isinstance(code, str) else None


def _subject(resource: dict[str, Any], place: str) -> Subject | None:
    """Return whose a document is; None if it names no subject.

    Raises:
        DataError: The reference has none of the forms that stay the same in all documents of a subject.
    """
    subject = object_in(resource, "subject")
    reference, identifier = subject.get("reference"), object_in(subject, "identifier")
    if reference is not None:
        given = reference.strip() if isinstance(reference, str) else ""
        if plain := _REFERENCE.fullmatch(given):
            server, kind, number = plain.groups()
            return Subject("Type/id", f"{_server(server or '')} {kind}", f"{kind}/{number}")
        if urn := _URN.fullmatch(given):
            return Subject("urn", urn[1].lower(), given.lower())
        expected = "subject.reference as Type/id, at the end of an address or alone, or a urn"
        raise DataError("user", expected=expected, got="another form", where=place)
    system, value = (identifier.get(name) for name in ("system", "value"))
    if not isinstance(value, str):
        return None
    scope = fold_word(system) if isinstance(system, str) else ""
    return Subject("identifier", scope, f"{scope}|{value.strip()}" if scope else value.strip())


def _server(address: str) -> str:
    """Return a server's address as compared: without what differs between two spellings of it."""
    host, _, path = address.partition("/")
    return f"{_DEFAULT_PORT.sub('', host.lower())}/{path.strip('/')}"
