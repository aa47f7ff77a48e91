"""What a person sees of a command that works: the progress of long steps, each warning once, and a question.

Progress is a bar or a clock on a terminal while a step lasts; otherwise, one line in the log.
"""

import contextlib
import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

from common.errors import ConfigError

SECONDS = 1.0
"""Seconds until progress is shown, and between two updates of its clock."""
LONG = 5.0
"""Seconds after which a step that is not shown on a terminal gets a line in the log."""
EVENTS = ("caucus.network", "caucus.ask")
"""Loggers whose warnings report events, each with its own time: if a party is late twice, both warnings are shown."""

log = logging.getLogger("caucus.progress")


@contextlib.contextmanager
def progress(
    title: str, total: int | None = None, unit: str = "text", *, logged: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show a step while it lasts: a bar if there is a total, otherwise a clock.

    If standard error is not a terminal, the log has the title once the step has taken `LONG` seconds. A step with a
    single item is not shown, since records are embedded one by one, and there are many.

    Args:
        title: Name of the step. It contains no private number, since logs show it.
        total: Number of items to process.
        unit: Name of one item.
        logged: Whether the log may have a line for this step; false if the step's parts have lines themselves.

    Yields:
        A function that adds a number of items to those already processed.
    """
    done = 0

    def advance(number: int) -> None:
        nonlocal done
        done += number

    ended = threading.Event()

    def show() -> None:
        if ended.wait(SECONDS):
            return
        clock = None if total else "{desc} {elapsed}"
        with tqdm(total=total, desc=title, unit=unit, leave=False, bar_format=clock) as bar:
            while True:
                bar.n = done
                bar.refresh()
                if ended.wait(SECONDS):
                    return

    if total == 1:
        yield advance
        return
    if not sys.stderr.isatty() or multiprocessing.parent_process():  # a parallel sweep has one terminal
        with logged_if_long(title) if logged else contextlib.nullcontext():
            yield advance
        return
    showing = threading.Thread(target=show, daemon=True)
    showing.start()
    try:
        yield advance
    finally:
        ended.set()
        showing.join()


@contextlib.contextmanager
def logged_if_long(title: str) -> Iterator[None]:
    """Write the title of a step to the log once the step has taken `LONG` seconds."""
    line = threading.Timer(LONG, log.info, [title])
    line.daemon = True
    line.start()
    try:
        yield
    finally:
        line.cancel()


class Console(logging.StreamHandler):  # type: ignore[type-arg]
    """A log on a terminal whose lines do not mix with what `progress` shows there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line above all bars."""
        with tqdm.external_write_mode(file=self.stream):
            super().emit(record)


class WarnedOnce(logging.Filter):
    """A filter for one run: all handlers that share it get each warning once, since repetitions say nothing new."""

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


def is_agreed(question: str, *, what: str, do: str) -> bool:
    """Ask a yes-or-no question before a command does what is hard to undo; the answer is no by default.

    Raises:
        ConfigError: There is no terminal to ask at; the message has what needs an answer, and the advice `do`.
    """
    if not sys.stdin.isatty():
        raise ConfigError(what, expected="a terminal, or --yes", got="neither", do=do)
    try:
        with tqdm.external_write_mode():  # no clock goes on over the question
            return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False
