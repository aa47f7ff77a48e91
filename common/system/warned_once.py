"""A log filter that lets each warning through only once, since repetitions contain nothing new."""

import contextlib
import logging
from collections.abc import Iterator

from common.system.progress import Console

EVENTS = ("caucus.network", "caucus.ask")
"""Loggers whose warnings report events, each with its own time: if a party is late twice, both warnings are shown."""


class WarnedOnce(logging.Filter):
    """A filter for one run: all handlers that share it get only the first warning with each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[tuple[str, str], logging.LogRecord] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is shown."""
        if record.levelno != logging.WARNING or record.name in EVENTS:
            return True
        return self._first.setdefault((record.name, record.getMessage()), record) is record


@contextlib.contextmanager
def warned_once(*handlers: logging.Handler) -> Iterator[None]:
    """Give the handlers one `WarnedOnce` for the duration of the block."""
    once = WarnedOnce()
    for handler in handlers:
        handler.addFilter(once)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(once)


@contextlib.contextmanager
def shown_without_a_log() -> Iterator[None]:
    """Show warnings on standard error where a command has no log, each only once and above any progress bar."""
    console = Console()
    console.setLevel(logging.WARNING)
    before, logging.lastResort = logging.lastResort, console
    try:
        with warned_once(console):
            yield
    finally:
        logging.lastResort = before
