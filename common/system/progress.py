"""What takes long, shown on a terminal while it lasts; pipes and files get nothing of it."""

import contextlib
import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

SECONDS = 1.0
"""Until something is shown, and between two movements of its clock."""

_CLOCK = "{desc} {elapsed}"


@contextlib.contextmanager
def progress(title: str, total: int | None = None, unit: str = "text") -> Iterator[Callable[[int], None]]:
    """Show that something is at work: a bar if there is a total, otherwise a clock. It moves by itself every second.

    Args:
        title: What is at work.
        total: Number of things to do.
        unit: One of them.

    Yields:
        A function that adds a number of things to those that are done.
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
