"""Spans, the entities of a text, and their marks, as in `<drug>aspirin</drug>`: reading, removing and restoring them.

Spans never overlap. A name in angle brackets is a tag. A tag whose name is not a planned type, such as `<b>`, is
rejected; a bracket that encloses no name, as in "SpO2 <92", is ordinary text. A text with an incorrect mark has no
spans at all, since the meaning of its marks is unknown.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""Pattern of a type's name."""
REASONS = ("unplanned type", "unbalanced tags", "nested tags", "empty span")
"""Reasons why the marks of a text cannot be read."""

_UNPLANNED, _UNBALANCED, _NESTED, _EMPTY = REASONS
_TAG = re.compile(rf"<(/?)({NAME.pattern})>")
_WORD = re.compile(rf"(?:<({NAME.pattern})>.*?</\1>|\S)+", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An entity in a text.

    Attributes:
        start: Position of its first character, in Unicode code points from the beginning of the text.
        end: Position after its last character.
        type: One of the task's types (`Task.spans`).
    """

    start: int
    end: int
    type: str


Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without marks, and its spans in order."""

    text: str
    spans: Spans = ()


def read_marks(reply: str, types: Collection[str]) -> Marked | str:
    """Remove the marks of these types from a text; return it with its spans, or one of `REASONS` if a mark is wrong.

    Leading and trailing white space is removed from the text and left out of each span.
    """
    text, at, spans = "", 0, []
    opened: tuple[str, int] | None = None
    for tag in _TAG.finditer(reply):
        text += reply[at : tag.start()]
        at, (closing, name) = tag.end(), tag.groups()
        if name not in types:
            return _UNPLANNED
        if not closing:
            if opened:
                return _NESTED
            opened = name, len(text)
        elif opened is None or opened[0] != name:
            return _UNBALANCED
        else:
            spans.append(_trimmed(text, opened[1], name))
            opened = None
    text += reply[at:]
    if opened or _TAG.search(text):  # "<<drug>drug</drug>>" would leave a tag
        return _UNBALANCED
    if any(span.start >= span.end for span in spans):
        return _EMPTY
    shift = len(text) - len(text.lstrip())
    moved = (replace(span, start=span.start - shift, end=span.end - shift) for span in spans)
    return Marked(text.strip(), tuple(moved))


def mark_spans(text: str, spans: Iterable[Span]) -> str:
    """Return the text with its marks, the inverse of `read_marks`."""
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], f"<{span.type}>", text[span.start : span.end], f"</{span.type}>"]
        at = span.end
    return "".join([*parts, text[at:]])


def misfit(text: str, spans: Iterable[tuple[int, Span]]) -> str | None:
    """Describe the first span that does not fit a text, by its number but not its text; None if all spans fit.

    Spans fit if they are in order, do not overlap and are not blank, and the text contains no tag.
    """
    if _TAG.search(text):
        return "a tag in the text, such as <b>"
    before = 0
    for number, span in spans:
        if span.start < 0 or span.end > len(text):
            return f"span {number} that goes beyond the text of {len(text)} characters"
        if span.start < before:
            return f"span {number} that begins before the end of the one before"
        if not text[span.start : span.end].strip():
            return f"span {number} that is blank"
        before = span.end
    return None


def remove_tags(text: str) -> str:
    """Return a text with all tags removed, including incorrect ones."""
    return _TAG.sub("", text)


def words(text: str) -> list[re.Match[str]]:
    """Return the words of a text with marks, in which a span counts as one word, so that no span is split."""
    return list(_WORD.finditer(text))


def split_tokens(text: str) -> list[tuple[str, int, int]]:
    """Return the words and symbols of a text without marks, each with its start and end."""
    return [(token.group(), token.start(), token.end()) for token in _TOKEN.finditer(text)]


def _trimmed(text: str, start: int, name: str) -> Span:
    """Return the span from `start` to the end of the text so far, without leading or trailing white space."""
    inner = text[start:]
    return Span(start=start + len(inner) - len(inner.lstrip()), end=start + len(inner.rstrip()), type=name)
