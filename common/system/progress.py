"""Progress of long steps: on a terminal, a bar or a clock while a step lasts; otherwise, one line in the log."""

import contextlib
import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

SECONDS = 1.0
"""Seconds until progress is shown, and between two updates of its clock."""
LONG = 5.0
"""Seconds after which a step that is not shown on a terminal gets a line in the log."""

log = logging.getLogger("caucus.progress")

_CLOCK = "{desc} {elapsed}"


@contextlib.contextmanager
def progress(
    title: str, total: int | None = None, unit: str = "text", *, logged: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show a step while it lasts: a bar if there is a total, otherwise a clock. It is updated every second.

    If standard error is not a terminal, the log has the title once, as soon as the step has taken `LONG` seconds. A
    step with a single item has no bar and no line, since records are embedded one by one, and there are many records.

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
        with tqdm(total=total, desc=title, unit=unit, leave=False, bar_format=None if total else _CLOCK) as bar:
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
