"""Marking of spans by the built-in model, which cannot follow instructions: it marks phrases that public texts mark.

A phrase in a new text is marked if, after the same word, public texts mark it more often than not. If public texts
never have the phrase after that word, all occurrences of the phrase count. The longest phrase wins, case does not
matter, and all digits are treated as equal, so that "T 38.1" is marked if public texts mark "T 36.9".
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from server.domain import Example
from server.spans import Span, mark_spans, split_tokens

_DIGIT = re.compile(r"\d")

Phrase = tuple[str, ...]


class Lexicon:
    """The phrases that public texts mark.

    Args:
        examples: Public texts; those without spans are ignored.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        texts = [
            (_tokens(text.text), {(s.start, s.end): s.type for s in text.spans}) for text in examples if text.spans
        ]
        self._phrases = {phrase for tokens, spans in texts for phrase in _marked_phrases(tokens, spans)}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for phrase in self._phrases:
            lengths[phrase[0]].add(len(phrase))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}
        self._seen: defaultdict[Phrase, Counter[str | None]] = defaultdict(Counter)
        self._after: defaultdict[tuple[str, Phrase], Counter[str | None]] = defaultdict(Counter)
        for tokens, spans in texts:
            for before, phrase, start, end in self._found(tokens):
                kind = spans.get((start, end))
                self._seen[phrase][kind] += 1
                self._after[before, phrase][kind] += 1
        content = repr(sorted((phrase, counts.most_common()) for phrase, counts in self._seen.items()))
        self.digest = hashlib.sha256(content.encode()).hexdigest()[:16] if texts else ""

    def mark(self, text: str) -> str:
        """Return the text with marks."""
        spans = []
        for before, phrase, start, end in self._found(_tokens(text)):
            counts = self._after.get((before, phrase)) or self._seen[phrase]
            kind = counts.most_common(1)[0][0] if counts else None
            if kind is not None:
                spans.append(Span(start=start, end=end, type=kind))
        return mark_spans(text, spans)

    def _found(self, tokens: Sequence[tuple[str, int, int]]) -> Iterator[tuple[str, Phrase, int, int]]:
        """Yield the known phrases in a text, the longest at each position, with the preceding word, start and end."""
        at = 0
        while at < len(tokens):
            for size in self._lengths.get(tokens[at][0], ()):
                phrase = tuple(word for word, _, _ in tokens[at : at + size])
                if phrase in self._phrases:
                    end = at + len(phrase)  # which is less than `size` at the end of a text
                    yield tokens[at - 1][0] if at else "", phrase, tokens[at][1], tokens[end - 1][2]
                    at = end
                    break
            else:
                at += 1


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Return the words and symbols of a text, in the form used for comparison, each with its start and end."""
    return [(_DIGIT.sub("0", word.casefold()), start, end) for word, start, end in split_tokens(text)]


def _marked_phrases(tokens: Sequence[tuple[str, int, int]], spans: dict[tuple[int, int], str]) -> Iterator[Phrase]:
    for start, end in spans:
        if phrase := tuple(word for word, first, last in tokens if start <= first and last <= end):
            yield phrase
