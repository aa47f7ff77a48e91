"""Records from FHIR's DocumentReference, and messages that quote nothing of it."""

import base64
import json
import traceback

import pytest

from common.domain import UNLABELLED, Record
from common.errors import DataError
from common.labelled_files import read_records, read_texts, read_topics

SECRET = "Zebulon"
"""A word of private text, which no message may hold."""


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


def test_the_first_plain_text_with_data_is_taken(write):
    several = document(
        attachment(contentType="application/pdf"),
        {"attachment": {"contentType": "text/plain", "url": "Binary/1"}},
        attachment("The first.", contentType="TEXT/PLAIN"),
        attachment("The second."),
    )
    assert read_texts(write("a.json", several)) == ["The first."]


def test_a_hospital_may_have_no_document_and_those_in_error_are_none(write):
    path = write("a.json", bundle(document(status="entered-in-error"), document(status="superseded")))
    assert read_records(path, may_be_empty=True) == []
    with pytest.raises(DataError, match="no data"):
        read_records(path)
    assert read_records(write("b.json", bundle() | {"entry": None}), may_be_empty=True) == []


BAD = {
    "no document": ({"text": SECRET, "label": "flu"}, ":1", "expected a Bundle or a DocumentReference; got other JSON"),
    "a list": ([SECRET], ":1", "as one JSON object a line, as .jsonl"),
    "broken": ('{"resourceType": "Bundle", "entry": "' + SECRET, ":1", "got malformed JSON"),
    "deep": ("[" * 100_000, ":1", "got malformed JSON"),
    "a PDF": (
        bundle({"resourceType": "Patient"}, document(attachment(SECRET, contentType=f"application/{SECRET}"))),
        ", entry 2 of the Bundle",
        "got another content type",
    ),
    "another character set": (
        document(attachment(SECRET, contentType="text/plain; charset=latin1")),
        ":1",
        "got another content type",
    ),
    "no content type": (document(attachment(SECRET, contentType=None)), ":1", "got another content type"),
    "an address": (
        document({"attachment": {"contentType": "text/plain", "url": SECRET}}),
        ":1",
        r"got an address \(`url`\), which is not followed",
    ),
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
    "one without a user": (
        bundle(document(), document(subject={"display": SECRET})),
        ", entry 2 of the Bundle",
        "user; expected one in each row",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_by_its_place_and_without_its_content(write, case):
    content, place, what = BAD[case]
    path = write("a.json", content)
    with pytest.raises(DataError, match=what) as caught:
        read_records(path)
    assert f"{path}{place}" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert not isinstance(caught.value.__context__, ValueError)


def test_a_bulk_export_of_other_resources_is_refused_by_line(write):
    path = write("a.ndjson", document(), {"resourceType": "Patient", "id": SECRET})
    with pytest.raises(DataError, match=r"expected a DocumentReference; got other JSON; at .*a\.ndjson:2"):
        read_records(path)


def test_documents_without_a_code_are_records_without_labels(write):
    coded, bare = document(attachment()), document(attachment())
    del bare["type"]
    path = write("a.json", bundle(coded, bare))
    assert [record.label for record in read_records(path, labelled=False)] == [UNLABELLED, UNLABELLED]
    with pytest.raises(DataError, match="missing label"):
        read_records(path)


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
        with pytest.raises(DataError, match=rf"{element}; expected none, or one of .*; got another \(not shown\)"):
            read_records(path)
    without = document()
    without.pop(element, None)
    assert read_records(write("a.json", without)) == [RECORD]


JSON = (
    "x",
    7,
    True,
    False,
    "",
    {"resource": ""},
    [],
    [document()],
    {"resource": [document()]},
    {"resource": "x"},
    {"resource": {}},
    document(),
)


@pytest.mark.parametrize("value", JSON, ids=lambda value: repr(value)[:30])
def test_an_entry_that_is_no_object_with_a_resource_is_refused(value, write):
    with pytest.raises(DataError, match="Bundle's entry; expected an object with a resource; got something else"):
        read_records(write("a.json", bundle(document()) | {"entry": [value]}), may_be_empty=True)
    if not isinstance(value, list):
        with pytest.raises(DataError, match="expected lists of entries and links"):
            read_records(write("a.json", bundle() | {"entry": value}), may_be_empty=True)


def test_a_bundle_in_a_bundle_or_with_a_next_page_is_refused(write):
    with pytest.raises(DataError, match=r"got another Bundle; at .*entry 1 of the Bundle"):
        read_records(write("a.json", bundle(bundle(document()))), may_be_empty=True)
    links = [{"relation": "self", "url": SECRET}, {"relation": "next", "url": SECRET}]
    assert read_records(write("a.json", bundle(document()) | {"link": links[:1]})) == [RECORD]
    for given in (links, {"relation": "next"}):
        with pytest.raises(DataError, match=r"Bundle; expected .* link") as caught:
            read_records(write("a.json", bundle(document()) | {"link": given}))
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["a.json", "a.ndjson", "a.jsonl"])
def test_a_key_that_occurs_twice_is_refused_at_any_depth(name, write):
    for twice in ('{"text": "x", "label": "a", "text": "Zebulon"}', '{"a": [{"b": 1, "b": "Zebulon"}]}'):
        with pytest.raises(DataError, match=r"expected each key of an object once; got a key twice; at .*:1") as caught:
            read_records(write(name, twice))
        assert SECRET not in "".join(traceback.format_exception(caught.value))


ONE_SUBJECT = {
    "Patient/7": [
        *("Patient/7", "Patient/7/_history/3", " Patient/7 ", "https://h/fhir/Patient/7", "http://h:80/a/b/Patient/7"),
        "https://h/fhir/Patient/7/_history/3",
    ],
    "urn:uuid:0a-b": ["urn:uuid:0a-b", "urn:uuid:0A-B", "URN:UUID:0a-b "],
}
"""References to one subject, keyed by the user that they are read as."""


@pytest.mark.parametrize("user", ONE_SUBJECT)
def test_all_references_to_a_subject_are_one_user(user, write):
    documents = [document(subject={"reference": reference}) for reference in ONE_SUBJECT[user]]
    assert {record.user for record in read_records(write("a.json", bundle(*documents)))} == {user}


@pytest.mark.parametrize("reference", ["", "7", "#p1", "patient/7", "Patient/", "Patient?identifier=7", "a b/c", 7, {}])
def test_a_reference_of_another_form_is_refused_where_users_are_read(reference, write):
    path = write("a.json", document(subject={"reference": reference, "display": SECRET}))
    with pytest.raises(DataError, match=r"user; expected subject\.reference as .*; got another form"):
        read_records(path)
    assert read_texts(path) == ["Wet cough."]


def test_an_identifier_is_the_user_of_a_subject_without_a_reference(write):
    identified = [
        document(subject={"identifier": identifier})
        for identifier in ({"system": "urn:mrn", "value": "1"}, {"value": "1"}, {"system": 7, "value": "1"})
    ]
    users = [record.user for record in read_records(write("a.json", bundle(*identified)))]
    assert users == ["urn:mrn|1", "1", "1"]
    assert read_records(write("a.json", document(subject={"identifier": {"value": 7}})))[0].user is None


def test_subjects_in_several_forms_could_be_one_and_are_refused(write):
    forms = [{"reference": "Patient/7"}, {"reference": "urn:uuid:7"}, {"identifier": {"value": SECRET}}]
    for one, other in ((0, 1), (1, 2), (2, 0)):
        path = write("a.json", bundle(document(subject=forms[one]), document(subject=forms[other])))
        with pytest.raises(DataError, match=r"expected subjects in one form .*entry 2 of the Bundle") as caught:
            read_records(path)
        assert SECRET not in str(caught.value)
