"""Terms of a public vocabulary in a text: leftmost-longest match over words (DP-KPS, section 2).

Words are the runs of letters and digits of a text, case-folded; everything between them counts as a space. A term is a
sequence of words. Only the first words of a text are read (`READ_WORDS`). From left to right, the longest term that
begins at a word is taken, and the search continues after it; if no term begins there, the search continues at the next
word. The result is a function of text and vocabulary alone.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from common.errors import ProtocolError
from common.queries.arrays import shape_of, wrong

_WORD = re.compile(r"[^\W_]+")
_RUN, _RUNS = re.compile(r"\S{1,32}"), 16
"""Pattern of a run of up to 32 characters without white space, and number of runs that are normalised together. The
number is small, since normalisation takes quadratic time to sort consecutive combining marks."""
READ_WORDS, READ_CHARACTERS = 1024, 16_384
"""Number of words of a text that are searched for terms, and number of characters that are searched for words. The rest
of the text is not read: otherwise the time of an answer would depend on the lengths of records, which no public number
bounds."""
MOST_WORDS, MOST_BYTES = 8, 256
"""Maximum number of words and of bytes of a term. Each word of a text may begin a term: without a bound, a text that
begins a long term at each word would take time in proportion to its squared length, which would reveal its presence."""


def words(text: str, most: float = math.inf) -> Iterator[str]:
    """Yield the words of a text. Unicode's compatibility forms, such as ligatures, become plain letters.

    A run of more than 32 characters without white space is split after every 32 characters.

    Args:
        text: The text.
        most: Number of plain characters after which no further run is read; normalisation may turn one character into
            18.
    """
    runs = _RUN.findall(text.casefold())
    for start in range(0, len(runs), _RUNS):
        plain = unicodedata.normalize("NFKC", " ".join(runs[start : start + _RUNS]))
        yield from _WORD.findall(plain)
        most -= len(plain)
        if most <= 0:
            return


class Extractor:
    """Finds terms in texts.

    The vocabulary is one trie over words: it maps (node, word) to the next node, with the root as node 0. Time and
    memory are linear in the vocabulary's words, and the time for a text is at most proportional to its number of words
    times that of the longest term (MOST_WORDS).

    Args:
        terms: The vocabulary. Of several terms with the same words, the first is found; a term without words is never
            found.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self._next: dict[tuple[int, str], int] = {}
        self._term: dict[int, int] = {}
        for position, term in enumerate(terms):
            node = 0
            for word in words(term):
                node = self._next.setdefault((node, word), len(self._next) + 1)
            if node:
                self._term.setdefault(node, position)

    def first(self, text: str, k: int) -> tuple[int, ...]:
        """Return the indices in the vocabulary of a text's first k distinct terms, in their order in the text."""
        positions: dict[int, None] = {}
        text_words = list(islice(words(text[:READ_CHARACTERS], READ_CHARACTERS), READ_WORDS))
        start = 0
        while start < len(text_words) and len(positions) < k:
            term, start = self._longest(text_words, start)
            if term is not None:
                positions[term] = None
        return tuple(positions)

    def _longest(self, text_words: list[str], start: int) -> tuple[int | None, int]:
        """Return the index of the longest term that begins at word `start`, or None, and the next word to search."""
        term, behind, node = None, start + 1, 0
        for place in range(start, len(text_words)):
            following = self._next.get((node, text_words[place]))
            if following is None:
                break
            node = following
            if node in self._term:
                term, behind = self._term[node], place + 1
        return term, behind


def fits(term: str) -> bool:
    """Return whether a term has at most MOST_WORDS words and MOST_BYTES bytes."""
    return len(term.encode(errors="replace")) <= MOST_BYTES and sum(1 for _ in words(term)) <= MOST_WORDS


def encode_terms(terms: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return a vocabulary as an array: the terms in UTF-8, each followed by a line feed.

    Raises:
        ProtocolError: The vocabulary has no terms, or a term is empty, repeated, too long, or contains a line feed or
            half of a surrogate pair.
    """
    expected = f"different terms in Unicode, none empty, each on one line of {MOST_WORDS} words at most"
    if not terms or "" in terms or len(set(terms)) < len(terms) or any("\n" in term for term in terms):
        raise ProtocolError("vocabulary", expected=expected, got="others")
    if not all(map(fits, terms)):
        raise ProtocolError("vocabulary", expected=expected, got="others")
    try:
        return np.frombuffer("".join(f"{term}\n" for term in terms).encode(), dtype=np.uint8)
    except UnicodeEncodeError as error:
        raise ProtocolError("vocabulary", expected=expected, got="others") from error


def decode_terms(terms: NDArray[np.uint8]) -> tuple[str, ...]:
    """Return the terms that `encode_terms` encoded."""
    return tuple(terms.tobytes().decode().split("\n")[:-1])


def check_terms(kind: str, terms: NDArray[np.uint8]) -> None:
    """Raise ProtocolError if an array is not the result of `encode_terms` for any vocabulary."""
    if terms.ndim != 1 or terms.dtype != np.uint8 or not len(terms) or terms[-1] != ord("\n"):
        raise wrong(kind, "terms", "bytes that end with a line feed", shape_of(terms))
    try:
        encode_terms(decode_terms(terms))
    except (UnicodeDecodeError, ProtocolError) as error:
        expected = f"different terms in UTF-8, none empty, of {MOST_WORDS} words at most"
        raise wrong(kind, "terms", expected, "others") from error
