"""Which words look alike, and which characters are blank."""

import unicodedata

import pytest

from common.spelling import BLANK, alike, folded, is_blank
from tests.support.spellings import UNSEEN, WORDS, spellings


@pytest.mark.parametrize("word", WORDS)
def test_each_spelling_of_a_word_is_like_it(word):
    others = spellings(word)
    assert {other for other in others if folded(other) != folded(word)} == set()
    assert alike([word, *others]) == [list(dict.fromkeys([word, *others]))]


def test_words_that_people_tell_apart_are_not_alike():
    assert alike(["A+", "A-", "A", "grun", "grün", "flu", "flue", "I10", "I 11", "Ά", "Β"]) == []
    assert alike(["flu", "flu", "cold"]) == []


def test_printable_ascii_is_folded_as_all_else_is():
    printable = "".join(map(chr, range(32, 127)))
    assert folded(printable + "é") == folded(printable) + "é"


def test_what_cannot_be_seen_is_blank_and_nothing_else():
    assert all(map(is_blank, ["", " \u3000\n", "".join(UNSEEN), *BLANK]))
    seen = {chr(code) for code in range(0x3000) if unicodedata.category(chr(code))[0] in "LNPS"} - BLANK
    assert not any(map(is_blank, seen))
    assert not is_blank("\u200b.\u200b")
