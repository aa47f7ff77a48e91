"""The page's sentences: each that a template names exists, and each that exists is named."""

import re
from importlib import resources
from types import SimpleNamespace

import client.page
from client.page.words import LANGUAGES, words

TEMPLATES = "".join(
    file.read_text("utf-8") for file in (resources.files(client.page) / "templates").iterdir() if file.name != ".."
)
NAMED = set(re.findall(r"\bsay\.(\w+(?:\.\w+)?)", TEMPLATES))


def sentences():
    """Names of the sentences; those of a group within a group belong to the group, which a template indexes."""
    for name, value in vars(words()).items():
        if isinstance(value, SimpleNamespace) and name != "tabs":
            yield from (f"{name}.{inner}" for inner in vars(value))
        else:
            yield name


def test_each_sentence_is_on_a_page_and_each_on_a_page_is_there():
    assert set(sentences()) == NAMED


def test_sentences_are_whole_and_printable():
    def texts(value):
        if isinstance(value, SimpleNamespace):
            value = list(vars(value).values())
        if isinstance(value, list):
            return [text for item in value for text in texts(item)]
        return [value]

    assert all(isinstance(text, str) and text.isprintable() and text == text.strip() for text in texts(words()))
    assert LANGUAGES == ("english",)
