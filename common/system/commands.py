"""What all command lines share: commands that print lines, one clear error, three exit codes.

0    success
1    failure; the reason is one line on standard error
2    wrong usage or a wrong setting; the reason is one line on standard error
141  the reader has closed the pipe (`| head`); no message, as with any program that a closed pipe ends
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

from common.errors import CaucusError, ConfigError, PlanError

CLOSED = 141
Lines = Callable[[argparse.Namespace], Iterable[str]]


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    modules: Mapping[str, Sequence[str]],
    arguments: Sequence[str] | None,
) -> None:
    """Register only the requested command, or all if none is requested: fast commands must not import torch.

    Args:
        commands: The parser's commands.
        modules: Module with a `register` function to the names of its commands.
        arguments: As for `run`.
    """
    requested = (sys.argv[1:] if arguments is None else arguments)[:1]
    exists = any(set(requested) & set(names) for names in modules.values())
    for module, names in modules.items():
        if not exists or set(requested) & set(names):
            import_module(module).register(commands)


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    lines: Lines,
    *,
    summary: str,
    description: str,
    example: str,
) -> argparse.ArgumentParser:
    """Add one command: `lines` yields its output and raises CaucusError if it fails."""
    parser = commands.add_parser(name, help=summary, description=description, epilog=f"example: {example}")
    parser.set_defaults(lines=lines)
    return parser


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    *,
    wrong: tuple[type[Exception], ...] = (),
    one_line: Callable[[BaseException], str] = str,
) -> int:
    """Run the command that was chosen and return the exit code.

    Args:
        parser: With commands that were added by `add_command`.
        arguments: None: the process's own.
        wrong: Further errors that mean wrong usage.
        one_line: Formats an error as a message.
    """
    chosen = parser.parse_args(arguments)
    settings: tuple[type[Exception], ...] = (ConfigError, PlanError, *wrong)
    expected: tuple[type[Exception], ...] = (CaucusError, OSError, *wrong)
    try:
        for line in chosen.lines(chosen):
            if not _printed(line):
                return CLOSED
    except expected as error:
        print(f"{parser.prog}: {' '.join(one_line(error).split())}", file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, settings) else 1
    return 0


def _printed(line: str) -> bool:
    """Print a line of output; False if the reader has closed the pipe."""
    try:
        print(line, flush=True)  # noqa: T201
    except BrokenPipeError:
        # The line is still buffered: Python would try again on exit, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
