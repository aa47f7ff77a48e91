"""How words are compared where people would take them for one, and which characters are blank."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | {
    chr(code) for first, last in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for code in range(first, last + 1)
}
"""Characters that Python considers printable although they are blank: fillers, a Braille cell without dots, vowels that
are not written, and selectors of a variant of the character before.
"""
_UNSEEN = ("Cc", "Cf")
"""Unicode's categories of characters that are not seen: control, and format, such as a space of zero width."""
_SIGNS = {"Pd": "-", "Pi": "'", "Pf": "'"}
"""Characters in place of all characters of a category: dashes, and quotes that open or close."""


def is_blank(text: str) -> bool:
    """Return whether no character of a text can be seen."""
    return all(
        character.isspace() or character in BLANK or unicodedata.category(character) in _UNSEEN for character in text
    )


def folded(word: str) -> str:
    """Return a word without what people overlook: case, spaces, unseen characters, encodings of one letter, dashes."""
    if word.isascii() and word.isprintable():
        return word.replace(" ", "").lower()  # the same, in a tenth of the time
    seen = "".join(character for character in word if not is_blank(character))
    caseless = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    signs = (_SIGNS.get(unicodedata.category(character), character) for character in caseless)
    return "".join(sign for sign in signs if not is_blank(sign))


def alike(words: Iterable[str]) -> list[list[str]]:
    """Return the groups of distinct words that are the same when folded; a word without another is in no group."""
    groups = defaultdict(list)
    for word in dict.fromkeys(words):
        groups[folded(word)].append(word)
    return [group for group in groups.values() if len(group) > 1]
