"""Texts that models write, up to where they were cut off."""

import re

_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")


def whole_sentences(text: str) -> str:
    """A text that was cut off, up to the end of its last whole sentence; empty if it has none."""
    ends = list(_END.finditer(text))
    return text[: ends[-1].end()] if ends else ""
