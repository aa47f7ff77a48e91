"""A large number of hospitals on this machine: `Deployment` with forked processes, so that a hundred fit into memory.

The coordinator's processes are those of `caucus-coordinator serve`. Each hospital has the three processes of
`caucus-party start` (party service, SuperNode, relay), with the same arguments, but forked (`forks.py`); `revive`
starts them again.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Collection, Sequence
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from client.deploy import start
from client.deploy.settings import SIDES, HospitalSettings
from common.errors import CaucusError
from common.models.encoder import Encoder
from common.system import processes
from common.system.enrolment import PartyFile
from server.deploy.enrolment import Enrolled, store
from server.deploy.settings import CoordinatorSettings
from server.tasks import demo_notes
from simulations.laboratory.nodes.deployment import LOOPBACK, Deployment
from simulations.laboratory.nodes.forks import Forks
from simulations.laboratory.nodes.line import Line
from simulations.laboratory.nodes.usage import stat

PARTY = "client.command:main"
(FLOWER,) = (script.value for script in entry_points(group="console_scripts", name="flwr"))
GROUP = 10
"""Number of hospitals that start at the same time, limited because their first connections take much processor time."""
FRONT = "127.0.0.2"
"""Address of the front door, so that a line to it can start at the usual loopback address, with the same port."""
_MODULES = ("client.deploy.host", "client.flower.supernode", "client.flower.relay")


class Nodes(Deployment):
    """A running coordinator and enrolled hospitals; `up` starts the hospitals.

    Args:
        folder: A new folder.
        count: Number of hospitals.
        line: Line between the hospitals and the coordinator; None for loopback.
        records: Number of records of each hospital, which are notes from the demo.
        relay: `MODULE:FUNCTION` of a program that replaces the hospitals' relay; None for the usual relay.
    """

    def __init__(
        self, folder: Path, count: int, *, line: Line | None = None, records: int = 16, relay: str | None = None
    ) -> None:
        folder.mkdir()
        super().__init__(folder, host=FRONT if line is None else LOOPBACK, listen=FRONT)
        self._relay = relay
        self._ending = contextlib.ExitStack()
        if line is not None:
            self._ending.enter_context(line.between((LOOPBACK, self.port), (FRONT, self.port)))
        functions = (PARTY, FLOWER, *map(_function, _MODULES), *([relay] if relay else []))
        home = {"FLWR_HOME": str(self.here / "flwr")}
        self.forks = Forks(*functions, environment=home, first="simulations.laboratory.nodes.federation:load_encoder")
        self.forked: dict[tuple[int, str], int] = {}
        self._children: dict[tuple[int, str], processes.Child] = {}
        self.make([demo_notes.private_notes(number, records, 0) for number in range(count)])

    def close(self) -> None:
        """End all processes and remove all files."""
        self.forks.close()
        super().close()
        self._ending.close()

    def party(self, *arguments: object) -> str:
        """Run a command of a hospital to its end; return its output."""
        environment = processes.QUIET | processes.environment(self.folder)
        return self.forks.run(PARTY, *arguments, folder=self.folder, environment=environment)

    def enrol(self) -> None:
        """Enrol all hospitals as `caucus-coordinator enrol` does, but without starting two programs per hospital."""
        parties = []
        for number in range(self.count):
            party = PartyFile.load(self.at(number) / "party.json")
            key = self.folder / "node.pub"
            key.write_text(party.node_key, encoding="ascii")
            parties.append(Enrolled(party=party, node=str(self._flower("supernode", "register", key)["node-id"])))
        store(CoordinatorSettings.load(self.here), parties)

    def up(self, *numbers: int, options: Sequence[str] = ()) -> None:
        """Start these hospitals (all if no numbers are given), group by group; wait until their nodes are online."""
        wanted = numbers or range(self.count)
        for first in range(0, len(wanted), GROUP):
            super().up(*wanted[first : first + GROUP], options=options)

    def launch(self, number: int, options: Sequence[str] = ()) -> None:
        """Start a hospital's processes without waiting; options are not supported."""
        assert not options
        for child in start.children(HospitalSettings.load(self.at(number)), SIDES["both"]):
            self._children[number, child.name] = child
            self._start(number, child.name)

    def _all_online(self) -> bool:
        self.revive()
        return super()._all_online()

    def revive(self) -> int:
        """Restart each process that has ended, as `caucus-party start` does; return the number of restarts."""
        ended = [key for key, process in self.forked.items() if stat(process)[0] in "Z0"]
        for key in ended:
            self.forks.wait(self.forked[key])
            self._start(*key)
        return len(ended)

    def started(self) -> Collection[int]:
        """Return the numbers of the hospitals that were started and not killed."""
        return {number for number, _ in self.forked}

    def _start(self, number: int, name: str) -> None:
        child = self._children[number, name]
        self.forked[number, name] = self.forks.start(
            self._relay if self._relay and name == "relay" else _function(child.command[2]),
            *child.command[3:],
            folder=self.at(number),
            environment=processes.QUIET | dict(child.environment),
            log=self.at(number) / "logs" / f"{name}.log",
        )

    def kill(self, number: int) -> None:
        """Simulate the failure of a hospital's machine by killing all of its processes."""
        for key in [key for key in self.forked if key[0] == number]:
            process = self.forked.pop(key)
            os.kill(process, signal.SIGKILL)
            self.forks.wait(process)

    def stopped(self) -> list[int]:
        """Return the numbers of the hospitals whose relay has stopped itself (SIGSTOP)."""
        relays = [(number, process) for (number, name), process in self.forked.items() if name == "relay"]
        return [number for number, process in relays if stat(process)[0] == "T"]

    def resume(self, number: int) -> None:
        """Let a stopped relay continue."""
        os.kill(self.forked[number, "relay"], signal.SIGCONT)

    def online(self) -> int:
        """Return the number of nodes that the coordinator reports as connected; 0 if it does not reply."""
        with contextlib.suppress(CaucusError, subprocess.CalledProcessError):
            return sum(node["status"] == "online" for node in self._flower("supernode", "list")["nodes"])
        return 0

    def requests(self, number: int, run: str) -> list[tuple[str, float]]:
        """Return the names and Unix times of the requests to a hospital in the run of this name, in order."""
        return [
            (line["request"], datetime.fromisoformat(line["when"]).timestamp())
            for line in self.audit(number)
            if line["run"].rpartition("-")[0] == run
        ]

    def processes(self) -> dict[str, list[int]]:
        """Return the IDs of all processes, keyed by type of process, such as "relay"."""
        by_name: dict[str, list[int]] = {"forking": [self.forks.process]}
        for (_, name), process in self.forked.items():
            by_name.setdefault(name, []).append(process)
        children = (processes.status(self.here, "coordinator") or {})["children"]
        return by_name | {name: [child["process"]] for name, child in children.items()}

    def _flower(self, *arguments: object) -> dict[str, Any]:
        environment = processes.QUIET | processes.environment(self.here)
        said = self.forks.run(
            FLOWER, *arguments, "caucus", "--format", "json", folder=self.here, environment=environment
        )
        answer: dict[str, Any] = json.loads(said[said.index("{") :])
        if not answer["success"]:
            raise CaucusError("Flower", got=str(answer["error-message"]))
        return answer


def _function(module: str) -> str:
    return f"{module}:main"


def small_run(rounds: int) -> tuple[str, ...]:
    """Return the settings for a run of WASP with few candidates; it has one query fewer than it has rounds."""
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
    """Load the default encoder's table, which takes up most of the memory of a party service."""
    Encoder.hashed_ngrams().encode(["once"])
