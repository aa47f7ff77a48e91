"""Finds the documents of a FHIR file: all of a Bundle's or a bulk export's, each once and in its present version.

Two versions of one note would be two records under a guarantee for one. So a history is refused, and so are two
documents with the same `id`, `fullUrl` or identifier. A document that another one replaces or transforms by `relatesTo`
is passed over, and so is a copy that equals another in all elements. An addendum (`appends`) stays a record. What is
passed over is counted, since a record that is missing without a word is a mistake that nobody sees.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import DataError
from common.file_diagnosis import json_value
from common.spelling import fold_word

DOCUMENT = "DocumentReference"
"""Type of the resources that are read."""
_READ = ("registered", "partial", "preliminary", "final", "amended", "corrected", "appended", "unknown")
_STATES = {
    "status": {"current": True, "superseded": False, "entered-in-error": False},
    "docStatus": dict.fromkeys(_READ, True) | dict.fromkeys(("cancelled", "deprecated", "entered-in-error"), False),
}
"""Values of FHIR, of its releases 4 to 5, by element, and whether a document with that value is a record."""
_WHOLE = ("collection", "searchset", "document", "message", "transaction", "batch")
"""Types of Bundles whose entries are present resources. In the others, such as a history, they may be past ones."""
_OTHER_PAGES = ("next", "previous", "prev")
_BESIDE = ("include", "outcome")
"""Values of `search.mode` of entries that `total` does not count."""
_MAKING = ("POST", "PUT", None)
"""Values of `request.method` with which an entry's resource is a present one."""
_REPLACED = ("replaces", "transforms")
_TARGET = re.compile(rf"\S*?{DOCUMENT}/([A-Za-z0-9.-]{{1,64}})(?:/_history/\S+)?")
_ROWS = "Write other rows as one JSON object a line, as .jsonl."
_EXPORT = "Export the present documents, as one Bundle or in bulk as .ndjson."


class FhirDocument(NamedTuple):
    """A resource, its location in the file, which messages use, and its entry's `fullUrl`, if there is one."""

    place: str
    resource: dict[str, Any]
    url: object = None


def documents(file: Path, content: str, passed_over: Counter[str]) -> list[FhirDocument]:
    """Return the present documents of a `.json` or `.ndjson` file.

    `passed_over` receives the number of resources that are not returned, by reason.

    Raises:
        DataError: The file is not FHIR JSON or not all of a Bundle, a document has an unknown status, or two documents
            may be versions of one; the message contains the location of the first error.
    """
    valid = []
    for document in _all(file, content, passed_over):
        if _is_valid(document):
            valid.append(document)
        else:
            passed_over["superseded, cancelled or in error"] += 1
    replaced = {key for document in valid for key in _replaced_by(document) if key not in _keys(document)}
    present = [document for document in valid if not replaced.intersection(_keys(document))]
    passed_over["replaced by another document"] += len(valid) - len(present)
    return list(_without_copies(present, passed_over))


def _all(file: Path, content: str, passed_over: Counter[str]) -> Iterator[FhirDocument]:
    if file.suffix.lower() == ".ndjson":
        for line, text in enumerate(content.split("\n"), start=1):
            if text.strip():
                yield FhirDocument(f"{file}:{line}", _resource(text, f"{file}:{line}", (DOCUMENT,)))
        return
    whole = _resource(content, f"{file}:1", ("Bundle", DOCUMENT))
    if whole["resourceType"] == DOCUMENT:
        yield FhirDocument(f"{file}:1", whole)
        return
    for number, entry in enumerate(_entries(whole, f"{file}:1"), start=1):
        place = f"{file}, entry {number} of the Bundle"
        document = _of_entry(entry, place)
        if document is None:
            continue
        if document.resource["resourceType"] == DOCUMENT:
            yield document
        else:
            passed_over["of another resource type"] += 1
        contained = _objects_in(document.resource, "contained")
        passed_over["contained in another resource"] += sum(one.get("resourceType") == DOCUMENT for one in contained)


def _resource(text: str, place: str, kinds: Sequence[str]) -> dict[str, Any]:
    value = json_value(text, where=place)
    if not isinstance(value, dict) or value.get("resourceType") not in kinds:
        got = "malformed JSON" if value is None else "other JSON"
        raise DataError("no FHIR", expected=f"a {' or a '.join(kinds)}", got=got, where=place, do=_ROWS)
    return value


def _entries(bundle: dict[str, Any], place: str) -> list[Any]:
    """Return the entries of a Bundle, after checking that they are all of its entries, and present ones."""
    entries, links = ([] if bundle.get(name) is None else bundle[name] for name in ("entry", "link"))
    if not isinstance(entries, list) or not isinstance(links, list):
        raise DataError("Bundle", expected="lists of entries and links", got="something else", where=place)
    expected, got, kind, total = "one with all entries", None, bundle.get("type"), bundle.get("total")
    if any(isinstance(link, dict) and link.get("relation") in _OTHER_PAGES for link in links):
        got = "a page of several, with a link to another"
    elif isinstance(total, bool) or not isinstance(total, int | None):
        got = "a `total` that is no whole number"
    elif total is not None and total > sum(object_in(entry, "search").get("mode") not in _BESIDE for entry in entries):
        got = "fewer than its `total` says"
    elif kind is not None and kind not in _WHOLE:
        expected, got = f"none as its type, or one of {', '.join(_WHOLE)}", "another, such as a history"
    if got:
        raise DataError("Bundle", expected=expected, got=got, where=place, do=_EXPORT)
    return entries


def _of_entry(entry: object, place: str) -> FhirDocument | None:
    """Return an entry's resource, a document or another; None if it has none."""
    expected = "an object with a resource"
    if not isinstance(entry, dict):
        raise DataError("Bundle's entry", expected=expected, got="something else", where=place)
    if object_in(entry, "request").get("method") not in _MAKING:
        expected, got = "no request, or one that makes a resource", "another, such as a deletion"
        raise DataError("Bundle's entry", expected=expected, got=got, where=place, do=_EXPORT)
    resource = entry.get("resource")
    if resource is None and "resourceType" not in entry:
        return None
    if not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
        raise DataError("Bundle's entry", expected=expected, got="something else", where=place)
    if resource["resourceType"] == "Bundle":
        raise DataError("Bundle's entry", expected=expected, got="another Bundle", where=place)
    return FhirDocument(place, resource, entry.get("fullUrl"))


def _is_valid(document: FhirDocument) -> bool:
    """Return whether a document is a record, by its status and that of what it refers to."""
    given = {element: document.resource[element] for element in _STATES if element in document.resource}
    for element, state in given.items():
        if not isinstance(state, str) or state not in _STATES[element]:
            expected = f"none, or one of {', '.join(_STATES[element])}"
            raise DataError(element, expected=expected, got="another (not shown)", where=document.place)
    return all(_STATES[element][state] for element, state in given.items())


def _without_copies(present: Sequence[FhirDocument], passed_over: Counter[str]) -> Iterator[FhirDocument]:
    """Yield the documents, but a document and its copies only once.

    Raises:
        DataError: Two documents have a key in common, and differ.
    """
    known: dict[tuple[str, ...], FhirDocument] = {}
    for document in present:
        keys = _keys(document)
        earlier = next((known[key] for key in keys if key in known), None)
        if earlier is None:
            known.update(dict.fromkeys(keys, document))
            yield document
        elif earlier.resource == document.resource:
            passed_over["the same as another document"] += 1
        else:
            raise DataError(
                "document",
                expected="an `id` and identifiers that no other document has",
                got=f"those of the one at {earlier.place}",
                where=document.place,
                do="Export only the newest: two versions of a note would count as two records.",
            )


def _keys(document: FhirDocument) -> list[tuple[str, ...]]:
    """Return what names a document, in all of its versions."""
    resource, keys = document.resource, list[tuple[str, ...]]()
    for name, value in (("id", resource.get("id")), ("fullUrl", document.url)):
        if not isinstance(value, str | None):
            raise DataError(name, expected="a text", got="something else", where=document.place)
        keys += [(name, value)] if value else []
    several = resource.get("identifier")
    identifiers = [resource.get("masterIdentifier"), *(several if isinstance(several, list) else [several])]
    return keys + [key for identifier in identifiers if (key := _key_of(identifier))]


def _key_of(identifier: object) -> tuple[str, ...] | None:
    if not isinstance(identifier, dict):
        return None
    system, value = identifier.get("system"), identifier.get("value")
    if not isinstance(value, str) or not value.strip():
        return None
    return "identifier", fold_word(system) if isinstance(system, str) else "", value.strip()


def _replaced_by(document: FhirDocument) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the documents that a document replaces, or of whose content it is another form."""
    for relation in _objects_in(document.resource, "relatesTo"):
        if not _replaces(relation.get("code")):
            continue
        target = object_in(relation, "target")
        reference = target.get("reference")
        if isinstance(reference, str):
            named = _TARGET.fullmatch(reference.strip())
            yield from [("fullUrl", reference.strip()), *([("id", named[1])] if named else [])]
        if key := _key_of(target.get("identifier")):
            yield key


def _replaces(code: object) -> bool:
    """Return whether a relation's code, in FHIR 4 a text and in FHIR 5 a concept, says that the target is replaced."""
    codings = _objects_in(code, "coding") if isinstance(code, dict) else [{"code": code}]
    return any(coding.get("code") in _REPLACED for coding in codings)


def object_in(value: object, name: str) -> dict[str, Any]:
    """Return the element with this name if it is a JSON object; otherwise return an empty object."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def list_in(value: dict[str, Any], name: str) -> list[Any]:
    """Return the element with this name if it is a list; otherwise return an empty list."""
    inner = value.get(name)
    return inner if isinstance(inner, list) else []


def _objects_in(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the JSON objects in the list with this name; without such a list, return an empty one."""
    return [inner for inner in list_in(value, name) if isinstance(inner, dict)]
