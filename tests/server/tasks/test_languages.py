"""The demo notes in each language: the same diagnoses, styles and numbers of notes, in words of that language alone."""

import re
from collections import Counter

import pytest

from common.errors import ConfigError
from server.settings.tasks import NOTES_LANGUAGES
from server.tasks.demo_notes import private_notes, public_examples, public_text, test_notes
from server.tasks.grammar import SECTIONS, load_grammar
from server.tasks.sources import DemoNotes, LabelledFiles
from tests.support.demo_corpora import accuracy

ENGLISH = load_grammar("english")
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
def test_a_grammar_fills_in_what_the_english_one_has(language):
    grammar = load_grammar(language)
    for at, (section, percents, ways) in enumerate(grammar.findings):
        assert (section, percents) == ENGLISH.findings[at][:2]
        assert all(len(way) == 2 and all(way) for way in ways)
        assert len(ways) == 3
    assert [section for section, *_ in grammar.elsewhere] == [section for section, *_ in ENGLISH.elsewhere]
    assert all(len(line) == 4 and all(line) for line in grammar.elsewhere)
    assert set(grammar.leads) == set(SECTIONS)
    assert all(len(heads) == len(SECTIONS) for heads in grammar.heads)
    assert len(grammar.labels) == len(grammar.conditions) == len(ENGLISH.labels)
    assert len(grammar.ward_complaints) == len(ENGLISH.ward_complaints)
    assert len(grammar.task.attributes) == len(ENGLISH.task.attributes)
    assert (grammar.task.language, grammar.task.name) == (language, f"demo_notes_{language}")


@pytest.mark.parametrize("language", OTHERS)
def test_texts_are_whole_distinct_and_without_english_words(language):
    texts = [record.text for record in (*private(language), *test_notes(100, 0, language=language))]
    texts += public_text(400, 0, language)
    assert all(texts)
    assert not any(slip in text for text in texts for slip in ("{", "}", "|", "  ", "..", " ,"))
    assert len(set(texts)) > 0.99 * len(texts)
    found = Counter(word for text in texts for word in words_of(text) & _FOREIGN[language])
    assert not found


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_classes_are_learnable_and_confusable(language):
    assert 0.85 < accuracy(private(language, 300, 1), test_notes(400, 1, language=language)) < 0.98


@pytest.mark.parametrize("language", NOTES_LANGUAGES)
def test_no_word_alone_gives_the_class_away_and_no_note_names_it(language):
    records = private(language, 500)
    by_word: dict[str, Counter[str]] = {}
    for record in records:
        for word in words_of(record.text):
            by_word.setdefault(word, Counter())[record.label] += 1
    assert max(max(seen.values()) / seen.total() for seen in by_word.values() if seen.total() >= 40) < 0.9
    named = ("pneumonie", "insuffizienz", "embolie", "pneumopathie", "insuffisance cardiaque", "exazerbation")
    named += ("pneumonia", "embolism")
    assert not any(name in record.text.lower() for record in records for name in named)


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
    assert source.held_out() == test_notes(7, 0, language=language)
    assert source.private(1, 4) == private_notes(1, 4, 0, language)


def test_an_unknown_language_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"task\.language; expected one of english, german, french; got 'klingon'"):
        DemoNotes(language="klingon")
    with pytest.raises(ConfigError, match=r"task\.language; expected one of english, .*italian; got 'de'"):
        LabelledFiles(name="t", kind="text", labels={"a": "first", "b": None}, language="de")
