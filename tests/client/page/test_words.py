"""The page's sentences: each that a template names exists, each that exists is named, and all languages have them."""

import re
from importlib import resources
from string import Formatter
from types import SimpleNamespace

import pytest

import client.page
from client.page.words import LANGUAGES, words

TEMPLATES = "".join(
    file.read_text("utf-8") for file in (resources.files(client.page) / "templates").iterdir() if file.name != ".."
)
NAMED = set(re.findall(r"\bsay\.(\w+(?:\.\w+)?)", TEMPLATES))
FILES = sorted(
    file.name.removesuffix(".yaml") for file in resources.files(client.page).iterdir() if file.name.endswith(".yaml")
)
TRANSLATED = [language for language in FILES if language != "english"]
ALIKE = {"title", "tabs.plans", "tabs.budget", "now.messages.Ask", "release.found"}
"""What may be the same in another language: a name, words that it shares with English, and a value alone."""
DECISION = re.compile(r"plans\.buttons\.\w+\.\d+\.0")
"""What a button sends; the sentence beside it is what a person reads."""
KEPT = re.compile(r"caucus-party \w+|\w+\.(?:yaml|jsonl)|approval: \w+|\((?:sample|user)\)|SuperNode|[εδ]")
"""What is typed, is a file's or a setting's name, or a symbol."""
MISTYPED = {
    "german": r"[^\u00a0]%|[\"'”]|“\w|\w„",
    "french": r"[^\u202f][;:?!%»]|«[^\u202f]|[\"'“”]",
}
"""Quotation marks and spaces that a language does not have."""


def sentences():
    """Names of the sentences; those of a group within a group belong to the group, which a template indexes."""
    for name, value in vars(words()).items():
        if isinstance(value, SimpleNamespace) and name != "tabs":
            yield from (f"{name}.{inner}" for inner in vars(value))
        else:
            yield name


def named(value, name=""):
    """Each string below a value, by its whole name; what is in a list has its place for a name."""
    if isinstance(value, str):
        yield name, value
        return
    inner = vars(value).items() if isinstance(value, SimpleNamespace) else enumerate(value)
    for key, item in inner:
        yield from named(item, f"{name}.{key}".removeprefix("."))


def all_of(language):
    return dict(named(words(language)))


def filled_in(text):
    """The numbers of the values that a sentence shows; another language may have another order."""
    fields = [field for field in Formatter().parse(text) if field[1] is not None]
    text.format(*map(str, range(len(fields))))  # refuses {} beside {0}
    return sorted((name or str(place), spec, conversion) for place, (_, name, spec, conversion) in enumerate(fields))


def test_each_sentence_is_on_a_page_and_each_on_a_page_is_there():
    assert set(sentences()) == NAMED


def test_the_languages_are_the_files_and_each_is_another():
    assert sorted(LANGUAGES) == FILES
    assert LANGUAGES[0] == "english"
    assert len({words(language).lang for language in LANGUAGES}) == len(LANGUAGES)


@pytest.mark.parametrize("language", FILES)
def test_sentences_are_whole_and_printable(language):
    for text in all_of(language).values():
        assert re.sub("[\u00a0\u202f]", " ", text).isprintable(), text
        assert text == text.strip(), text


@pytest.mark.parametrize("language", TRANSLATED)
class TestTranslation:
    """A language against English, which the templates were written for."""

    def test_it_has_the_same_names_and_lists_of_the_same_length(self, language):
        assert list(all_of(language)) == list(all_of("english"))

    def test_each_sentence_shows_the_same_values(self, language):
        english = all_of("english")
        for name, text in all_of(language).items():
            assert filled_in(text) == filled_in(english[name]), name

    def test_nothing_is_left_in_english(self, language):
        english = all_of("english")
        same = {name for name, text in all_of(language).items() if text == english[name]}
        decisions = {name for name in english if DECISION.fullmatch(name)}
        assert decisions <= same
        assert same - decisions <= ALIKE

    def test_commands_settings_and_symbols_stay(self, language):
        english = all_of("english")
        for name, text in all_of(language).items():
            assert sorted(KEPT.findall(text)) == sorted(KEPT.findall(english[name])), name

    def test_quotation_marks_and_spaces_are_those_of_the_language(self, language):
        for text in all_of(language).values():
            assert not re.search(MISTYPED[language], text.replace("approval:", "")), text
