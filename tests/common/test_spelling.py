"""Which words look alike, and which characters are blank."""

import unicodedata

import pytest

from common.spelling import BLANK, alike, fold_word, is_blank, mixes_scripts
from tests.support.spellings import UNSEEN, WORDS, spellings


@pytest.mark.parametrize("word", WORDS)
def test_each_spelling_of_a_word_is_like_it(word):
    others = spellings(word)
    assert {other for other in others if fold_word(other) != fold_word(word)} == set()
    assert alike([word, *others]) == [list(dict.fromkeys([word, *others]))]


def test_words_that_people_tell_apart_are_not_alike():
    assert alike(["A+", "A-", "A", "grun", "grün", "flu", "flue", "I10", "I 11", "Ά", "Β"]) == []
    assert alike(["flu", "flu", "cold"]) == []


@pytest.mark.parametrize("pair", ["АA", "аa", "Βb", "СC", "сC", "Еe", "ОO", "ρp", "ЬB", "Ηh"])
def test_letters_of_other_scripts_are_like_those_of_latin(pair):
    other, latin = pair
    assert alike([f"{other} 7", f"{latin}7"]) == [[f"{other} 7", f"{latin}7"]]
    assert fold_word(other) != fold_word(latin)
    assert not mixes_scripts(f"{other}7")
    assert mixes_scripts(f"{other}{latin}")
    assert mixes_scripts(f"{latin}\u0301-{other}")


@pytest.mark.parametrize("word", WORDS)
def test_no_spelling_of_a_word_mixes_scripts(word):
    assert not any(map(mixes_scripts, [word, *spellings(word)]))


def test_printable_ascii_is_folded_as_all_else_is():
    printable = "".join(map(chr, range(32, 127)))
    assert fold_word(printable + "é") == fold_word(printable) + "é"


def test_what_cannot_be_seen_is_blank_and_nothing_else():
    assert all(map(is_blank, ["", " \u3000\n", "".join(UNSEEN), *BLANK]))
    seen = {chr(code) for code in range(0x3000) if unicodedata.category(chr(code))[0] in "LNPS"} - BLANK
    assert not any(map(is_blank, seen))
    assert not is_blank("\u200b.\u200b")
