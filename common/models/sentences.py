"""Texts of models that were cut off, up to their last whole sentence."""

import re

_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")


def whole_sentences(text: str) -> str:
    """A text that was cut off, up to the end of its last whole sentence; empty if it has none."""
    ends = list(_END.finditer(text))
    return text[: ends[-1].end()] if ends else ""
