"""Recognises texts that are no plain text, such as RTF, HTML or base64, by their characters alone."""

import base64
import re

_BEGINNINGS = {
    "RTF": re.compile(r"\s*\{\\rtf"),
    "PDF": re.compile(r"\s*%PDF-"),
    "HL7 version 2": re.compile(r"\s*MSH\|\^~"),
}
"""How a text begins that is no plain text, keyed by its format."""
_MARKUP = re.compile(r"<(?:\?xml|!doctype|html|br\s*/?>|/[a-z][\w:-]*\s*>)", re.IGNORECASE)
"""What texts in HTML, XML or C-CDA contain: a tag that begins the whole, ends an element, or breaks a line."""
_ESCAPE = re.compile("&(?:#[0-9]+|#x[0-9a-f]+|[a-z]{2,8});", re.IGNORECASE)
_SHORTEST_BASE64, _LONGEST_WORD = 24, 64
"""Number of characters below which a word is not taken for base64, and from which it is, whatever it encodes."""


def format_of(text: str) -> str | None:
    """Return the format of a text that is no plain text, such as "RTF"; None if no such format is recognised.

    HTML, XML and C-CDA are recognised by tags that clinical notes do not have, such as one that closes an element.
    """
    for name, pattern in _BEGINNINGS.items():
        if pattern.match(text):
            return name
    if "<" in text and _MARKUP.search(text):  # the first is the faster one, and most texts have none
        return "HTML or XML"
    return "base64" if _is_base64(text) else None


def has_escapes(text: str) -> bool:
    """Return whether a text has characters that HTML or XML writes as names or numbers, such as &amp; or &#228;."""
    return "&" in text and _ESCAPE.search(text) is not None


def _is_base64(text: str) -> bool:
    """Return whether a text is one word, perhaps in several lines, of base64 that is long or encodes text."""
    word = "" if " " in text else "".join(text.split())
    if len(word) < _SHORTEST_BASE64 or len(word) % 4:
        return False
    try:
        content = base64.b64decode(word, validate=True)
        return len(word) >= _LONGEST_WORD or content.decode().isprintable()
    except ValueError:
        return False
