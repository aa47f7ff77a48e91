"""Base of all command lines: commands that print lines, one clear error, one scheme of exit codes.

0    success
1    failure: the command did not succeed, or a check found a problem; the command may succeed after a change elsewhere
2    wrong input: usage, a setting, a plan, or a named file or folder; the command fails until this is corrected
3    not reached: `caucus-party start --until-idle` ended without an answer of the coordinator; a later try may reach it
130  Ctrl-C: the work was stopped, or goes on without this command; the error line says which, and how to continue
141  the reader has closed the pipe (`| head`); no message, as with any program that a closed pipe ends
143  SIGTERM, as for Ctrl-C; services that run until they are stopped (`serve`, `start`) end with 0

With 1, 2, 3 and 130 the reason is on standard error, in one line; with 143 a reason is given only in a simulation.
"""

import argparse
import codecs
import io
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from common.errors import CaucusError, CheckpointError, ConfigError, DataError, PlanError, UnreachedError

FAILURE, WRONG_INPUT, UNREACHED, INTERRUPTED, CLOSED, TERMINATED = 1, 2, 3, 130, 141, 143
_WRONG = (ConfigError, DataError, PlanError, CheckpointError)
VERSION = "--version"
Lines = Callable[[argparse.Namespace], Iterable[str]]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 it has no public name
"""The commands of a program's parser, to which `add_command` adds one."""


def command_to_copy(program: str, *arguments: str) -> str:
    """Return a command line of one of our programs, with the folder that it was started from unless PATH has it."""
    beside, found = Path(sys.argv[0]).parent / program, shutil.which(program)
    if beside.is_file() and not (found and beside.samefile(found)):
        program = str(beside) if beside.parent != Path() else f"./{program}"
    return shlex.join([program, *arguments])


def parser(
    name: str,
    modules: Mapping[str, Sequence[str]],
    arguments: Sequence[str] | None,
    *,
    versions: str,
    description: str,
    example: str,
) -> argparse.ArgumentParser:
    """Return the parser of a program's commands, whose names are given for each module with a `register` function.

    Only the module of the requested command is imported, or all if none is requested: fast commands must not import
    torch. `--version` prints the versions.
    """
    made = argparse.ArgumentParser(prog=name, description=description, epilog=f"example: {example}")
    made.add_argument(VERSION, action="version", version=f"{name}: {versions}")
    commands = made.add_subparsers(dest="command", required=True)
    requested = set((sys.argv[1:] if arguments is None else arguments)[:1])
    if requested == {VERSION}:
        return made
    exists = any(requested & set(names) for names in modules.values())
    for module, names in modules.items():
        if not exists or requested & set(names):
            import_module(module).register(commands)
    return made


def add_command(
    commands: Commands,
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


def add_folder(parser: argparse.ArgumentParser, program: str) -> None:
    """Add the argument for a folder that the `init` command of this program has made."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help=f"made by {program} init")


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    *,
    wrong: tuple[type[Exception], ...] = (),
    one_line: Callable[[BaseException], str] = str,
) -> int:
    """Run the command that was chosen and return the exit code.

    Args:
        parser: A parser with commands that were added by `add_command`.
        arguments: Arguments of the command; if None, the process's own arguments are used.
        wrong: Additional types of error that mean wrong input.
        one_line: Returns an error as a message of one line.
    """
    escape_unknown_letters()
    chosen, rest = parser.parse_known_args(arguments)
    if rest and ("overrides" not in chosen or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:  # argparse takes no settings behind an option that follows settings
        chosen.overrides += rest
    expected: tuple[type[Exception], ...] = (CaucusError, OSError, *wrong)
    try:
        for line in chosen.lines(chosen):
            if not _printed(line):
                return CLOSED
    except expected as error:
        print(f"{parser.prog}: {' '.join(one_line(error).split())}", file=sys.stderr)
        return exit_code(error, wrong)
    except KeyboardInterrupt as stop:
        print(f"{parser.prog}: {stop.args[0] if stop.args else 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    return 0


def as_json(value: object) -> str:
    """Return the text that a command prints for `--json`: strict JSON, in which an infinite number is a text.

    Unprintable characters are escaped: a coordinator's or a model's text could otherwise control a terminal.

    Raises:
        ValueError: A number is NaN.
    """
    text = json.dumps(_with_text_infinities(value), indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def _with_text_infinities(value: object) -> object:
    match value:
        case float() if math.isinf(value):
            return str(value)
        case Mapping():
            return {key: _with_text_infinities(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_with_text_infinities(inner) for inner in value]
        case _:
            return value


def escape_unknown_letters() -> None:
    """Let standard output escape letters that its encoding lacks, such as ε in ASCII, as JSON does, without error."""
    codecs.register_error("json", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="json")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def exit_code(error: BaseException, wrong: tuple[type[Exception], ...] = ()) -> int:
    """Return the exit code of an error, or of one of our errors that a library wrapped; for `wrong` see `run`."""
    if isinstance(error.__cause__, CaucusError) and not isinstance(error, CaucusError):
        error = error.__cause__
    if isinstance(error, UnreachedError):
        return UNREACHED
    return WRONG_INPUT if isinstance(error, (*_WRONG, *wrong)) else FAILURE


def _printed(line: str) -> bool:
    """Print a line of output; return False if the reader has closed the pipe."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        # The line is still buffered: Python would try again on exit, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
