"""Log lines: how processes write them, and how they are shown, each as one printable line without terminal colours.

All files have times in UTC: `now` writes one, and `utc` shows it.
"""

import logging
import re
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from common.spelling import BLANK
from common.system.files import content_of

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""Format of the lines in all logs."""
WIDTH = 110
"""Maximum number of characters in a line of a command's table, unless one word is longer."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def begin_log() -> None:
    """Let a process that stands between Flower and us write its log, without the lines of httpx on each request."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def last_lines(path: Path, most: int, *, at: int = 0) -> tuple[str, ...]:
    """Return the last lines of a log in printable form, ignoring its first `at` bytes; empty if there is no log."""
    if not path.exists():
        return ()
    lines = content_of(path)[at:].decode(errors="replace").splitlines()
    return tuple(printable_line(COLOUR.sub("", line)) for line in lines[-most:])


def printable_line(line: str) -> str:
    """Mask unprintable characters, so that a quoted line cannot overwrite others."""
    return "".join(character if character.isprintable() else "?" for character in line)


def escaped_line(words: str) -> str:
    """Return words of others as one printable line, with unprintable and blank characters escaped."""
    return words if words.isprintable() and BLANK.isdisjoint(words) else ascii(words)


def wrap_lines(text: str, indent: int) -> list[str]:
    """Return a text as lines of at most `WIDTH` characters; all but the first begin with `indent` spaces."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def now() -> str:
    """Return the time in UTC, in ISO 8601 format to the second, as in all files of a hospital."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def utc(time: str) -> str:
    """Convert a time from a file, ISO 8601 in UTC, to a date and time of day."""
    return time[:19].replace("T", " ")
