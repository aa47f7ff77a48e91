"""What configs/deployment/OPERATIONS.md tells an operator to do, over real nodes."""

import pytest

from common.ledger.ledger import Ledger
from simulations.laboratory.nodes.deployment import free_port
from tests.support.deployed import party
from tests.support.faults import EXACT

pytestmark = pytest.mark.deployment


def restarted(deployed, *numbers):
    for number in numbers:
        deployed.down(f"h{number}")
    deployed.up(*numbers)


def ledger(deployed, number):
    return Ledger(deployed.ledger(number), read_only=True)


def test_a_hospital_with_new_keys_keeps_its_ledger(deployed):
    before = ledger(deployed, 2).head()
    deployed.down("h2")
    party("rotate", deployed.at(2))
    deployed.coordinator("remove", "--yes", deployed.here, "Hospital 2")
    deployed.coordinator("enrol", "--yes", deployed.here, deployed.at(2) / "party.json")
    for number in range(3):
        party("roster", "--yes", deployed.at(number), deployed.here / "roster.json")
    restarted(deployed, 0, 1)
    deployed.up(2)
    deployed.run("new-keys", EXACT)
    assert ledger(deployed, 2).verify(before.chain).events > before.events


def test_a_lost_coordinator_is_replaced_and_no_budget_is_forgotten(deployed):
    heads = [ledger(deployed, number).head() for number in range(3)]
    deployed.down("coordinator")
    deployed.here, deployed.port = deployed.folder / "another", free_port()
    deployed.coordinator(
        *("init", deployed.here, "--address", f"{deployed.host}:{deployed.port}", "--listen", deployed.host),
        *("--superlink-port", free_port()),
    )
    deployed.serve()
    invitation = (deployed.here / "invitation.json").read_text()
    deployed.coordinator("invite", deployed.here)
    assert (deployed.here / "invitation.json").read_text() == invitation  # of one version there is one bundle
    for number in range(3):
        output = party("invitation", deployed.at(number), deployed.here / "invitation.json")
        assert output.count("(changed)") == 2  # not the bundle
        deployed.coordinator("enrol", "--yes", deployed.here, deployed.at(number) / "party.json")
    for number in range(3):
        party("roster", "--yes", deployed.at(number), deployed.here / "roster.json")
    restarted(deployed, 0, 1, 2)
    deployed.run("another", EXACT)
    for number, head in enumerate(heads):
        assert ledger(deployed, number).verify(head.chain).events > head.events
