"""Truncation of unfinished texts to their last whole sentence."""

import re

_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")


def whole_sentences(text: str) -> str:
    """Return the text up to the end of its last whole sentence; empty if it has none."""
    ends = list(_END.finditer(text))
    return text[: ends[-1].end()] if ends else ""
