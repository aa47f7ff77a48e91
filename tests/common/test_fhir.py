"""Records from FHIR's DocumentReference, and messages that quote nothing of it."""

import base64
import json

import pytest

from common.domain import UNLABELLED, Record
from common.labelled_files import read_records, read_texts, read_topics
from tests.support.record_files import SECRET, refused


def attachment(text="Wet cough.", **changes):
    data = base64.b64encode(text.encode()).decode()
    return {"attachment": {"contentType": "text/plain", "data": data} | changes}


def document(*content, code="flu", **changes):
    return {
        "resourceType": "DocumentReference",
        "status": "current",
        "type": {"coding": [{"system": "http://loinc.org", "code": code}, {"code": "other"}]},
        "subject": {"reference": "Patient/7"},
        "content": list(content) or [attachment()],
    } | changes


def bundle(*resources):
    return {"resourceType": "Bundle", "type": "collection", "entry": [{"resource": made} for made in resources]}


@pytest.fixture
def write(tmp_path):
    def to(name, *values):
        path = tmp_path / name
        path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values))
        return path

    return to


RECORD = Record(text="Wet cough.", label="flu", user="Patient/7")


def test_a_bundle_a_document_and_a_bulk_export_are_read(write):
    second = document(attachment("Caf\u00e9\u00a0au lait", contentType='text/plain; charset="UTF-8"'), code="cold")
    both = [RECORD, Record(text="Caf\u00e9\u00a0au lait", label="cold", user="Patient/7")]
    assert read_records(write("a.json", document())) == [RECORD]
    assert read_records(write("b.json", bundle({"resourceType": "Patient"}, document(), second))) == both
    assert read_records(write("c.ndjson", document(), "", second)) == both
    assert read_texts(write("d.json", document())) == ["Wet cough."]
    assert read_topics(write("e.json", document())) == [("Wet cough.", "flu")]
    without = document(subject={}, type={})
    assert read_topics(write("f.json", without)) == [("Wet cough.", None)]


def remarked(path):
    """Return the records of a file, and the remarks on it."""
    return read_records(path, may_be_empty=True, remarks=(remarks := [])), remarks


def test_all_plain_texts_of_a_document_are_one_record_and_the_other_attachments_are_counted(write):
    several = document(
        attachment(contentType="application/pdf"),
        {"attachment": {"contentType": "text/plain", "url": "Binary/1"}},
        attachment("The note.", contentType="TEXT/PLAIN"),
        attachment("The addendum."),
        attachment("The note."),
        attachment(" "),
    )
    records, remarks = remarked(write("a.json", several))
    assert [record.text for record in records] == ["The note.\n\nThe addendum."]
    passed_over, joined = remarks
    assert (passed_over[-3:], joined[-3:]) == ("(2)", "(1)")
    assert remarked(write("a.json", document()))[1] == []


def test_a_hospital_may_have_no_document(write):
    path = write("a.json", bundle() | {"entry": None})
    assert read_records(path, may_be_empty=True) == []
    refused(path, "no data")


BAD = {
    "no document": ({"text": SECRET, "label": "flu"}, ":1", "expected a Bundle or a DocumentReference; got other JSON"),
    "a list": ([SECRET], ":1", "got other JSON"),
    "broken": ('{"resourceType": "Bundle", "entry": "' + SECRET, ":1", "got malformed JSON"),
    "deep": ("[" * 100_000, ":1", "got malformed JSON"),
    "a PDF": (
        bundle({"resourceType": "Patient"}, document(attachment(SECRET, contentType=f"application/{SECRET}"))),
        ", entry 2 of the Bundle",
        "content type",
    ),
    "a character set": (document(attachment(SECRET, contentType="text/plain; charset=latin1")), ":1", "content type"),
    "no content type": (document(attachment(SECRET, contentType=None)), ":1", "got another content type"),
    "an address": (document({"attachment": {"contentType": "text/plain", "url": SECRET}}), ":1", r"got an address \("),
    "no data": (document({"attachment": {"contentType": "text/plain"}}), ":1", "got no `data`"),
    "no attachment": (document(content=[]), ":1", "got no attachment"),
    "broken base64": (document(attachment(data=SECRET + "!")), ":1", "got broken base64"),
    "Latin-1": (
        document(attachment(data=base64.b64encode(f"{SECRET} caf\u00e9".encode("latin-1")).decode())),
        ":1",
        "or another encoding",
    ),
    "no code": (document(type={"text": SECRET}), ":1", r"missing label; expected a text in type\.coding\[0\]\.code"),
    "a code that is no text": (document(code=7), ":1", "missing label"),
    "a coding that is no object": (document(type={"coding": [SECRET]}), ":1", "missing label"),
    "an empty text": (document(attachment(" ")), ":1", "empty text"),
    "no user": (bundle(document(), document(subject={"display": SECRET})), ", entry 2 of the Bundle", "^user;"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_by_its_place_and_without_its_content(write, case):
    content, place, what = BAD[case]
    path = write("a.json", content)
    assert f"{path}{place}" in str(refused(path, what))


def test_a_bulk_export_of_other_resources_is_refused_by_line(write):
    path = write("a.ndjson", document(), {"resourceType": "Patient", "id": SECRET})
    refused(path, r"a\.ndjson:2")


def test_documents_without_a_code_are_records_without_labels(write):
    coded, bare = document(attachment()), document(attachment())
    del bare["type"]
    path = write("a.json", bundle(coded, bare))
    assert [record.label for record in read_records(path, labelled=False)] == [UNLABELLED, UNLABELLED]
    refused(path, "missing label")


RECORD_OR_NOT = {
    "status": {"current": True, "superseded": False, "entered-in-error": False},
    "docStatus": dict.fromkeys(("preliminary", "final", "amended"), True)
    | dict.fromkeys(("registered", "partial", "corrected", "appended", "unknown"), True)  # of release 5 alone
    | dict.fromkeys(("entered-in-error", "cancelled", "deprecated"), False),
}
"""FHIR's values of the elements that say whether a document is valid, and whether one with that value is a record."""
OTHERS = ("Current", "CURRENT", " current", "final ", "valid", "", None, 7, True, ["current"], {"value": "current"})


@pytest.mark.parametrize("element", RECORD_OR_NOT)
def test_each_value_of_a_status_is_read_or_skipped_and_any_other_refused(element, write):
    for value, is_record in RECORD_OR_NOT[element].items():
        path = write("a.json", bundle(document(**{element: value})))
        assert read_records(path, may_be_empty=True) == [RECORD] * is_record
    for value in OTHERS:
        path = write("a.json", bundle(document(), document(**{element: value})))
        refused(path, rf"{element};.*not shown")
    without = document()
    without.pop(element, None)
    assert read_records(write("a.json", without)) == [RECORD]


JSON = ("x", 7, True, False, "", {"resource": ""}, [], [document()], {"resource": [document()]})
JSON += ({"resource": "x"}, {"resource": {}}, document())


@pytest.mark.parametrize("value", JSON, ids=lambda value: repr(value)[:30])
def test_an_entry_that_is_no_object_with_a_resource_is_refused(value, write):
    refused(write("a.json", bundle(document()) | {"entry": [value]}), "Bundle's entry;", may_be_empty=True)
    if not isinstance(value, list):
        refused(write("a.json", bundle() | {"entry": value}), "of entries", may_be_empty=True)


def test_a_bundle_in_a_bundle_or_with_a_next_page_is_refused(write):
    refused(write("a.json", bundle(bundle(document()))), r"entry 1 of", may_be_empty=True)
    links = [{"relation": "self", "url": SECRET}, {"relation": "next", "url": SECRET}]
    for given in (links, {"relation": "next"}):
        refused(write("a.json", bundle(document()) | {"link": given}), r"Bundle; .* link")


@pytest.mark.parametrize("name", ["a.json", "a.ndjson", "a.jsonl"])
def test_a_key_that_occurs_twice_is_refused_at_any_depth(name, write):
    for twice in ('{"text": "x", "label": "a", "text": "Zebulon"}', '{"a": [{"b": 1, "b": "Zebulon"}]}'):
        refused(write(name, twice), r"twice; at .*:1")


ONE_SUBJECT = {
    "Patient/7": {"reference": "Patient/7"},
    "with spaces": {"reference": " Patient/7 "},
    "a version": {"reference": "Patient/7/_history/3"},
    "an address": {"reference": "https://h/fhir/Patient/7"},
    "a version's address": {"reference": "https://h/fhir/Patient/7/_history/3"},
    "an address in capitals": {"reference": "HTTPS://H:443//fhir/Patient/7"},
    "another server": {"reference": "https://h2/fhir/Patient/7"},
    "another resource type": {"reference": "Person/7"},
    "a urn": {"reference": "urn:uuid:0a-b"},
    "a urn in capitals": {"reference": "URN:UUID:0A-B "},
    "another urn": {"reference": "urn:oid:1.2.7"},
    "contained": {"reference": "#p7"},
    "a search": {"reference": "Patient?identifier=urn:mrn|7"},
    "an identifier": {"identifier": {"system": "urn:mrn", "value": "7"}},
    "an identifier with spaces": {"identifier": {"system": " URN:mrn ", "value": " 7"}},
    "an identifier without a system": {"identifier": {"value": "7"}},
    "an identifier of another system": {"identifier": {"system": "urn:oid:1.2", "value": "7"}},
    "an identifier whose system is a number": {"identifier": {"system": 7, "value": "7"}},
    "both": {"reference": "Patient/7", "identifier": {"system": "urn:mrn", "value": "7"}},
    "a name": {"display": SECRET},
    "nothing": {},
}
"""All spellings that FHIR allows for one patient, and some that it does not."""
SAME = [
    {"Patient/7", "with spaces", "a version", "both"},
    {"an address", "a version's address", "an address in capitals"},
    {"another server"},
    {"another resource type"},
    {"a urn", "a urn in capitals"},
    {"another urn"},
    {"an identifier", "an identifier with spaces"},
    {"an identifier without a system", "an identifier whose system is a number"},
    {"an identifier of another system"},
    {"a name", "nothing"},
]
"""The spellings that are read as one user, or as none, in one file."""


@pytest.mark.parametrize("one", ONE_SUBJECT)
def test_each_pair_of_spellings_of_a_subject_is_one_user_or_refused(one, write):
    for other in ONE_SUBJECT:
        path = write("a.json", bundle(*(document(subject=ONE_SUBJECT[spelling]) for spelling in (one, other))))
        if any({one, other} <= spellings for spellings in SAME):
            assert len({record.user for record in read_records(path)}) == 1, other
        else:
            refused(path, r"^user; ")


def test_users_are_named_by_type_and_id_or_urn_or_identifier(write):
    named = {"an address": "Patient/7", "a urn in capitals": "urn:uuid:0a-b", "an identifier with spaces": "urn:mrn|7"}
    for spelling, user in named.items():
        (record,) = read_records(write("a.json", document(subject=ONE_SUBJECT[spelling])))
        assert record.user == user


@pytest.mark.parametrize("reference", ["", "7", "#p1", "patient/7", "Patient/", "Patient?identifier=7", "a b/c", 7, {}])
def test_a_reference_of_another_form_is_refused_where_users_are_read(reference, write):
    path = write("a.json", document(subject={"reference": reference, "display": SECRET}))
    refused(path, r"user;")
    assert read_texts(path) == ["Wet cough."]


def relation(code, **target):
    return {"relatesTo": [{"code": code, "target": target}]}


V1_ADDRESS = "DocumentReference/1"
V1, V2 = {"id": "1", "meta": {"versionId": "1"}}, {"id": "1", "meta": {"versionId": "2"}}
MRN = {"system": "urn:note", "value": "1"}
MRN_IN_CAPITALS = {"system": "URN:NOTE", "value": " 1 "}
CONCEPT = {"coding": [{"code": "replaces"}]}  # as in release 5
PAIRS = {
    "two ids": ({"id": "1"}, {"id": "2"}, 2, ""),
    "two identifiers": ({"identifier": [MRN]}, {"identifier": [MRN | {"value": "2"}]}, 2, ""),
    "one value of two systems": ({"identifier": [MRN]}, {"identifier": [MRN | {"system": "urn:other"}]}, 2, ""),
    "neither": ({}, {}, 2, ""),
    "two versions": (V1, V2, None, ""),
    "two versions, one superseded": (V1 | {"status": "superseded"}, V2, 1, "superseded, cancelled or in error (1)"),
    "a copy": (V1, V1, 1, "the same as another document (1)"),
    "one identifier": ({"identifier": [MRN]}, {"identifier": [{"value": "x"}, MRN_IN_CAPITALS]}, None, ""),
    "one without a system": ({"identifier": [{"value": "1"}]}, {"identifier": [{"value": "1"}]}, 1, "the same"),
    "one master identifier": ({"masterIdentifier": MRN}, {"id": "2", "masterIdentifier": MRN}, None, ""),
    "one master identifier, copied": ({"masterIdentifier": MRN}, {"masterIdentifier": MRN}, 1, "the same"),
    "replaced": ({"id": "1"}, relation("replaces", reference=V1_ADDRESS), 1, "replaced"),
    "replaced, with one identifier": (
        {"id": "1", "identifier": [MRN]},
        {"id": "2", "identifier": [MRN]} | relation("replaces", reference=V1_ADDRESS),
        1,
        "replaced",
    ),
    "one's own": ({"identifier": [MRN]}, {"identifier": [MRN]} | relation("replaces", identifier=MRN), None, ""),
    "replaced, in release 5": ({"id": "1"}, relation(CONCEPT, reference="DocumentReference/1"), 1, "replaced"),
    "a version": ({"id": "1"}, relation("replaces", reference=f"http://h/{V1_ADDRESS}/_history/2"), 1, "replaced"),
    "by identifier": ({"identifier": [MRN]}, relation("replaces", identifier=MRN_IN_CAPITALS), 1, "replaced"),
    "transformed": ({"id": "1"}, relation("transforms", reference="DocumentReference/1"), 1, "replaced"),
    "another replaced": ({"id": "1"}, relation("replaces", reference="DocumentReference/2"), 2, ""),
    "appended to": ({"id": "1"}, relation("appends", reference="DocumentReference/1"), 2, ""),
    "an id that is a number": ({"id": 1}, {}, None, ""),
}
"""What two documents have, the number of records that they are, None if they are refused, and what is said."""


@pytest.mark.parametrize("case", PAIRS)
def test_two_versions_of_a_note_are_never_two_records(case, write):
    *changes, count, said = PAIRS[case]
    both = [document(**change) for change in changes]
    for path in (write("a.json", bundle(*both)), write("a.ndjson", *both), write("a.json", bundle(*reversed(both)))):
        if count is None:
            refused(path)
        else:
            records, remarks = remarked(path)
            assert len(records) == count
            assert "".join(remarks).startswith(f"passed over: {said}" if said else "")
            assert bool(remarks) is bool(said)


def test_entries_with_one_address_are_refused(write):
    two = bundle(document(), document(attachment("Another.")))
    for entry in two["entry"]:
        entry["fullUrl"] = "urn:uuid:1"
    refused(write("a.json", two), r"entry 1 .*entry 2 of")


NOT_WHOLE = {
    "a total": ({"total": 2}, True),
    "a total of one": ({"total": 1}, False),
    "a total that is a text": ({"total": "1"}, True),
    "a total that is true": ({"total": True}, True),
    "a next page": ({"link": [{"relation": "next"}]}, True),
    "a page before": ({"link": [{"relation": "previous"}]}, True),
    "a link to itself": ({"link": [{"relation": "self"}]}, False),
    "a history": ({"type": "history"}, True),
    "another type": ({"type": SECRET}, True),
    "no type": ({"type": None}, False),
    **{kind: ({"type": kind}, False) for kind in ("searchset", "document", "message", "transaction", "batch")},
    **{kind: ({"type": kind}, True) for kind in ("transaction-response", "batch-response")},
}


@pytest.mark.parametrize("case", NOT_WHOLE)
def test_a_bundle_that_is_not_all_of_the_present_documents_is_refused(case, write):
    changes, is_refused = NOT_WHOLE[case]
    path = write("a.json", bundle(document()) | changes)
    if not is_refused:
        assert read_records(path) == [RECORD]
        return
    refused(path, r"^Bundle;")


def test_included_resources_do_not_count_for_the_total_and_are_counted_with_contained_documents(write):
    inner = {"resourceType": "Communication", "contained": [document(), {"resourceType": "Binary"}]}
    whole = bundle(document(), inner) | {"total": 2}
    for number, mode in ((2, "match"), (None, "include"), (None, "outcome")):
        whole["entry"][1]["search"] = {"mode": mode}
        path = write("a.json", whole)
        if number:
            remark = "passed over: contained in another resource (1), of another resource type (1)"
            assert remarked(path) == ([RECORD], [remark])
        else:
            refused(path, "`total`")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "GET", "HEAD", SECRET])
def test_an_entry_that_deletes_or_changes_is_refused(method, write):
    whole = bundle(document())
    whole["entry"][0]["request"] = {"method": method, "url": SECRET}
    if method in {"POST", "PUT"}:
        assert read_records(write("a.json", whole)) == [RECORD]
        return
    for resource in (whole["entry"][0]["resource"], None):
        whole["entry"][0]["resource"] = resource
        refused(write("a.json", whole), r"Bundle's entry;.*entry 1", may_be_empty=True)


CDA = '<?xml version="1.0"?><ClinicalDocument xmlns="urn:hl7-org:v3"><title>Zebulon</title></ClinicalDocument>'
NOT_PLAIN = {
    "RTF": (r"{\rtf1\ansi Zebulon has a cough.}", "RTF"),
    "C-CDA": (CDA, "HTML or XML"),
    "HTML": ("Zebulon has <b>no</b> cough.", "HTML or XML"),
    "lines of HTML": ("Zebulon<br/>has a cough.", "HTML or XML"),
    "HL7": (r"MSH|^~\&|Zebulon", "HL7 version 2"),
    "PDF": ("%PDF-1.7 Zebulon", "PDF"),
    "base64 again": (base64.b64encode(b"Zebulon has a cough, and fever.").decode(), "base64"),
    "base64 in lines": (base64.encodebytes(b"Zebulon has a cough, and fever. " * 9).decode(), "base64"),
    "base64 of a picture": (base64.b64encode(bytes(range(256))).decode(), "base64"),
}
PLAIN = ("Temp <38, BP >90 & R&D; a<b", "<NAME> has a cough.", "Pseudopseudohypoparathyroidism", "A" * 23, "{rtf")


def test_an_attachment_whose_text_is_not_plain_is_refused_whatever_its_type_says(write):
    for text, got in NOT_PLAIN.values():
        refused(write("a.json", document(attachment("Fever."), attachment(text))), f"got {got}; at")
    for text in PLAIN:
        assert remarked(write("a.json", document(attachment(text)))) == ([Record(text, "flu", "Patient/7")], [])


def test_escaped_characters_are_counted(write):
    path = write("a.json", bundle(document(attachment("Temp &lt;38")), document(attachment("K&#228;se")), document()))
    (remark,) = remarked(path)[1]
    assert "&amp;" in remark
    assert remark.endswith("(2)")
