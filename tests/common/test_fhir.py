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
        bundle({}, document(attachment(SECRET, contentType=f"application/{SECRET}"))),
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
