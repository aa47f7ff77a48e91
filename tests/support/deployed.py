"""A coordinator and hospitals as real processes on loopback, by the commands that an operator types."""

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from server.tasks import demo_notes
from simulations.laboratory.nodes.folders import (
    audit_log,
    free_port,
    init_coordinator,
    init_hospital,
    set_limits,
    text,
    wait,
    write_records,
)
from tests.support.runs import read

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
SMALL = (
    *("method=wasp", "method.samples=60", "method.rounds=3", "method.top=3", "method.shots=4", "evaluation.metrics=[]"),
    *("task.records_per_party=16", "task.test_records=24", "task.public_notes=120"),
)
"""As `tests.support.runs.SMALL`, so that the same run can be made in process."""

PATIENCE = 300.0


def environment(path=()):
    """For commands; `path` comes before our own code."""
    passed_on = {"HOME", "LANG", "COVERAGE_FILE", "CAUCUS_MODELS", "XDG_STATE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name in passed_on}
    python = ":".join(map(str, (*path, ROOT)))
    return kept | {"PATH": f"{BIN}:/usr/sbin:/usr/bin:/bin", "PYTHONPATH": python, "OMP_NUM_THREADS": "1"}


def command(name, *arguments, timeout=PATIENCE, code=0, within=(), path=()):
    """Run one command to its end; return its output."""
    ended = subprocess.run(
        [*within, BIN / name, *map(str, arguments)],
        env=environment(path),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == code, f"{ended.returncode}: {ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


def party(*arguments, **how):
    return command("caucus-party", *arguments, **how)


def coordinator(*arguments, **how):
    return command("caucus-coordinator", *arguments, **how)


@contextlib.contextmanager
def running(*, prepare=lambda _: None, **how):
    """A deployment (see `Deployment`) whose hospitals run and answer plans without noise.

    Args:
        prepare: Called with the deployment before its hospitals start.
    """
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    if how.get("relay_user"):
        folder.chmod(0o711)
    made = Deployment(folder, **how)
    try:
        made.without_noise()
        prepare(made)
        made.up()
        yield made
    finally:
        made.ended()


class Deployment:
    """One coordinator and n hospitals; all files and processes belong to one folder and end with it.

    Args:
        folder: A new one; Unix sockets want its path short.
        count: Hospitals.
        relay_user: Account of their relays.
        records: Of each hospital.
        private: The records of each hospital; None: as many notes of the demo.
        host: The coordinator's address.
        within: For "coordinator" or "hN", the words that bring a command to its machine, as `ip netns exec NAME`.
        path: For the same, folders of Python that come before our own code.
        halves: Whether each hospital's party service is started apart, as "hN-service", and "hN" is its relay half.
    """

    def __init__(
        self,
        folder,
        count=3,
        *,
        relay_user=None,
        records=16,
        private=None,
        host="127.0.0.1",
        within=None,
        path=None,
        halves=False,
    ):
        self.folder, self.count, self.host, self.halves = folder, count, host, halves
        self.within, self.path = within or {}, path or {}
        self.here = folder / "coordinator"
        self.port = free_port()
        self._running = {}
        try:
            self._make(relay_user, private or [demo_notes.private_notes(party, records, 0) for party in range(count)])
        except BaseException:
            self.ended()
            raise

    def _make(self, relay_user, private):
        init_coordinator(self.coordinator, self.here, address=f"{self.host}:{self.port}", listen=self.host)
        self.serve()
        for number, notes in enumerate(private):
            self.make(number, write_records(self.folder / f"notes{number}.csv", notes), relay_user)
            self.coordinator("enrol", self.here, self.at(number) / "party.json")
        for number in range(self.count):
            party("roster", "--yes", self.at(number), self.here / "roster.json")

    def coordinator(self, *arguments, **how):
        """One command on the coordinator's machine."""
        return coordinator(*arguments, within=self.within.get("coordinator", ()), **how)

    def at(self, number):
        return self.folder / f"h{number}"

    def ledger(self, number):
        return self.at(number) / "private" / "ledger.db"

    def make(self, number, records, relay_user=None):
        init_hospital(party, self.at(number), records, self.here / "invitation.json", relay_user=relay_user)

    def set(self, number, **values):
        set_limits(self.at(number), **values)

    def without_noise(self):
        """Let the hospitals answer plans without noise."""
        for number in range(self.count):
            self.set(number, max_epsilon=".inf", unsafe_no_noise="true", lifetime_epsilon="null", corrupt="0.0")

    def start(self, key, *arguments):
        with (self.folder / f"{key}.out").open("ab") as out:
            self._running[key] = subprocess.Popen(
                [*self._machine(key), BIN / arguments[0], *map(str, arguments[1:])],
                env=environment(self.path.get(key, ())),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
            )
        return self._running[key]

    def _machine(self, key):
        return self.within.get("coordinator" if key.startswith("run-") else key, ())

    def serve(self):
        self.start("coordinator", "caucus-coordinator", "serve", self.here)
        wait(self._answers, "the front door answers")

    def _answers(self):
        with contextlib.suppress(httpx.HTTPError):
            return self.ask("GET", "/health").status_code == 200

    def trust(self):
        return ssl.create_default_context(cafile=self.here / "ca.crt")

    def ask(self, method, path):
        """Reply of the front door to an empty request from a stranger."""
        kind = {"content-type": "application/protobuf"}
        where = f"https://{self.host}:{self.port}{path}"
        return httpx.request(method, where, verify=self.trust(), content=b"", headers=kind)

    def up(self, *numbers, options=()):
        """Start these hospitals, or all, with these options; the nodes of all that run are online then."""
        wanted = {number: self._ready(number) + 1 for number in numbers or range(self.count)}
        for number in wanted:
            if self.halves:
                self.start(f"h{number}-service", "caucus-party", "start", self.at(number), "--only", "service")
            half = ("--only", "relay") if self.halves else ()
            self.start(f"h{number}", "caucus-party", "start", self.at(number), *half, *options)
        for number, times in wanted.items():
            wait(lambda at=number, times=times: self._ready(at) >= times, f"hospital {number} is ready")
        running = sum(f"h{number}" in self._running for number in range(self.count))
        wait(lambda: self.online() >= running, "the nodes are online")

    def _ready(self, number):
        return text(self.at(number) / "logs" / "service.log").count("party service ready")

    def online(self):
        facts = json.loads(self.coordinator("status", self.here, "--json"))
        return sum(party["node"] == "online" for party in facts["parties"])

    def down(self, key):
        process = self._running.pop(key)
        process.terminate()
        process.wait(60)

    def child(self, key, name):
        """Process number of one supervised child."""
        folder = self.here if key == "coordinator" else self.folder / key
        notes = [json.loads(path.read_text()) for path in (folder / "run").glob("*.json")]
        (process,) = {children[name]["process"] for children in notes if name in children}
        return process

    def kill(self, key, name, number=signal.SIGKILL):
        os.kill(self.child(key, name), number)

    def run(self, name, *overrides, code=0, timeout=400):
        return self.coordinator("run", self.here, name, *SMALL, *overrides, code=code, timeout=timeout)

    def begin(self, name, *overrides):
        """A run in the background; its process."""
        return self.start(f"run-{name}", "caucus-coordinator", "run", self.here, name, *SMALL, *overrides)

    def resume(self, name, code=0):
        return self.coordinator("resume", self.here, name, code=code, timeout=400)

    def result(self, name):
        folder = self.here / "runs" / name
        assert read(folder, "run.json")["status"] == "complete"
        return folder

    def audit(self, number):
        return audit_log(self.at(number))

    def ended(self):
        for process in self._running.values():
            process.terminate()
        for key in list(self._running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._running.pop(key).wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)
