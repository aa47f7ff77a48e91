"""Commands that run as forks of one process, which has imported their modules, so that these are in memory only once.

    python -m simulations.laboratory.nodes.forks [--first MODULE:FUNCTION] MODULE:FUNCTION ...

A Python process that imports Flower takes a second of CPU time and 100 MB before it does anything. A fork of a process
that has imported Flower takes milliseconds, and uses only the memory that it writes to. The process reads one request
per line (JSON, from its standard input) and answers each with a line. When the input ends, it kills its children.
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Self, TextIO

from common.system import processes

_PR_SET_PDEATHSIG = 1


class Forks:
    """A child process that forks to run commands on request.

    Args:
        functions: `MODULE:FUNCTION` of each command; a function takes its arguments from `sys.argv`.
        environment: Environment variables for the import of the commands' modules.
        first: `MODULE:FUNCTION` that is called once, before all forks; the forks share what it has loaded into memory.
    """

    def __init__(
        self, *functions: str, environment: Mapping[str, str] = MappingProxyType({}), first: str | None = None
    ) -> None:
        self._one_at_a_time = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *(("--first", first) if first else ()), *functions],
            env={**os.environ, **processes.QUIET, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    @property
    def process(self) -> int:
        """ID of the forking process."""
        return self._process.pid

    def start(self, function: str, *arguments: object, folder: Path, environment: Mapping[str, str], log: Path) -> int:
        """Start one command; return its process ID.

        Args:
            function: One of the functions that were named.
            arguments: Arguments of the command.
            folder: The command's working directory.
            environment: All environment variables of the command.
            log: File to which the command's output is appended.
        """
        request = {
            "function": function,
            "arguments": [*map(str, arguments)],
            "folder": str(folder),
            "environment": {**environment},
            "log": str(log),
        }
        return self._ask(request)

    def wait(self, process: int) -> int:
        """Wait until the command with this process ID has ended; return its exit code, or minus its signal number."""
        return self._ask({"wait": process})

    def run(self, function: str, *arguments: object, folder: Path, environment: Mapping[str, str]) -> str:
        """Run one command to its end; return its output.

        Raises:
            CalledProcessError: The command's exit code is not 0.
        """
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as log:
            where = Path(log.name)
            code = self.wait(self.start(function, *arguments, folder=folder, environment=environment, log=where))
            if code:
                raise subprocess.CalledProcessError(code, [function, *map(str, arguments)], log.read())
            return log.read()

    def close(self) -> None:
        """End all commands that are still running, and then the forking process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return self._answer()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def main() -> None:
    """Answer the requests on standard input until it ends."""
    parser = argparse.ArgumentParser(prog="forks")
    parser.add_argument("--first")
    parser.add_argument("functions", nargs="+")
    options = parser.parse_args()
    functions = {name: _function(name) for name in options.functions}
    if options.first:
        _function(options.first)()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # no child's output is taken for an answer
    gc.collect()
    gc.freeze()  # the collector would write to what is shared
    _say(answers, 0)
    children: list[int] = []
    for line in sys.stdin:
        request = json.loads(line)
        if process := request.get("wait"):
            children.remove(process)
            _say(answers, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
            continue
        process = os.fork()
        if process == 0:
            _become(functions[request["function"]], request)
        children.append(process)
        _say(answers, process)
    for process in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for process in children:
        os.waitpid(process, 0)


def _function(name: str) -> Callable[[], object]:
    module, _, function = name.partition(":")
    named: Callable[[], object] = getattr(import_module(module), function)
    return named


def _say(answers: TextIO, number: int) -> None:
    answers.write(f"{number}\n")
    answers.flush()


def _become(function: Callable[[], object], request: Mapping[str, Any]) -> None:
    """Run the requested command in this forked process, and exit with the command's exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    code: object = 1
    try:
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        nothing = os.open(os.devnull, os.O_RDONLY)
        out = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, file in enumerate((nothing, out, out)):
            os.dup2(file, number)
        sys.argv = [request["function"], *request["arguments"]]
        code = function()
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            sys.stderr.write(code)
    except BaseException:  # noqa: BLE001 shown as any Python shows it, and then this process ends
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(bool(code)))


if __name__ == "__main__":
    main()
