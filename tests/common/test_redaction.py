"""Personal information is masked, clinical figures are not; nothing is fetched and nothing is logged."""

import logging

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common import redaction
from common.errors import ConfigError
from common.redaction import Redactor, entities, redact
from tests.support.offline import refuse_network


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Call Dr. Smith at 212-555-0123.", "Call [PERSON] at [PHONE]."),
        ("Mail jane.doe@clinic.example or x@ward.local now", "Mail [EMAIL] or [EMAIL] now"),
        ("A 54 year old man, MRN 0043521, seen 12/03/2021.", "A [AGE] man, [RECORD], seen [DATE]."),
        ("Lady of 70, aged 71, 72-year-old, 73yo", "[AGE], [AGE], [AGE], [AGE]"),
        ("On March 4th, 2020 and the 5th of May and June 2019", "On [DATE] and the [DATE] and [DATE]"),
        ("Card 4111 1111 1111 1111.", "Card [CARD]."),
        ("IBAN DE89370400440532013000.", "IBAN [IBAN]."),
        ("From 192.168.1.1, see https://foo.example.com/x?y=1", "From [IP], see [URL]"),
        ("Her social security number is 536-90-4399", "Her social security number is [SSN]"),
        ("Send 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "Send [CRYPTO]"),
        ("I owe $1,200, 300.50 euros and £5k.", "I owe [CURRENCY], [CURRENCY] and [CURRENCY]."),
        ("At 12 Old Mill Road, Springfield, IL 62704.", "At [ADDRESS], Springfield, [ADDRESS]."),
        ("I am u/someone99, or @some_one", "I am [HANDLE], or [HANDLE]"),
        ("Patient: John Doe, well", "[PERSON], well"),
        ("Call +44 20 7946 0958", "Call [PHONE]"),
    ],
)
def test_what_is_personal_is_masked(text, redacted):
    assert redact(text) == redacted
    assert redact(redacted) == redacted
    assert entities(text).total() == redacted.count("[")
    assert not entities(redacted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BP 120/80, HR 72, temp 37.2, 5 mg b.i.d. p.o. 1200 mg; Na 138, K 4.2, Hgb 13.2. WBC 12.4",
        "Patient presents with chest pain for 3 days. Record shows 4 visits. Case of flu.",
        "He may 5 times a day march 10 km; an august presence.",
    ],
)
def test_what_is_clinical_stays(text):
    assert redact(text) == text


@settings(max_examples=30, deadline=None)
@example("A1@11")  # a mask before what looks like a handle
@example("$1A1")  # a mask before what would be a licence by itself
@given(st.text(alphabet="aA1 .@/-:$\n€\ud800", max_size=60))
def test_whatever_the_text_redacting_twice_changes_nothing(text):
    assert redact(redact(text)) == redact(text)


def test_overlapping_pieces_are_one_of_the_longest_kind():
    merged = redaction._merged([(0, 4, "A"), (2, 12, "B"), (11, 14, "C"), (20, 22, "D")])
    assert merged == [(0, 14, "B"), (20, 22, "D")]
    assert redaction._merged([(0, 4, "B"), (0, 4, "A")]) == [(0, 4, "A")]


def test_nothing_is_fetched_and_nothing_logged(monkeypatch, caplog):
    refuse_network(monkeypatch, AssertionError("a connection"))
    caplog.set_level(logging.DEBUG)
    redaction.default.cache_clear()
    assert redact("Mail canary.zyx@hospital.example, Dr. Canaryzyx") == "Mail [EMAIL], [PERSON]"
    assert "canary" not in caplog.text.lower()


def test_a_spacy_model_by_its_folder_finds_names(tmp_path):
    import spacy

    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Springfield"}, {"label": "WORK_OF_ART", "pattern": "Guernica"}])
    pipeline.to_disk(tmp_path)
    redactor = Redactor(str(tmp_path))
    assert redactor.redact("In Springfield with Mr. Burns, Guernica") == "In [LOCATION] with [PERSON], Guernica"


def test_a_transformers_model_by_its_folder_finds_names(tmp_path):
    from tests.support.tiny_models import tiny_classifier

    tiny_classifier(tmp_path, kind="tokens", labels=["I-PER"])
    # One class only: every word is a name to it.
    assert Redactor(str(tmp_path)).redact("anna came") == "[PERSON]"


def test_what_is_no_model_is_refused(tmp_path):
    for name in ("no/such-model", str(tmp_path)):
        with pytest.raises(ConfigError, match="a folder"):
            Redactor(name)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(ConfigError, match="a spaCy package"):
        Redactor(str(tmp_path))
