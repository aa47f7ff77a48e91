"""The demo notes in each language: the same diagnoses, styles and numbers of notes, in words of that language alone."""

import re
from collections import Counter

import pytest

from common.errors import ConfigError
from server.settings.tasks import NOTES_LANGUAGES
from server.tasks.demo_notes import held_out_notes, private_notes, public_examples, public_text
from server.tasks.grammar import load_grammar
from server.tasks.sources import DemoNotes, LabelledFiles
from tests.support.demo_corpora import accuracy

OTHERS = [language for language in NOTES_LANGUAGES if language != "english"]
_WORD = re.compile(r"[^\W\d_]+")


def words_of(text):
    return {word.lower() for word in _WORD.findall(text)}


_ENGLISH_WORDS = words_of("the and with of has is from this for are no in at by he she patient without both")
# "In" and "Patient" are words of German too, "patient" of French.
_FOREIGN = {"german": _ENGLISH_WORDS - {"in", "patient"}, "french": _ENGLISH_WORDS - {"patient"}}


def private(language, count=100, seed=0):
    return [record for hospital in range(3) for record in private_notes(hospital, count, seed, language)]


@pytest.mark.parametrize("language", OTHERS)
def test_texts_are_whole_distinct_and_without_english_words(language):
    texts = [record.text for record in (*private(language), *held_out_notes(100, 0, language=language))]
    texts += public_text(400, 0, language)
    assert all(texts)
    assert not any(slip in text for text in texts for slip in ("{", "}", "|", "  ", "..", " ,"))
    assert len(set(texts)) > 0.99 * len(texts)
    found = Counter(word for text in texts for word in words_of(text) & _FOREIGN[language])
    assert not found


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_classes_are_learnable_and_confusable(language):
    assert 0.85 < accuracy(private(language, 300, 1), held_out_notes(400, 1, language=language)) < 0.98


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_public_text_has_other_complaints_and_names_the_conditions(language):
    grammar, examples = load_grammar(language), public_examples(600, 0, language)
    assert not any(grammar.complaint in example.text for example in examples)
    assert {example.topic for example in examples} == {*grammar.labels, *grammar.ward_complaints}
    for condition in grammar.conditions:
        assert any(condition.lower() in example.text.lower() for example in examples)


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_the_setting_chooses_everything_of_the_task(language):
    source = DemoNotes(records_per_party=5, test_records=7, public_notes=9, language=language)
    assert source.task() == load_grammar(language).task
    assert source.public_texts() == public_text(9, 0, language)
    assert [example.text for example in source.public_examples()] == source.public_texts()
    assert source.held_out() == held_out_notes(7, 0, language=language)
    assert source.private(1, 4) == private_notes(1, 4, 0, language)


def test_an_unknown_language_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"^task\.language; .*'klingon'"):
        DemoNotes(language="klingon")
    with pytest.raises(ConfigError, match=r"^task\.language; .*'de'"):
        LabelledFiles(name="t", kind="text", labels={"a": "first", "b": None}, language="de")
