"""`caucus-party check` before and after enrolment, beside a running node, and after the key was revoked."""

import json

import pytest

from server.tasks import demo_notes
from simulations.laboratory.nodes.deployment import text, write_records
from tests.support.deployed import party
from tests.support.faults import EXACT

pytestmark = pytest.mark.deployment


def checked(deployed, number, *, code=0):
    output = party("check", deployed.at(number), "--json", code=code)
    return {check["check"]: check for check in json.loads(output[: output.rindex("}") + 1])["checks"]}


def test_the_node_s_key_is_known_from_enrolment_to_removal(deployed):
    notes = demo_notes.private_notes(3, 16, 0)
    deployed.add(3, write_records(deployed.folder / "notes3.csv", notes))
    before = checked(deployed, 3, code=1)
    assert [name for name, check in before.items() if check["result"] == "problem"] == ["node's key"]
    assert "not enrolled" in before["node's key"]["detail"]
    assert before["connection"]["result"] == "passed"
    assert before["roster"]["result"] == "waiting"

    deployed.coordinator("enrol", "--yes", deployed.here, deployed.at(3) / "party.json")
    enrolled = checked(deployed, 3)
    assert enrolled["roster"]["result"] == "waiting"
    party("roster", "--yes", deployed.at(3), deployed.here / "roster.json")
    assert checked(deployed, 3)["roster"]["detail"].startswith("party 3 of 4")

    deployed.coordinator("remove", "--yes", deployed.here, "Hospital 3")
    removed = checked(deployed, 3, code=1)
    assert [name for name, check in removed.items() if check["result"] == "problem"] == ["node's key"]
    assert "was removed" in removed["node's key"]["detail"]


def test_a_check_does_not_disturb_the_node_that_runs_with_the_same_key(deployed):
    log = deployed.at(0) / "logs" / "supernode.log"
    before, process = text(log), deployed.child("h0", "supernode")
    running = deployed.begin("beside", EXACT)
    while running.poll() is None:
        assert checked(deployed, 0)["node's key"]["result"] == "passed"
    assert running.returncode == 0
    assert deployed.result("beside")
    assert deployed.child("h0", "supernode") == process
    assert deployed.online() == 3
    assert text(log)[: len(before)] == before
    assert "SuperNode ID" not in text(log)[len(before) :]
    assert "activat" not in text(log)[len(before) :].lower()
