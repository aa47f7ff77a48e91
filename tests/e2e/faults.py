"""What tests of failing deployments share: runs without noise, what they measure, and what "whole" means.

Without noise "nothing is lost" can be said to the byte: whatever happened on the way, the texts are those of an
undisturbed run. What was paid stands in the hospitals' ledgers: one closed charge for each query.
"""

import sys
import time

from common.privacy.ledger import Ledger
from tests.e2e.deployed import text, wait
from tests.e2e.runs import read, texts

EXACT = "privacy.epsilon=.inf"


def measured(what, started, said=""):
    sys.stdout.write(f"\nmeasured | {what} | {time.monotonic() - started:.0f} s | {said.strip()}\n")


def asked(deployed, number, run, request):
    """Wait until that hospital has answered that request of a run."""
    identity = read_run(deployed, run)
    wait(
        lambda: any(line["run"] == identity and line["request"] == request for line in deployed.audit(number)),
        f"{request} is answered",
    )


def read_run(deployed, run):
    config = deployed.here / "runs" / run / "config.yaml"
    return wait(
        lambda: next((line.split()[1] for line in text(config).splitlines() if line.startswith("run:")), None), "a run"
    )


def whole(deployed, run, undisturbed):
    """The run is complete, its texts are the undisturbed ones, and every query was paid once."""
    folder = deployed.result(run)
    assert texts(folder) == undisturbed
    identity = read(folder, "run.json")["run"]
    ledgers = [deployed.at(number) / "private" / "ledger.db" for number in range(3)]
    for ledger in (folder / "state" / "ledger.db", *ledgers):
        entries = Ledger(ledger, read_only=True).entries(identity)
        assert [(entry.index, entry.committed) for entry in entries] == [(0, True), (1, True)]


def finished(deployed, run):
    """The end of a run in the background: its code and what it said."""
    process = deployed._running.pop(f"run-{run}")
    return process.wait(400), text(deployed.folder / f"run-{run}.out")


def refused(deployed, name, *overrides):
    """What the operator reads of a run that a hospital does not take part in."""
    started = time.monotonic()
    line = deployed.run(name, EXACT, "federation.timeout=60", *overrides, code=1).splitlines()[-1]
    measured(name, started, line)
    assert "too few parties take part" in line
    return line


def restarted(deployed, number):
    deployed.down(f"h{number}")
    deployed.start(f"h{number}", "caucus-party", "start", deployed.at(number))
    log = deployed.at(number) / "logs" / "service.log"
    ready = text(log).count("party service ready")
    wait(lambda: text(log).count("party service ready") > ready, "the hospital is ready")
    wait(lambda: deployed.online() == 3, "the node is online")
