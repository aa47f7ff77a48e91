"""Ctrl-C and SIGTERM: the first signal ends a command in an orderly way, by an exception; a second ends it at once.

A process that was started with one of these signals ignored, such as a shell's background job, continues to ignore it.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from common.system.commands import INTERRUPTED, TERMINATED


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, and Terminated on SIGTERM, once and in the main thread.

    At the end of the block the earlier handlers are restored. After a signal, however, the system's own handlers stay
    in place, so that a second signal ends the process.
    """
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    stopped = False

    def stop(number: int, _: FrameType | None) -> NoReturn:
        nonlocal stopped
        stopped = True
        for other in numbers:
            signal.signal(other, signal.SIG_DFL)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        if not stopped:
            for number, handler in before.items():
                signal.signal(number, handler)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
