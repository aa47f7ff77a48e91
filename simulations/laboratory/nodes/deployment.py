"""A coordinator and its hospitals as real processes on this machine, started with the commands that an operator uses.

The benchmark of memory uses `Deployment` unchanged. The tests (`tests/support/deployed.py`) add other machines,
replaced code and faults: they override the methods that start processes.
"""

import contextlib
import csv
import json
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from common.domain import Record
from common.errors import CaucusError
from common.system import processes

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
PATIENCE = 600.0
"""Maximum number of seconds that starting, or the end of a run, may take."""


def run_program(
    program: str,
    *arguments: object,
    environment: Mapping[str, str],
    machine: Sequence[str] = (),
    code: int = 0,
    timeout: float = 300.0,
) -> str:
    """Run one of our programs to its end; return its standard output followed by its standard error.

    Args:
        program: Name of the program.
        arguments: The program's arguments.
        environment: All environment variables of the program.
        machine: Words before the command that run it elsewhere, such as `ip netns exec NAME`.
        code: Expected exit code.
        timeout: Maximum number of seconds that the program may take.

    Raises:
        RuntimeError: The program ended with another exit code; the message contains its output.
        TimeoutExpired: The program took longer than `timeout`.
    """
    ended = subprocess.run(
        [*machine, processes.program(program), *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if ended.returncode != code:
        raise RuntimeError(
            f"{program}: expected exit code {code}, got {ended.returncode}: {ended.stdout}{ended.stderr}"
        )
    return ended.stdout + ended.stderr


class Deployment:
    """One coordinator and its hospitals. All files are in one folder; `close` removes it and ends all processes.

    Args:
        folder: An empty folder; its path must be short enough for Unix sockets.
        host: Host that hospitals connect to, and on which the coordinator's front door listens.

    Attributes:
        folder: The folder.
        here: The coordinator's folder.
        host: The host.
        port: Port that hospitals connect to.
        count: Number of hospitals that `make` has enrolled.
        running: Processes that were started and not stopped, keyed by name: "coordinator", "hN" for a hospital,
            "run-NAME".
    """

    def __init__(self, folder: Path, *, host: str = LOOPBACK) -> None:
        self.folder, self.host = folder, host
        self.here = folder / "coordinator"
        self.port, self.count = processes.free_port(), 0
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes and remove all files."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
        self.running.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self, private: Sequence[Sequence[Record]], *, relay_user: str | None = None) -> None:
        """Make all folders, start the coordinator, and enrol the hospitals; on any error, call `close`.

        Args:
            private: Records of each hospital.
            relay_user: Account under which the hospitals' relays run; None for the account of this process.
        """
        try:
            address = ("--address", f"{self.host}:{self.port}", "--listen", self.host.strip("[]"))
            self.coordinator("init", self.here, *address, "--superlink-port", processes.free_port())
            self.serve()
            self.count = len(private)
            for number, records in enumerate(private):
                self.add(number, write_records(self.folder / f"notes{number}.csv", records), relay_user)
            for number in range(self.count):
                self.coordinator("enrol", "--yes", self.here, self.at(number) / "party.json")
            for number in range(self.count):
                self.party("roster", "--yes", self.at(number), self.here / "roster.json")
        except BaseException:
            self.close()
            raise

    def add(self, number: int, records: Path, relay_user: str | None = None) -> None:
        """Make the folder of a hospital that automatically approves every plan within its limits."""
        account = ("--relay-user", relay_user) if relay_user else ()
        named = ("--name", f"Hospital {number}", "--records", records)
        self.party("init", self.at(number), *named, "--invitation", self.here / "invitation.json", *account)
        self.set(number, approval="auto")

    def at(self, number: int) -> Path:
        """Return the folder of a hospital."""
        return self.folder / f"h{number}"

    def set(self, number: int, **values: str) -> None:
        """Change settings or limits of a hospital, in its `client.yaml`."""
        path = self.at(number) / "client.yaml"
        content = path.read_text(encoding="utf-8")
        for name, value in values.items():
            content, changed = re.subn(rf"^(\s*{name}:).*$", rf"\1 {value}", content, flags=re.MULTILINE)
            assert changed == 1, name
        path.write_text(content, encoding="utf-8")

    def audit(self, number: int) -> list[dict[str, Any]]:
        """Return the lines about requests, in order, from a hospital's audit log; lines about decisions are omitted."""
        lines = map(json.loads, text(self.at(number) / "private" / "audit.jsonl").splitlines())
        return [line for line in lines if "request" in line]

    def coordinator(self, *arguments: object) -> str:
        """Run a command of the coordinator to its end; return its output."""
        return run_program("caucus-coordinator", *arguments, environment=processes.child_environment(self.folder))

    def party(self, *arguments: object) -> str:
        """Run a command of a hospital to its end; return its output."""
        return run_program("caucus-party", *arguments, environment=processes.child_environment(self.folder))

    def start(
        self,
        name: str,
        program: str,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        machine: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start one of our programs under a name, append its output to NAME.out, and return its process."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.running[name] = subprocess.Popen(
                [*machine, processes.program(program), *map(str, arguments)],
                env=environment or processes.child_environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
            )
        return self.running[name]

    def serve(self) -> None:
        """Start the coordinator, and wait until it responds."""
        self.start("coordinator", "caucus-coordinator", "serve", self.here)
        wait(self._answers, "the front door answers")

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self.ask("GET", "/health").status_code == httpx.codes.OK
        return False

    def trust(self) -> ssl.SSLContext:
        """Return a TLS context that trusts only the coordinator's own certificate authority, as a hospital does."""
        return ssl.create_default_context(cafile=self.here / "ca.crt")

    def ask(self, method: str, path: str) -> httpx.Response:
        """Return the reply of the front door to an empty request from an unknown client."""
        url, kind = f"https://{self.host}:{self.port}{path}", {"content-type": "application/protobuf"}
        return httpx.request(method, url, verify=self.trust(), content=b"", headers=kind, trust_env=False)

    def up(self, *numbers: int, options: Sequence[str] = ()) -> None:
        """Start these hospitals, by default all of them; wait until the nodes of all started hospitals are online."""
        wanted = {number: self._starts(number) + 1 for number in numbers or range(self.count)}
        for number in wanted:
            self.launch(number, options)
        for number, times in wanted.items():
            wait(partial(self._ready, number, times), f"hospital {number} is ready")
        wait(self._all_online, "the nodes are online", every=0.5)

    def launch(self, number: int, options: Sequence[str] = ()) -> None:
        """Start a hospital without waiting."""
        self.start(f"h{number}", "caucus-party", "start", self.at(number), *options)

    def _starts(self, number: int) -> int:
        return text(self.at(number) / "logs" / "service.log").count("party service ready")

    def _ready(self, number: int, times: int) -> bool:
        return self._starts(number) >= times

    def _all_online(self) -> bool:
        return self.online() >= sum(f"h{number}" in self.running for number in range(self.count))

    def online(self) -> int:
        """Return the number of nodes that the coordinator reports as connected."""
        facts = json.loads(self.coordinator("status", self.here, "--json"))
        return sum(party["node"] == "online" for party in facts["parties"])

    def down(self, name: str) -> None:
        """Stop the process of this name, and wait until it has ended."""
        process = self.running.pop(name)
        process.terminate()
        process.wait(60)

    def begin(self, name: str, *overrides: str) -> subprocess.Popen[bytes]:
        """Start a run of this name without waiting; return the process of the command."""
        return self.start(f"run-{name}", "caucus-coordinator", "run", "--yes", self.here, name, *overrides)

    def finish(self, name: str) -> tuple[int, str]:
        """Wait until the run of this name has ended; return its exit code and its output."""
        process = self.running.pop(f"run-{name}")
        return process.wait(PATIENCE), text(self.folder / f"run-{name}.out")


def write_records(path: Path, notes: Iterable[Record]) -> Path:
    """Write the records of a hospital as CSV, readable only by this account; return the file's path."""
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("text", "label"), *((note.text, note.label) for note in notes)])
    path.chmod(0o600)
    return path


def text(path: Path) -> str:
    """Return the text of a file, which may be incomplete; empty if the file does not exist."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def wait(condition: Callable[[], T], what: str, patience: float = PATIENCE, *, every: float = 0.1) -> T:
    """Call `condition` every `every` seconds until its value is true; return that value.

    Raises:
        CaucusError: The condition did not become true within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise CaucusError("nodes", expected=what, got=f"not within {patience:g} s")
        time.sleep(every)
    return value
