"""The pages' sentences: each that a template names exists, and each that exists is named."""

import re
from importlib import resources
from types import SimpleNamespace

import pytest

import client.page.render
import server.page.render
from common.page.words import LANGUAGES

PAGES = {"client.page": client.page.render.PAGES, "server.page": server.page.render.PAGES}


def templates(package):
    folder = resources.files(package) / "templates"
    return "".join(file.read_text("utf-8") for file in folder.iterdir() if file.name != "..")


def sentences(package):
    """Names of the sentences; those of a group within a group belong to the group, which a template indexes."""
    for name, value in vars(PAGES[package].say).items():
        if isinstance(value, SimpleNamespace) and name != "tabs":
            yield from (f"{name}.{inner}" for inner in vars(value))
        else:
            yield name


@pytest.mark.parametrize("package", PAGES)
def test_each_sentence_is_on_a_page_and_each_on_a_page_is_there(package):
    named = set(re.findall(r"\bsay\.(\w+(?:\.\w+)?)", templates(package) + templates("common.page")))
    assert set(sentences(package)) == named


@pytest.mark.parametrize("package", PAGES)
def test_sentences_are_whole_and_printable(package):
    def texts(value):
        if isinstance(value, SimpleNamespace):
            value = list(vars(value).values())
        if isinstance(value, list):
            return [text for item in value for text in texts(item)]
        return [value]

    every = texts(PAGES[package].say)
    assert all(isinstance(text, str) and text.isprintable() and text == text.strip() for text in every)
    assert LANGUAGES == ("english",)


def test_a_page_s_own_sentence_stands_beside_the_shared_ones_of_its_group():
    refusals = [vars(pages.say.refused) for pages in PAGES.values()]
    assert all(set(refusal) == {"title", "why", "do"} for refusal in refusals)
    assert len({refusal["title"] for refusal in refusals}) == 1
    assert len({refusal["do"] for refusal in refusals}) == 2
