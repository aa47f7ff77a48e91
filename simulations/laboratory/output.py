"""Output of measurements that take long: each line is seen when it is written, also through a pipe."""

import sys


def show(text: str) -> None:
    """Write a text to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()
