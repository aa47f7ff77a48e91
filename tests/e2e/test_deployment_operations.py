"""What configs/deployment/OPERATIONS.md tells an operator to do, over real nodes."""

import json
import shutil
import time
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from common.ledger.ledger import Ledger
from simulations.laboratory.nodes.deployment import free_port, text, wait
from tests.support.deployed import party
from tests.support.faults import EXACT, measured

pytestmark = pytest.mark.deployment


def metrics(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    families = text_string_to_metric_families(connection.getresponse().read().decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def restarted(deployed, *numbers):
    for number in numbers:
        deployed.down(f"h{number}")
    deployed.up(*numbers)


def ledger(deployed, number):
    return Ledger(deployed.ledger(number), read_only=True)


def test_status_and_metrics_of_a_hospital_that_answers(deployed):
    port = free_port()
    deployed.set(0, metrics_port=port)
    restarted(deployed, 0)
    deployed.run("measured", EXACT)
    wait(
        lambda: "metrics at http://127.0.0.1" in text(deployed.at(0) / "logs" / "metrics.log"), "the metrics are there"
    )
    samples, answered = metrics(port), len(deployed.audit(0))
    assert samples["caucus_requests_answered_total",] == answered > 5
    assert samples["caucus_ledger_events_total",] == ledger(deployed, 0).head().events > 0
    assert all(samples["caucus_process_running", name] == 1 for name in ("service", "metrics", "supernode", "relay"))
    assert time.time() - samples["caucus_last_contact_timestamp_seconds",] < 600
    status = json.loads(party("status", deployed.at(0), "--json"))
    assert status["ledger"] == {
        "events": ledger(deployed, 0).head().events,
        "noted_head": ledger(deployed, 0).head().chain,
        "problem": "",
    }
    assert (status["requests"]["answered"], status["requests"]["refused"]) == (answered, {})
    certificates = json.loads(deployed.coordinator("status", deployed.here, "--json"))["certificate_days"]
    assert (status["certificate_days"], certificates["server.crt"]) == (certificates["ca.crt"], 364)


def test_a_restored_older_ledger_is_refused_until_what_it_lacks_is_charged(deployed):
    backup = deployed.folder / "monday.db"
    assert "events, head " in party("ledger", "backup", deployed.at(1), backup)
    deployed.run("after-backup", EXACT)
    deployed.down("h1")
    shutil.copy(backup, deployed.ledger(1))
    started = time.monotonic()
    assert "what was spent since would be given back" in party("start", deployed.at(1), code=2)
    assert "the party service does not start: the ledger does not contain" in party("status", deployed.at(1))
    assert "epsilon 2.5 is charged to every record" in party("ledger", "accept", deployed.at(1), "--lost", "2.5")
    deployed.up(1)
    measured("older ledger restored: refused, accepted, ready", started)
    assert sum(entry.run.startswith("lost with another ledger") for entry in ledger(deployed, 1).entries()) == 1
    wait(lambda: deployed.online() == 3, "the nodes are online")
    deployed.run("after-restore", EXACT)


def test_a_hospital_with_new_keys_keeps_its_ledger(deployed):
    before = ledger(deployed, 2).head()
    deployed.down("h2")
    assert "fingerprint, to be compared by telephone" in party("rotate", deployed.at(2))
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
