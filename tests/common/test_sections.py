import time

import pytest

from common.errors import ConfigError
from common.sections import assemble_sections, bodies, check_headings, section_body, sections

HEADINGS = ("History", "Befund und Verlauf", "État")
LETTERS = ("A", "B", "C")


def found(text, headings=HEADINGS):
    return [(part.heading, text[part.start : part.end]) for part in sections(text, headings)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_a_heading_begins_a_line_whatever_its_case_colon_blanks_and_accents(end):
    text = end.join(
        ["Dear all", "HISTORY :", "58 y", "", "befund\tund  verlauf: x: y", "E\u0301tat", " \U0001f600 ", ""]
    )
    assert found(text) == [("History", "58 y"), ("Befund und Verlauf", "x: y"), ("État", "\U0001f600")]


@pytest.mark.parametrize(
    "text", ["", "no heading", "History of falls\nnone", "the History: x", "History:\n \nÉtat:", "Historys: x"]
)
def test_a_sentence_that_begins_like_a_heading_is_text_and_an_empty_section_is_none(text):
    assert found(text) == []


@pytest.mark.parametrize(
    "line", ["Ϊ\u0301: x", "ΐ: x", "ι\u0308\u0301: x", " " * 400 + "ΐ: x", "ΐ" + " " * 400 + "\nx"]
)
def test_a_heading_is_the_same_in_each_form_of_its_accents_and_behind_any_white_space(line):
    assert found(line, ["ΐ"]) == [("ΐ", "x")]


def test_a_heading_counts_once_and_its_second_text_belongs_to_no_section():
    assert found("History: a\nÉtat: b\nHistory: c\nd") == [("History", "a"), ("État", "b")]


def test_assembled_sections_are_found_again_where_they_are():
    text, parts = assemble_sections([("État", "bien.\nbeaucoup"), ("History", "x \U0001f600")])
    assert sections(text, HEADINGS) == parts
    assert bodies(text, parts) == ["bien.\nbeaucoup", "x \U0001f600"]


@pytest.mark.parametrize("piece", ["a", "\n", "History:\n", ":", "e\u0301", "\u0301", "\ufdfa", "x" * 319 + "\n"])
def test_the_time_is_linear_whatever_the_text_says(piece):
    start = time.process_time()
    sections(piece * (400_000 // len(piece)), HEADINGS)
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "headings",
    [[], ["a"] * 65, ["History", "HISTORY "], ["a\nb"], ["a:"], [" "], [1], ["x" * 81], ["All  texts"]],
)
def test_headings_that_no_text_could_tell_apart_are_refused(headings):
    with pytest.raises(ConfigError, match=r"task\.sections"):
        check_headings("task.sections", headings)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Fever.\nNo cough.", "Fever.\nNo cough."),
        ("B\nFever.", "Fever."),
        ("**B**: Fever.", "Fever."),
        ("Fever.\n\nc: nothing\nB: again", "Fever."),
        ("Fever.\nb:\nagain", "Fever."),
        ("C\nFever.", ""),
        ("B:", ""),
        (" \n ", ""),
    ],
)
def test_a_reply_keeps_what_stands_under_its_own_heading(reply, text):
    assert section_body(reply, "B", LETTERS) == text
    if text:
        whole, parts = assemble_sections([("A", "first"), ("B", section_body(reply, "B", LETTERS))])
        assert sections(whole, LETTERS) == parts
        assert bodies(whole, parts) == ["first", text]
