"""One guarded SuperLink, three SuperNodes, TLS: whole, on this machine, by the commands that an operator types.

Start here if real nodes fail: the other tests over them break something (`make test-deployment`).
"""

import json
import sys
import time

import pytest

from client.deploy.preflight import PASSED
from tests.support.deployed import party, running
from tests.support.faults import EXACT, phases, whole

pytestmark = pytest.mark.deployment


def test_real_nodes_give_what_the_engine_in_process_gives(deployed, undisturbed):
    started = time.monotonic()
    output = deployed.run("exact", EXACT)
    took = time.monotonic() - started
    whole(deployed, "exact", undisturbed)
    assert "round 3 of 3" in output
    lines = deployed.audit(0)
    assert [line["request"] for line in lines] == ["Open", "AskShares", *2 * ["Ask", "AskAgree", "AskUnmask"], "Close"]
    sys.stdout.write(f"\nmeasured | run of {len(lines)} phases | {took:.0f} s | seconds between: {phases(lines)}\n")
    assert deployed.ask("POST", "/v1/control/start-run").status_code == 404


def test_a_coordinator_with_an_ipv6_address_gives_the_same(undisturbed):
    with running(host="[::1]") as deployed:
        deployed.run("exact", EXACT)
        whole(deployed, "exact", undisturbed)
        assert deployed.here.joinpath("coordinator.yaml").read_text().count('listen: "::1"') == 1
        checks = {check["check"]: check for check in json.loads(party("check", deployed.at(0), "--json"))["checks"]}
        assert checks["connection"]["detail"].startswith(f"[::1]:{deployed.port}, TLS")
        assert {checks[name]["result"] for name in ("connection", "node's key")} == {PASSED}
