"""A coordinator and many hospitals as real processes on this machine: the code and the messages of a deployment.

The coordinator's processes are those of `caucus-coordinator serve`. Each hospital has the three of `caucus-party start`
(party service, SuperNode, relay), with the same arguments, but forked (`forks.py`); `revive` starts them again.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self

from client.deploy import start
from client.deploy.settings import HospitalSettings
from common.errors import CaucusError
from common.models.encoder import Encoder
from common.system import processes
from common.system.enrolment import PartyFile
from server.deploy.enrolment import Enrolled, store
from server.deploy.settings import CoordinatorSettings
from server.tasks import demo_notes
from simulations.laboratory.nodes.folders import (
    audit_log,
    free_port,
    init_coordinator,
    init_hospital,
    set_limits,
    wait,
    write_records,
)
from simulations.laboratory.nodes.forks import Forks
from simulations.laboratory.nodes.line import Line
from simulations.laboratory.nodes.usage import stat

PARTY, COORDINATOR = "client.command:main", "server.command:main"
(FLOWER,) = (script.value for script in entry_points(group="console_scripts", name="flwr"))
GROUP = 10
"""Hospitals that are started at a time: their first connections are most of the work of a start."""
FRONT, NEAR = "127.0.0.2", "127.0.0.1"
"""Addresses of the front door and, with the same port, of the near end of a line to it."""
_MODULES = ("client.deploy.host", "client.flower.supernode", "client.flower.relay")


class Nodes:
    """A coordinator that serves, and hospitals that are enrolled; `up` starts these.

    Args:
        folder: A new one.
        count: Hospitals.
        line: Between the hospitals and the coordinator; None: they are on loopback.
        records: Number of each hospital's records, notes of the demo.
        relay: `MODULE:FUNCTION` that takes the place of the hospitals' relay.
    """

    def __init__(
        self, folder: Path, count: int, *, line: Line | None = None, records: int = 16, relay: str | None = None
    ) -> None:
        folder.mkdir()
        self.folder, self.count, self._relay = folder, count, relay
        self.here = folder / "coordinator"
        self.port = free_port()
        near = FRONT if line is None else NEAR
        self._ending = contextlib.ExitStack()
        functions = (PARTY, COORDINATOR, FLOWER, *map(_function, _MODULES), *([relay] if relay else []))
        home = {"FLWR_HOME": str(self.here / "flwr")}
        self.forks = Forks(*functions, environment=home, first="simulations.laboratory.nodes.federation:load_encoder")
        self.running: dict[tuple[int, str], int] = {}
        self._children: dict[tuple[int, str], processes.Child] = {}
        self._coordinator: subprocess.Popen[bytes] | None = None
        try:
            if line is not None:
                self._ending.enter_context(line.between((NEAR, self.port), (FRONT, self.port)))
            self._make(f"{near}:{self.port}", records)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes and remove all files."""
        self.forks.close()
        if self._coordinator is not None:
            self._coordinator.terminate()
            self._coordinator.wait()
        self._ending.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, address: str, records: int) -> None:
        party_command = partial(self._command, PARTY)
        init_coordinator(partial(self._command, COORDINATOR), self.here, address=address, listen=FRONT)
        self._serve()
        settings = CoordinatorSettings.load(self.here)
        parties = []
        for number in range(self.count):
            notes = write_records(self.folder / f"notes{number}.csv", demo_notes.private_notes(number, records, 0))
            init_hospital(party_command, self.at(number), notes, self.here / "invitation.json")
            party = PartyFile.load(self.at(number) / "party.json")
            key = self.folder / "node.pub"
            key.write_text(party.node_key, encoding="ascii")
            parties.append(Enrolled(party=party, node=str(self._flower("supernode", "register", key)["node-id"])))
        store(settings, parties)
        for number in range(self.count):
            party_command("roster", "--yes", self.at(number), self.here / "roster.json")

    def set(self, number: int, **values: str) -> None:
        """Change settings or limits of a hospital."""
        set_limits(self.at(number), **values)

    def _serve(self) -> None:
        with (self.folder / "coordinator.out").open("ab") as out:
            self._coordinator = subprocess.Popen(
                [processes.program("caucus-coordinator"), "serve", str(self.here)],
                env=processes.environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        wait(self._answers, "the front door answers")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((FRONT, self.port), 1):
            return self._nodes() is not None
        return False

    def up(self, *numbers: int) -> None:
        """Start these hospitals, or all, a group at a time, and wait until their nodes are online."""
        wanted = numbers or range(self.count)
        for first in range(0, len(wanted), GROUP):
            for number in wanted[first : first + GROUP]:
                for child in start.children(HospitalSettings.load(self.at(number)), start.SIDES["both"]):
                    self._children[number, child.name] = child
                    self._start(number, child.name)
            wait(self._all_online, "all nodes are online", every=1.0)

    def _all_online(self) -> bool:
        self.revive()
        return self.online() >= len(self.started())

    def revive(self) -> int:
        """Start again each process that has ended, as `caucus-party start` does; return their number."""
        ended = [key for key, process in self.running.items() if not self.lives(process)]
        for key in ended:
            self.forks.wait(self.running[key])
            self._start(*key)
        return len(ended)

    def started(self) -> Collection[int]:
        """Hospitals that were started and not killed."""
        return {number for number, _ in self.running}

    def _start(self, number: int, name: str) -> None:
        child = self._children[number, name]
        self.running[number, name] = self.forks.start(
            self._relay if self._relay and name == "relay" else _function(child.command[2]),
            *child.command[3:],
            folder=self.at(number),
            environment=processes.QUIET | dict(child.environment),
            log=self.at(number) / "logs" / f"{name}.log",
        )

    def kill(self, number: int) -> None:
        """A hospital's machine fails: no process of it says another word."""
        for key in [key for key in self.running if key[0] == number]:
            process = self.running.pop(key)
            os.kill(process, signal.SIGKILL)
            self.forks.wait(process)

    def stopped(self) -> list[int]:
        """Hospitals whose relay has stopped itself (SIGSTOP)."""
        relays = [(number, process) for (number, name), process in self.running.items() if name == "relay"]
        return [number for number, process in relays if stat(process)[0] == "T"]

    def resume(self, number: int) -> None:
        """Let a stopped relay go on."""
        os.kill(self.running[number, "relay"], signal.SIGCONT)

    def online(self) -> int:
        """Number of nodes that the coordinator takes for connected."""
        return sum(node["status"] == "online" for node in self._nodes() or ())

    def run(self, name: str, *overrides: str) -> tuple[int, str]:
        """A run, to its end: exit code and output."""
        return self.ended(name, self.begin(name, *overrides))

    def begin(self, name: str, *overrides: str) -> int:
        """Begin a run; return the number of the process that follows it."""
        return self.forks.start(
            COORDINATOR,
            "run",
            self.here,
            name,
            *overrides,
            folder=self.folder,
            environment=self._environment,
            log=self.folder / f"run-{name}.out",
        )

    @staticmethod
    def lives(process: int) -> bool:
        """Whether a process has not ended."""
        return stat(process)[0] not in "Z0"

    def ended(self, name: str, process: int) -> tuple[int, str]:
        """Wait for the end of a run that was begun: exit code and output."""
        return self.forks.wait(process), (self.folder / f"run-{name}.out").read_text(encoding="utf-8")

    def requests(self, number: int, run: str) -> list[tuple[str, float]]:
        """Requests to a hospital in the run of this name, with their Unix times, in order."""
        return [
            (line["request"], datetime.fromisoformat(line["when"]).timestamp())
            for line in audit_log(self.at(number))
            if line["run"].rpartition("-")[0] == run
        ]

    def at(self, number: int) -> Path:
        """A hospital's folder."""
        return self.folder / f"h{number}"

    def processes(self) -> dict[str, list[int]]:
        """Numbers of all processes, by kind."""
        by_name: dict[str, list[int]] = {"forking": [self.forks.process]}
        for (_, name), process in self.running.items():
            by_name.setdefault(name, []).append(process)
        children = (processes.status(self.here, "coordinator") or {})["children"]
        return by_name | {name: [child["process"]] for name, child in children.items()}

    @property
    def _environment(self) -> Mapping[str, str]:
        return processes.QUIET | processes.environment(self.folder)

    def _command(self, function: str, *arguments: object) -> str:
        return self.forks.run(function, *arguments, folder=self.folder, environment=self._environment)

    def _flower(self, *arguments: object) -> dict[str, Any]:
        environment = processes.QUIET | processes.environment(self.here)
        said = self.forks.run(
            FLOWER, *arguments, "caucus", "--format", "json", folder=self.here, environment=environment
        )
        answer: dict[str, Any] = json.loads(said[said.index("{") :])
        if not answer["success"]:
            raise CaucusError("Flower", got=str(answer["error-message"]))
        return answer

    def _nodes(self) -> list[dict[str, Any]] | None:
        with contextlib.suppress(CaucusError, subprocess.CalledProcessError):
            nodes: list[dict[str, Any]] = self._flower("supernode", "list")["nodes"]
            return nodes
        return None


def _function(module: str) -> str:
    return f"{module}:main"


def small_run(rounds: int) -> tuple[str, ...]:
    """Settings of a run of WASP with few candidates, and one query less than rounds."""
    return (
        "method=wasp",
        f"method.rounds={rounds}",
        f"method.samples={20 * rounds}",
        "method.top=3",
        "method.shots=4",
        "evaluation.metrics=[]",
        "task.records_per_party=16",
        "task.test_records=24",
        "task.public_notes=120",
        "privacy.epsilon=8",
    )


def load_encoder() -> None:
    """Load the default encoder's table, which is most of the memory of a party service."""
    Encoder.hashed_ngrams().encode(["once"])
