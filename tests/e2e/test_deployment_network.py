"""Hospitals and coordinator as machines of their own: who reaches whom, and networks that are cut, slow or hostile.

The topology is that of `configs/deployment/compose.yaml`: each machine a network namespace, the party service in one
without a network. All runs are without noise, so that "whole" can be said to the byte (`faults.py`).
"""

import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.deploy.authority import make_authority, make_certificate
from simulations.laboratory.nodes.deployment import text, wait
from tests.support import hosts
from tests.support.between import Line, listening
from tests.support.deployed import check, party, running
from tests.support.faults import EXACT, asked, measured, whole
from tests.support.hosts import Hosts

pytestmark = pytest.mark.deployment

COUNT = 3


@pytest.fixture(scope="module")
def machines():
    if reason := hosts.missing():
        pytest.skip(reason)
    made = Hosts(["coordinator", *(f"h{number}" for number in range(COUNT))])
    try:
        yield made
    finally:
        made.ended()


@pytest.fixture(scope="module")
def deployed(machines):
    within = {name: machines.within(name) for name in ("coordinator", "h0", "h1", "h2")}
    within |= {f"h{number}-service": hosts.NOTHING_BUT_LOOPBACK for number in range(COUNT)}
    with running(count=COUNT, host=machines.address("coordinator"), within=within, halves=True) as made:
        yield made


def ended(deployed, name, since, what):
    """The run ends by itself, or stops with one line; its last line."""
    code, output = deployed.finish(name)
    line = output.splitlines()[-1]
    measured(f"{what}: run ends with code {code}", since, line)
    assert "Traceback" not in output
    if code:
        assert "resume" in line
        wait(lambda: deployed.online() == COUNT, "all nodes are online")
        measured(f"{what}: all online", since)
        deployed.resume(name)
        measured(f"{what}: whole again", since)
    return line


def between(machines, deployed, number, serve, **how):
    return machines.between(f"h{number}", "coordinator", deployed.port, serve, **how)


def test_over_machines_of_their_own_the_result_is_that_of_the_engine_in_process(deployed, undisturbed):
    started = time.monotonic()
    deployed.run("apart", EXACT)
    measured("four machines, undisturbed", started)
    whole(deployed, "apart", undisturbed)


def test_the_front_door_is_the_only_port_that_a_network_reaches(deployed, machines):
    started = time.monotonic()
    for stranger in ("h0", "h2"):
        assert machines.open_ports(stranger, of="coordinator") == [deployed.port]
    for stranger in ("coordinator", "h0", "h2"):
        assert machines.open_ports(stranger, of="h1") == []
    measured("five scans of all TCP ports", started)


def test_a_party_service_has_no_network(deployed):
    for number in range(COUNT):
        service = Path("/proc") / str(deployed.child(f"h{number}", "service"))
        lines = (service / "net" / "dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in lines] == ["lo"]
        assert text(service / "net" / "route").splitlines()[1:] == []
        apart = {
            (service.parent / str(deployed.child(f"h{number}", process)) / "ns" / "net").readlink()
            for process in ("service", "supernode", "relay")
        }
        assert len(apart) == 2


def test_a_hospital_connects_to_the_coordinator_s_port_and_the_coordinator_to_nobody(deployed, machines, undisturbed):
    """Nothing else goes out from start to end of a run; a name that is asked for would be seen too."""
    halves = ("h1", "h1-service")
    for half in halves:
        deployed.down(half)
    with machines.outgoing("h1") as hospital, machines.outgoing("coordinator") as coordinator:
        check(deployed.at(1), within=machines.within("h1"))
        deployed.up(1)
        deployed.run("watched", EXACT)
        for half in halves:
            deployed.down(half)
    whole(deployed, "watched", undisturbed)
    assert hospital == {("tcp", machines.address("coordinator"), deployed.port)}
    assert coordinator == set()
    with machines.outgoing("h1") as hospital:
        ask = [*machines.within("h1"), sys.executable, "-c", "import socket; socket.gethostbyname('hospital.example')"]
        completed = subprocess.run(ask, capture_output=True, check=False, env={"RES_OPTIONS": "timeout:1 attempts:1"})
        assert completed.returncode
    assert hospital == {("udp", hosts.NAMES, 53)}
    deployed.up(1)


@pytest.mark.parametrize("who", ["h1", "coordinator"])
def test_a_network_cut_for_thirty_seconds_in_a_round(who, deployed, machines, undisturbed):
    name = f"cut-{who}"
    deployed.begin(name, EXACT)
    asked(deployed, 1, name, "AskShares")
    machines.cut(who)
    cut = time.monotonic()
    try:
        time.sleep(30)
    finally:
        machines.mend(who)
    ended(deployed, name, cut, f"{who} cut for 30 s")
    whole(deployed, name, undisturbed)


def test_a_network_that_changes_bits_costs_time_alone(deployed, machines, undisturbed):
    deployed.begin("spoiled", EXACT, "federation.timeout=40")
    asked(deployed, 1, "spoiled", "AskShares")
    started = time.monotonic()
    with between(machines, deployed, 1, Line(deployed.host, deployed.port, spoil=10).serve):
        code, output = deployed.finish("spoiled")
    assert code == 1
    assert "too few" in output.splitlines()[-1]
    measured("every tenth piece spoiled: run ends", started, output.splitlines()[-1])
    wait(lambda: deployed.online() == COUNT, "all nodes are online")
    measured("every tenth piece spoiled: all online", started)
    deployed.resume("spoiled")
    measured("every tenth piece spoiled: whole again", started)
    whole(deployed, "spoiled", undisturbed)


@pytest.mark.parametrize("which", ["another certificate", "no TLS"])
def test_an_impostor_in_the_coordinator_s_place_hears_nothing(which, deployed, machines, undisturbed, tmp_path):
    impostor, tls, heard = "another" in which, None, []
    if impostor:
        make_authority(tmp_path)
        make_certificate(tmp_path, deployed.host)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    name = which.replace(" ", "-")
    deployed.begin(name, EXACT, "federation.timeout=40")
    asked(deployed, 2, name, "AskShares")
    started = time.monotonic()
    with between(machines, deployed, 2, listening(heard), tls=tls):
        code, output = deployed.finish(name)
        line = output.splitlines()[-1]
        measured(f"{which}: run ends", started, line)
        assert code == 1
        assert "too few" in line
        checked = check(deployed.at(2), code=1, within=machines.within("h2"))
        measured(f"{which}: the hospital's check says", started, checked)
        (node,) = (line for line in party("status", deployed.at(2)).splitlines() if line.startswith("node:"))
        assert "SSL" in node
        measured(f"{which}: the hospital's status says", started, node)
    # A handshake's first flight names no more than the coordinator's address.
    assert all(piece[:1] == b"\x16" and b"HTTP" not in piece for piece in heard)
    assert not (impostor and heard)
    wait(lambda: deployed.online() == COUNT, "the node is online")
    deployed.resume(name)
    measured(f"{which}: whole again", started)
    whole(deployed, name, undisturbed)


def test_a_hospital_s_machine_that_is_restarted_between_rounds(deployed, undisturbed):
    deployed.begin("restarted", EXACT)
    asked(deployed, 1, "restarted", "AskUnmask")
    started = time.monotonic()
    for half in ("h1", "h1-service"):
        deployed.down(half)
    deployed.up(1)
    sys.stdout.write(f"\nmeasured | both halves restarted | {time.monotonic() - started:.0f} s\n")
    ended(deployed, "restarted", started, "both halves restarted")
    whole(deployed, "restarted", undisturbed)
