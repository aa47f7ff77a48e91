"""Truncation of unfinished texts after their last complete sentence."""

import re

_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")


def whole_sentences(text: str) -> str:
    """Return the text up to the end of its last complete sentence; empty if it has no complete sentence."""
    ends = list(_END.finditer(text))
    return text[: ends[-1].end()] if ends else ""
