"""The laboratory's deployment of real processes, extended for tests with other machines and kills."""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from client.deploy import known_records
from server.tasks import demo_notes
from simulations.laboratory.nodes import deployment
from simulations.laboratory.nodes.deployment import run_program
from tests.support.runs import read

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
SMALL = (
    *("method=wasp", "method.samples=48", "method.rounds=3", "method.top=3", "method.shots=4", "evaluation.metrics=[]"),
    *("task.records_per_party=16", "task.test_records=24", "task.public_notes=120"),
)
"""The settings in `tests.support.runs.SMALL`, so that the same run can also be made in process."""


def environment(path=()):
    """Return environment variables for commands; in PYTHONPATH, the folders in `path` come before the repository."""
    passed_on = {"HOME", "LANG", "COVERAGE_FILE", "CAUCUS_MODELS", "XDG_STATE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name in passed_on}
    python = ":".join(map(str, (*path, ROOT)))
    return kept | {"PATH": f"{BIN}:/usr/sbin:/usr/bin:/bin", "PYTHONPATH": python, "OMP_NUM_THREADS": "1"}


def party(*arguments, within=(), **how):
    """Run a command of a hospital to its end; return its output."""
    return run_program("caucus-party", *arguments, environment=environment(), machine=within, **how)


def check(*arguments, **how):
    """Run `caucus-party check`; return its output with each row in one line."""
    return re.sub(r"\n {12,}(?! |how to fix: )", " ", party("check", *arguments, **how))


def coordinator(*arguments, within=(), **how):
    return run_program("caucus-coordinator", *arguments, environment=environment(), machine=within, **how)


@contextlib.contextmanager
def running(*, prepare=lambda _: None, **how):
    """Yield a `Deployment` with running hospitals that answer plans without noise.

    Args:
        prepare: Function that is called with the deployment before its hospitals start.
    """
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    if how.get("relay_user"):
        folder.chmod(0o711)
    with Deployment(folder, **how) as made:
        made.without_noise()
        prepare(made)
        made.up()
        yield made


class Deployment(deployment.Deployment):
    """A running coordinator and enrolled hospitals.

    Args:
        folder: A new folder; its path must be short enough for Unix sockets.
        count: Number of hospitals.
        relay_user: Account under which their relays run.
        private: Records of each hospital; None for 16 notes of the demo.
        host: The coordinator's address.
        within: Words before a command that run it on the machine of "coordinator" or "hN", such as `ip netns exec
            NAME`; keyed by that name.
        halves: Whether each hospital's party service is a separate process "hN-service", so that "hN" is only the
            relay.
        path: Folders that come before our own code on the Python path, keyed by "coordinator" or "hN".
    """

    def __init__(
        self,
        folder,
        count=3,
        *,
        relay_user=None,
        private=None,
        host=deployment.LOOPBACK,
        within=None,
        halves=False,
        path=None,
    ):
        super().__init__(folder, host=host)
        self.halves, self.within, self.path = halves, within or {}, path or {}
        private = private or [demo_notes.private_notes(number, 16, 0) for number in range(count)]
        self.make(private, relay_user=relay_user)

    def close(self):
        super().close()
        # The next deployment has the same notes of the demo, and its hospitals had no folder before.
        known_records.note_path().unlink(missing_ok=True)

    party = staticmethod(party)

    def coordinator(self, *arguments, **how):
        """Run one command on the coordinator's machine."""
        return coordinator(*arguments, within=self.within.get("coordinator", ()), **how)

    def start(self, name, program, *arguments):
        machine = self.within.get("coordinator" if name.startswith("run-") else name, ())
        at = environment(self.path.get(name, ()))
        return super().start(name, program, *arguments, environment=at, machine=machine)

    def launch(self, number, options=()):
        if self.halves:
            self.start(f"h{number}-service", "caucus-party", "start", self.at(number), "--only", "service")
            options = ("--only", "relay", *options)
        super().launch(number, options)

    def ledger(self, number):
        return self.at(number) / "private" / "ledger.db"

    def without_noise(self):
        """Let the hospitals accept plans without noise."""
        for number in range(self.count):
            self.set(number, max_epsilon=".inf", unsafe_no_noise="true", lifetime_epsilon="null", corrupt="0.0")

    def child(self, key, name):
        """Return the process ID of one child of a supervisor."""
        folder = self.here if key == "coordinator" else self.folder / key
        notes = [json.loads(path.read_text()) for path in (folder / "run").glob("*.json")]
        (process,) = {children[name]["process"] for children in notes if name in children}
        return process

    def kill(self, key, name, number=signal.SIGKILL):
        os.kill(self.child(key, name), number)

    def run(self, name, *overrides, code=0, timeout=400):
        return self.coordinator("run", "--yes", self.here, name, *SMALL, *overrides, code=code, timeout=timeout)

    def begin(self, name, *overrides):
        return super().begin(name, *SMALL, *overrides)

    def resume(self, name, code=0):
        return self.coordinator("resume", self.here, name, code=code, timeout=400)

    def result(self, name):
        folder = self.here / "runs" / name
        assert read(folder, "run.json")["status"] == "complete"
        return folder
