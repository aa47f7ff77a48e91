"""Texts divided into sections: one parser for hospitals, coordinator and evaluation.

A section begins with a heading at the beginning of a line: the heading alone, or the heading and a colon, after which
the text may continue. Case, white space and the encoding of accents do not matter. A section ends at the next heading.
Text before the first heading belongs to no section, and neither does text under a heading that has occurred before. A
heading without any text under it makes no section. The time is linear in the length of the text, whatever its content.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.domain import MOST_LABELS, UNLABELLED
from common.errors import ConfigError

LONGEST_HEADING = 80
"""Maximum number of characters of a heading."""

_READ = 4 * LONGEST_HEADING  # characters of a line that may be a heading, with accents apart and white space between
_COLON = re.compile("[:\N{FULLWIDTH COLON}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a text, without its heading.

    Attributes:
        start: Index of its first character in the text, in Unicode code points.
        end: Index after its last character.
        heading: Its heading, as spelt in the task.
    """

    start: int
    end: int
    heading: str


Sections = tuple[Section, ...]


def sections(text: str, headings: Iterable[str]) -> Sections:
    """Return the sections of a text under these headings, in the order of the text; no section is blank."""
    names = {normal_heading(heading): heading for heading in headings}
    headed, at = list[tuple[str, int, int]](), 0
    for line in text.splitlines(keepends=True):
        name, length = _opening(line)
        if name in names:
            headed.append((name, at, at + length))
        at += len(line)
    ends = [start for _, start, _ in headed[1:]] + [len(text)]
    seen, kept = set[str](), list[Section]()
    for (name, _, start), end in zip(headed, ends, strict=False):  # the last end is that of no heading if there is none
        body = text[start:end]
        if name not in seen and (stripped := body.strip()):
            first = start + len(body) - len(body.lstrip())
            kept.append(Section(start=first, end=first + len(stripped), heading=names[name]))
        seen.add(name)
    return tuple(kept)


def bodies(text: str, parts: Iterable[Section]) -> list[str]:
    """Return the text under each heading."""
    return [text[part.start : part.end] for part in parts]


def assemble_sections(parts: Sequence[tuple[str, str]]) -> tuple[str, Sections]:
    """Return the text that consists of these headings and their bodies, and its sections."""
    text, made = "", []
    for heading, body in parts:
        text += f"\n\n{heading}\n" if text else f"{heading}\n"
        made.append(Section(start=len(text), end=len(text) + len(body), heading=heading))
        text += body
    return text, tuple(made)


def normal_heading(heading: str) -> str:
    """Return the form in which headings are compared: lower case, single spaces, composed accents."""
    caseless = unicodedata.normalize("NFD", heading).casefold()  # which may itself take characters apart
    return " ".join(unicodedata.normalize("NFC", caseless).split())


def section_body(text: str, heading: str, headings: Sequence[str]) -> str:
    """Return the part of a text that belongs to this heading, without the heading, up to the next of the headings.

    If the text begins without the heading, its beginning belongs to it. Sections that are cut in this way and assembled
    are exactly those that were requested, whatever a model writes.
    """
    lines = text.strip().splitlines()
    if lines and normal_heading(lines[0].split(":", maxsplit=1)[0].strip("#* ")) == normal_heading(heading):
        text = "\n".join([lines[0].partition(":")[2], *lines[1:]])
    parts = sections(f"{heading}\n{text}", headings)
    return bodies(f"{heading}\n{text}", parts)[0] if parts and parts[0].heading == heading else ""


def check_headings(where: str, headings: Sequence[object]) -> tuple[str, ...]:
    """Check that headings can be distinguished from each other in a text, and return them.

    Raises:
        ConfigError: There are no headings, or too many; a heading is not text, is blank, is too long, or has a colon or
            a line break; or two headings differ only in case and white space.
    """
    if not 1 <= len(headings) <= MOST_LABELS:
        raise ConfigError(where, expected=f"1 to {MOST_LABELS} headings", got=len(headings))
    names = list[str]()
    for heading in headings:
        # YAML does not read an unquoted yes, no or 1 as text.
        if not isinstance(heading, str) or not heading.strip() or not heading.isprintable() or _COLON.search(heading):
            expected = "headings that are printable texts, not blank, without a colon or a line break"
            raise ConfigError(where, expected=expected, got=repr(heading))
        if len(heading) > LONGEST_HEADING:
            expected = f"headings of at most {LONGEST_HEADING} characters"
            raise ConfigError(where, expected=expected, got=f"one of {len(heading)}")
        if normal_heading(heading) == UNLABELLED:
            raise ConfigError(where, expected=f"other headings than {UNLABELLED!r}, which means no labels", got="it")
        if normal_heading(heading) in map(normal_heading, names):
            expected = "headings that differ in more than case and white space"
            raise ConfigError(where, expected=expected, got=f"{heading!r} more than once")
        names.append(heading.strip())
    return tuple(names)


def _opening(line: str) -> tuple[str, int]:
    """Return the heading with which a line could begin, in its normal form, and its length including the colon."""
    start = line.strip()[:_READ]
    if colon := _COLON.search(start):
        return normal_heading(start[: colon.start()]), line.index(colon.group()) + 1
    return (normal_heading(start), len(line)) if len(start) < _READ else ("", 0)
