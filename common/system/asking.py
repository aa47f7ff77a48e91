"""A question to the person at the terminal, before a command does what is hard to undo; scripts say `--yes`."""

import sys

from tqdm import tqdm

from common.errors import ConfigError


def is_agreed(question: str, *, what: str, do: str) -> bool:
    """Ask a question that is answered by yes or no, and return the answer, which is no by default.

    Args:
        question: The question.
        what: What needs an answer, for the error.
        do: Advice for who has no terminal.

    Raises:
        ConfigError: There is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise ConfigError(what, expected="a terminal, or --yes", got="neither", do=do)
    try:
        with tqdm.external_write_mode():  # no clock goes on over the question
            return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False
