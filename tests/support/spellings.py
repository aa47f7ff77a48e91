"""Spellings that people overlook: a word in every encoding, case and width, with every character that is not seen."""

import sys
import unicodedata

WORDS = ("flu", "covid-19", "grün", "Straße", "ΣΙΣΥΦΟΣ", "インフルエンザ", "lung cancer", "ﬁbrosis", "Crohn’s", "가나")
UNSEEN = tuple(
    character for character in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(character) in {"Cc", "Cf"}
)
SPACES = tuple(character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace())
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def spellings(word):
    """Return all other spellings of a word."""
    half = len(word) // 2
    forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    cases = [word.upper(), word.lower(), word.title(), word.casefold()]
    signs = [word.replace("-", dash) for dash in "\u2010\u2011\u2013\u2014"] + [word.replace("’", "'")]
    inside = [f"{word[:half]}{sign}{word[half:]}" for sign in (*UNSEEN, *SPACES)]
    ends = [f"{one}{word}{other}" for sign in SPACES for one, other in (("", sign), (sign, ""))]
    return [other for other in (*forms, *cases, word.translate(_WIDE), *signs, *inside, *ends) if other != word]
