"""A warning that is repeated says nothing new: a filter of logs that lets each sentence through once."""

import contextlib
import logging
from collections.abc import Iterator

from common.system.progress import Console

EVENTS = ("caucus.network", "caucus.ask")
"""Loggers whose warnings are events, each with its own time: a party that is late twice was late twice."""


class WarnedOnce(logging.Filter):
    """Lets the first warning of each sentence through, to all handlers that have this filter; for one run."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[tuple[str, str], logging.LogRecord] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        if record.levelno != logging.WARNING or record.name in EVENTS:
            return True
        return self._first.setdefault((record.name, record.getMessage()), record) is record


@contextlib.contextmanager
def warned_once(*handlers: logging.Handler) -> Iterator[None]:
    """Give the handlers one such filter for the time of the block."""
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
    """Show the warnings of a command that sets up no log as Python does, but once, and not in the line of a bar."""
    console = Console()
    console.setLevel(logging.WARNING)
    before, logging.lastResort = logging.lastResort, console
    try:
        with warned_once(console):
            yield
    finally:
        logging.lastResort = before
