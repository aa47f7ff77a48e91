"""Progress of long work, shown on a terminal while it lasts; nothing is written to pipes and files."""

import contextlib
import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

SECONDS = 1.0
"""Seconds until progress is shown, and between two updates of its clock."""

_CLOCK = "{desc} {elapsed}"


@contextlib.contextmanager
def progress(title: str, total: int | None = None, unit: str = "text") -> Iterator[Callable[[int], None]]:
    """Show that work goes on: a bar if there is a total, otherwise a clock. It is updated every second.

    Args:
        title: Name of the work.
        total: Number of items to process.
        unit: Name of one item.

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

    if not sys.stderr.isatty() or multiprocessing.parent_process():  # a parallel sweep has one terminal
        yield advance
        return
    showing = threading.Thread(target=show, daemon=True)
    showing.start()
    try:
        yield advance
    finally:
        ended.set()
        showing.join()


class Console(logging.StreamHandler):  # type: ignore[type-arg]
    """A log on a terminal whose lines do not mix with what `progress` shows there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line above all bars."""
        with tqdm.external_write_mode(file=self.stream):
            super().emit(record)
