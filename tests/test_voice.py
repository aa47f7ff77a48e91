"""How the pages read: caps on words of a page, a paragraph and a sentence, and counts of patterns that may only fall.

A count that is now lower is written here, so that it does not rise again.
"""

import re
import subprocess

import pytest

from tests.support.requirements import ROOT

LONGER = {".github/CHANGELOG.md": 2300}
"""Page to its own cap: a history."""

PATTERNS = {
    r";": 0,
    r"\bwhat (?:is|was|has|a|the|it|this|they|can|each|you|comes|leaves|runs|others)\b": 0,
    r"\b(?:says?|tells?|knows?)\b": 0,
    r"\balone\b": 0,
    r"\bof (?:ours|yours|(?:its|their|our|your) own)\b": 0,
    r"\b(?:nobody|somebody|anybody|anew|whoever|beforehand)\b": 0,
    r"\d %": 0,
    r"(?<![\w.])\.\d{2,3}\b": 0,
}
"""Pattern to how often it stands in all pages."""

LONG_SENTENCES = 0
"""Sentences of more than 30 words."""


def pages():
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: (ROOT / name).read_text("utf-8") for name in names.split() if "templates" not in name}


def prose(text):
    """A page without code, the addresses of links, and comments."""
    text = re.sub(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", "x", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "")


def paragraphs(text):
    """The lines of prose and the items of lists: no headings and no tables."""
    return [line for line in prose(text).splitlines() if line.strip() and not line.lstrip().startswith(("#", "|", ">"))]


PAGES = pages()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_and_its_paragraphs_are_short(page):
    assert len(PAGES[page].split()) <= LONGER.get(page, 2000)
    assert [each for each in paragraphs(PAGES[page]) if len(each.split()) > 90] == []


def test_long_sentences_do_not_increase():
    lines = [line for text in PAGES.values() for line in paragraphs(text)]
    sentences = [each for line in lines for each in re.split(r"(?<=[.!?:])\s+", line)]
    assert len([each for each in sentences if len(each.split()) > 30]) == LONG_SENTENCES


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_does_not_spread(pattern):
    text = "\n".join(prose(text) for name, text in PAGES.items() if name not in LONGER)
    assert len(re.findall(pattern, text, re.IGNORECASE)) == PATTERNS[pattern]
