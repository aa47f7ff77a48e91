"""Spans of public and held-out texts: those of the demo's notes, and those in files."""

import json
import re

import pytest

from common.errors import ConfigError, DataError
from server.settings.tasks import NOTES_LANGUAGES
from server.spans import Span
from server.tasks.sources import DemoMessages, DemoNotes, LabelledFiles, unmarked_types
from tests.support.marks import fit

DRUG = Span(start=5, end=12, type="drug")


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_notes_have_the_same_words_with_and_without_spans(language):
    source = DemoNotes(language=language, test_records=40, public_notes=60, spans=True)
    spanned, public = source.held_out_spans(), source.public_examples()
    assert [note.text for note in spanned] == [record.text for record in source.held_out()]
    assert all(fit(note.text, note.spans) for note in [*spanned, *public])
    assert {span.type for note in spanned for span in note.spans} == set(source.task().spans)
    values = [note.text[s.start : s.end] for note in spanned for s in note.spans if s.type == "measurement"]
    assert all(re.search(r"\d", value) for value in values)


def test_only_who_asks_for_spans_gets_types():
    assert DemoNotes().task().spans == {}
    assert all(example.spans is None for example in DemoNotes(public_notes=60).public_examples())
    assert DemoMessages().held_out_spans() == []


def files(folder, *rows, **settings):
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    own = {"name": "t", "kind": "note", "labels": "unlabelled", "spans": {"drug": "a medicine"}}
    return LabelledFiles(**own | {"test": str(path), "public_text": str(path)} | settings)


def test_rows_have_spans_of_the_planned_types_or_none(tmp_path):
    spans = [{"start": 0, "end": 4, "type": "verb"}, {"start": 5, "end": 12, "type": "drug"}]
    source = files(tmp_path, {"text": "took aspirin", "spans": spans}, {"text": "nothing"}, {"text": "💊", "spans": []})
    assert [text.spans for text in source.public_examples()] == [(DRUG,), None, ()]
    assert [(text.text, text.spans) for text in source.held_out_spans()] == [("took aspirin", (DRUG,)), ("💊", ())]
    assert [text.spans for text in files(tmp_path, {"text": "a", "spans": "b"}, spans={}).public_examples()] == [None]


@pytest.mark.parametrize(
    ("spans", "wrong"),
    [
        ("drug", "no list"),
        ([{"start": 5, "end": 12}], "span 1 that is no object with start, end and type"),
        ([{"start": 5, "end": 13, "type": "drug"}], "span 1 that goes beyond the text of 12 characters"),
        ([{"start": 6, "end": 5, "type": "drug"}], "span 1 that is blank"),
        ([{"start": 5, "end": 12, "type": "drug"}] * 2, "span 2 that begins before the end of the one before"),
        ([{"start": 0, "end": 9, "type": "verb"}, {"start": 4, "end": 5, "type": "drug"}], "span 2 that is blank"),
    ],
)
def test_wrong_spans_are_refused_by_line_number_and_rule_and_not_quoted(tmp_path, spans, wrong):
    source = files(tmp_path, {"text": "fine"}, {"text": "took aspirin", "spans": spans})
    for read in (source.held_out_spans, source.public_examples):
        with pytest.raises(DataError, match=rf"wrong spans; .*got {wrong}.*texts\.jsonl:2") as refused:
            read()
        assert "aspirin" not in str(refused.value)


def test_a_tag_in_a_text_with_spans_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"got a tag in the text"):
        files(tmp_path, {"text": "took <b>aspirin</b>", "spans": []}).public_examples()


def test_types_that_no_public_text_marks_are_said(tmp_path):
    spans = [{"start": 5, "end": 12, "type": "medicine"}]
    rows = {"text": "took aspirin", "spans": spans}, {"text": "nothing"}
    said = unmarked_types(files(tmp_path, *rows, spans={"drug": "a medicine", "dose": "an amount"}))
    assert all(fact in said for fact in (" drug, dose:", " medicine,", "task.spans"))
    assert unmarked_types(files(tmp_path, *rows, spans={"medicine": "a drug"})) is None
    assert "task.spans" not in unmarked_types(files(tmp_path, {"text": "nothing"}))
    assert unmarked_types(files(tmp_path, *rows, spans={})) is None
    assert unmarked_types(files(tmp_path, public_text=None)) is None
    assert unmarked_types(DemoNotes(public_notes=60, spans=True)) is None


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"spans": {"a b": "x"}}, "letters, digits"),
        ({"spans": {"drug": 3}}, "task.spans.drug"),
    ],
)
def test_wrong_types_are_named(change, names):
    good = {"name": "t", "kind": "note", "labels": ["a", "b"]}
    assert LabelledFiles(**good, spans={"lab_value": None}).task().spans == {"lab_value": "lab value"}
    with pytest.raises(ConfigError, match=names):
        LabelledFiles(**good | change).task()
