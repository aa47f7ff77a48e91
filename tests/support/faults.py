"""Checks shared by tests of failing deployments: runs without noise, measurements, and what "whole" means.

Without noise, it can be checked to the byte that nothing is lost: after any failure, the texts must equal those of an
undisturbed run. The hospitals' ledgers show the cost: one closed charge for each query.
"""

import itertools
import sys
import time
from datetime import datetime

import yaml

from common.ledger.ledger import Ledger
from simulations.laboratory.nodes.deployment import text, wait
from tests.support.runs import texts

EXACT = "privacy.epsilon=.inf"


def measured(what, started, said=""):
    sys.stdout.write(f"\nmeasured | {what} | {time.monotonic() - started:.0f} s | {said.strip()}\n")


def asked(deployed, number, run, request):
    """Wait until hospital `number` has answered a request of this type, such as "Ask", in the run."""
    identity = read_run(deployed, run)
    wait(
        lambda: any(line["run"] == identity and line["request"] == request for line in deployed.audit(number)),
        f"{request} is answered",
    )


def read_run(deployed, run):
    config = deployed.here / "runs" / run / "config.yaml"
    return yaml.safe_load(wait(lambda: text(config), "a run"))["run"]


def whole(deployed, run, undisturbed):
    """Assert that the run is complete, has the texts of the undisturbed run, and was charged once per query."""
    folder = deployed.result(run)
    assert texts(folder) == undisturbed
    for ledger in (folder / "state" / "ledger.db", *map(deployed.ledger, range(3))):
        assert charges(ledger, read_run(deployed, run)) == [(0, True), (1, True)]


def charges(ledger, identity):
    """Return, for each query of a run in a ledger, the query's index and whether it is closed."""
    return [(entry.index, entry.committed) for entry in Ledger(ledger, read_only=True).entries(identity)]


def phases(lines):
    """Return the seconds between consecutive lines of an audit log."""
    times = [datetime.fromisoformat(line["when"]) for line in lines]
    return [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]


def restarted(deployed, number):
    deployed.down(f"h{number}")
    deployed.up(number)
