"""How words are compared where people would take them for one, which mix scripts, and which characters are blank."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | {
    chr(code) for first, last in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for code in range(first, last + 1)
}
"""Characters that Python considers printable although they are blank: fillers, a Braille cell without dots, vowels that
are not written, and selectors of a variant of the character before.
"""
CONTROL = re.compile("[\\0-\\x1f\\x7f-\\x9f\u2028\u2029]")
"""Pattern of a character that ends a line, or controls a terminal."""
_UNSEEN = ("Cc", "Cf")
"""Unicode's categories of characters that are not seen: control, and format, such as a space of zero width."""
_SIGNS = {"Pd": "-", "Pi": "'", "Pf": "'"}
"""Characters in place of all characters of a category: dashes, and quotes that open or close."""
_LATIN_LOOKS = str.maketrans("авекмнорстухіјѕьзбԁһԛԝғγαβεζηικμνορτυχ", "abekmhopctyxijsb36dhqwfyabezhikmnoptyx")
"""Cyrillic and Greek letters, and the Latin letters or digits that they look like in lower or in upper case."""
_ONE_SCRIPT = dict.fromkeys(("HIRAGANA", "KATAKANA", "HANGUL"), "CJK")
"""Scripts that are written in one word."""


def is_blank(text: str) -> bool:
    """Return whether no character of a text can be seen."""
    return all(
        character.isspace() or character in BLANK or unicodedata.category(character) in _UNSEEN for character in text
    )


def fold_word(word: str) -> str:
    """Return a word without what people overlook: case, spaces, unseen characters, encodings of one letter, dashes."""
    if word.isascii() and word.isprintable():
        return word.replace(" ", "").lower()  # the same, in a tenth of the time
    seen = "".join(character for character in word if not is_blank(character))
    caseless = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    signs = (_SIGNS.get(unicodedata.category(character), character) for character in caseless)
    return "".join(sign for sign in signs if not is_blank(sign))


def skeleton(word: str) -> str:
    """Return a folded word with Latin letters in place of those that look like them; words that look alike have one."""
    return unicodedata.normalize("NFKD", fold_word(word)).translate(_LATIN_LOOKS)


def alike(words: Iterable[str]) -> list[list[str]]:
    """Return the groups of distinct words that look the same; a word without another is in no group."""
    groups = defaultdict(list)
    for word in dict.fromkeys(words):
        groups[skeleton(word)].append(word)
    return [group for group in groups.values() if len(group) > 1]


def mixes_scripts(word: str) -> bool:
    """Return whether a word has letters or digits of several scripts; digits of ASCII belong to every script."""
    seen = [
        unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
        for character in unicodedata.normalize("NFKC", word)
        if character.isalnum() and character not in "0123456789" and unicodedata.category(character) != "Lm"
    ]
    return len({_ONE_SCRIPT.get(script, script) for script in seen}) > 1


def strip_accents(text: str) -> str:
    """Return a text in NFKC without accents and other marks, in lower case."""
    parts = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", "".join(part for part in parts if unicodedata.category(part)[0] != "M"))
