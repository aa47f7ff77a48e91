"""Failures of real nodes: what the operator reads, how long it takes, and that nothing is lost, shown or paid twice."""

import os
import signal
import time

import pytest

from simulations.laboratory.nodes.deployment import text, wait
from tests.support.deployed import coordinator, party
from tests.support.faults import EXACT, asked, measured, whole

pytestmark = pytest.mark.deployment


@pytest.mark.parametrize("after", ["Open", "AskShares", "Ask"], ids=["before keys", "after shares", "after its vector"])
def test_a_party_service_killed_in_the_round(after, deployed, undisturbed):
    name = f"killed-{after}"
    deployed.begin(name, EXACT)
    asked(deployed, 2, name, after)
    deployed.kill("h2", "service")
    killed = time.monotonic()
    code, output = deployed.finish(name)
    assert code == 0, output
    measured(f"party service killed after {after}: the run goes on by itself", killed)
    whole(deployed, name, undisturbed)


def test_a_supernode_killed_in_the_round_comes_back(deployed, undisturbed):
    deployed.begin("node", EXACT)
    asked(deployed, 1, "node", "AskShares")
    deployed.kill("h1", "supernode")
    killed = time.monotonic()
    code, output = deployed.finish("node")
    assert code == 0, output
    measured("SuperNode killed: the run goes on by itself", killed)
    whole(deployed, "node", undisturbed)


@pytest.mark.parametrize("after", ["Open", "AskShares", "Ask", "AskUnmask"])
def test_a_coordinator_killed_in_each_phase_and_resumed(after, deployed, undisturbed):
    name = f"coordinator-{after}"
    deployed.begin(name, EXACT)
    asked(deployed, 0, name, after)
    os.kill(deployed.running["coordinator"].pid, signal.SIGKILL)  # its children die with it
    deployed.running.pop("coordinator").wait()
    watching = deployed.running.pop(f"run-{name}")
    watching.kill()
    watching.wait()
    killed = time.monotonic()
    deployed.serve()
    wait(lambda: deployed.online() == 3, "the nodes are back")
    measured(f"coordinator killed after {after}: nodes back", killed)
    for number in range(3):  # whatever their logs end with; SuperLink counts a node until its heartbeat is overdue
        wait(
            lambda n=number: party("status", deployed.at(n)).count("node: connected since 20") == 1, "a status says so"
        )
    deployed.resume(name)
    measured(f"coordinator killed after {after}: whole again", killed)
    whole(deployed, name, undisturbed)


def test_a_coordinator_that_is_stopped_in_a_run_says_so(deployed, undisturbed):
    deployed.begin("stopped", EXACT)
    asked(deployed, 0, "stopped", "AskShares")
    stopped = time.monotonic()
    output = deployed.coordinator("stop", deployed.here)
    deployed.running.pop("coordinator").wait(60)
    assert "run stopped" in output
    code, output = deployed.finish("stopped")
    measured("coordinator stopped in a run", stopped, output.splitlines()[-1])
    assert code == 1
    assert "at 20" in output.splitlines()[-1]
    said = coordinator("status", deployed.here)
    assert "caucus-coordinator serve" in said.splitlines()[0]
    assert "run stopped: stopped" in said
    deployed.serve()
    wait(lambda: deployed.online() == 3, "the nodes are back")
    deployed.resume("stopped")
    whole(deployed, "stopped", undisturbed)


@pytest.mark.parametrize("which", ["front door frozen", "party service frozen"])
def test_a_process_that_is_frozen_for_thirty_seconds_costs_time_alone(which, deployed, undisturbed):
    name = which.replace(" ", "-")
    deployed.begin(name, EXACT)
    asked(deployed, 0, name, "AskShares")
    key, child = ("coordinator", "front_door") if which == "front door frozen" else ("h0", "service")
    deployed.kill(key, child, signal.SIGSTOP)
    stopped = time.monotonic()
    time.sleep(30)
    deployed.kill(key, child, signal.SIGCONT)
    code, output = deployed.finish(name)
    assert code == 0, output
    measured(f"{which} for 30 s: the run goes on by itself", stopped)
    whole(deployed, name, undisturbed)


def test_a_run_s_process_that_is_killed(deployed, undisturbed):
    folder = deployed.here / "runs" / "oom"
    deployed.begin("oom", EXACT)
    asked(deployed, 0, "oom", "AskShares")
    os.kill(int(text(folder / "lock")), signal.SIGKILL)  # as the kernel does where memory is short
    killed = time.monotonic()
    code, output = deployed.finish("oom")
    line = output.splitlines()[-1]
    measured("the run's process killed: noticed", killed, line)
    assert code == 1
    cause = "it was killed, perhaps for lack of memory; if so, dmesg says it"
    assert f"{cause}; at {folder / 'run.log'}" in line
    assert cause in text(folder / "run.log").splitlines()[-1]
    assert "oom: failed" in coordinator("status", deployed.here)
    deployed.resume("oom")
    measured("the run's process killed: whole again", killed)
    whole(deployed, "oom", undisturbed)


def test_a_run_that_is_cancelled_and_resumed(deployed, undisturbed):
    deployed.begin("cancelled", EXACT)
    asked(deployed, 1, "cancelled", "AskShares")
    cancelled = time.monotonic()
    output = deployed.coordinator("cancel", deployed.here, "cancelled")
    measured("cancel", cancelled, output)
    assert "caucus-coordinator resume" in output
    code, output = deployed.finish("cancelled")
    assert code == 1
    assert "cancelled at 20" in output.splitlines()[-1]
    assert "cancelled at 20" in coordinator("status", deployed.here)
    deployed.resume("cancelled")
    measured("cancel: resumed and whole", cancelled)
    whole(deployed, "cancelled", undisturbed)
