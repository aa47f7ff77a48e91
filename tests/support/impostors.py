"""Texts of others that contain lines of an output, and how the output's true lines are read back."""

import json
import re

FINGERPRINT = re.compile("[0-9a-f]{4}( [0-9a-f]{4}){7}")
_NAMED = re.compile(r"  party \d+( \(this hospital\))?, at most [\d,]+ records, with the name (\".*\")")


def impostors(lines):
    """Yield each line of an output, and the line after a name, before a gap, after a closed quote, on its own line."""
    for line in lines:
        text = line.strip()
        yield from (line, text, f"St. Luke: {text}", f"St. Luke {text}", f'St. Luke"\n{line}\n"', f'" {text}')
        yield from (text.replace(" ", "\u00a0"), text.replace(" ", "\u2800"), text.upper(), text.replace(" ", "-"))
        for blank in ("\u2800", "\u3164", "\ufe0f", " "):
            yield text + blank * 40
            yield f"St. Luke, {text[:40]}{blank * 20}"


def compared(lines):
    """Return each fingerprint that stands in the lines, with the name that belongs to it; one without a name fails."""
    pairs = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if FINGERPRINT.fullmatch(line):
            pairs.append((json.loads(_NAMED.fullmatch(after)[2]), line))
        elif not line.startswith("fingerprint of the roster"):
            assert not FINGERPRINT.search(line), line
    return pairs
