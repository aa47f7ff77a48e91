"""Hospitals that reach the coordinator through a proxy alone: with and without a login, refused, and with TLS opened.

Hospital 0 has a proxy that anybody may use, hospital 1 one that asks for a login, and hospital 2 the direct way. The
direct way of the first two is closed.
"""

import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from client.flower.proxy import LOGIN
from server.deploy.authority import make_authority, make_certificate
from simulations.laboratory.nodes.deployment import free_port, text, wait
from tests.support import hosts
from tests.support.between import Proxy
from tests.support.deployed import check, party, running
from tests.support.faults import EXACT, measured, whole
from tests.support.hosts import Hosts

pytestmark = pytest.mark.deployment

COUNT = 3
PASSWORD = "zebra:m@ngo/walnut"


@pytest.fixture(scope="module")
def machines():
    if reason := hosts.missing():
        pytest.skip(reason)
    made = Hosts(["coordinator", *(f"h{number}" for number in range(COUNT))])
    try:
        for hospital in ("h0", "h1"):
            made.close(hospital, "coordinator")
        yield made
    finally:
        made.ended()


@pytest.fixture(scope="module")
def proxies(machines):
    """The two proxies, and their URLs."""
    made = Proxy(), Proxy(f"hospital:{PASSWORD}")
    with made[0].at(machines.outside) as first, made[1].at(machines.outside) as second:
        yield made, (first, second)


def write_login(deployed, password, number=1):
    path = deployed.at(number) / "node" / LOGIN
    path.write_text(f"hospital:{password}\n")
    path.chmod(0o600)


@pytest.fixture(scope="module")
def deployed(machines, proxies):
    within = {name: machines.within(name) for name in ("coordinator", "h0", "h1", "h2")}
    within |= {f"h{number}-service": hosts.NOTHING_BUT_LOOPBACK for number in range(COUNT)}

    def prepare(made):
        for number, url in enumerate(proxies[1]):
            made.set(number, proxy=url)
        write_login(made, PASSWORD)

    how = {"host": machines.address("coordinator"), "within": within, "halves": True}
    with running(count=COUNT, prepare=prepare, **how) as made:
        yield made


def checked(deployed, machines, number, code=0):
    """The row of the connection, and the advice, of `caucus-party check` on that hospital's machine."""
    lines = check(deployed.at(number), code=code, within=machines.within(f"h{number}")).splitlines()
    (row,) = (at for at, line in enumerate(lines) if line.split()[1:2] == ["connection"])
    return "\n".join(lines[row : row + 2])


def node(deployed, number):
    (line,) = (line for line in party("status", deployed.at(number)).splitlines() if line.startswith("node:"))
    return line


def test_a_run_through_proxies_has_the_result_of_the_engine_in_process(deployed, machines, proxies, undisturbed):
    started = time.monotonic()
    with machines.outgoing("h0") as first, machines.outgoing("h1") as second:
        deployed.run("through", EXACT)
        for number, url in enumerate(proxies[1]):
            assert f"through {url}" in checked(deployed, machines, number)
    measured("two hospitals behind proxies", started)
    whole(deployed, "through", undisturbed)
    there = f"{deployed.host}:{deployed.port}"
    for between, url, opened in zip(*proxies, (first, second), strict=True):
        assert opened <= {("tcp", machines.outside, int(url.rpartition(":")[2]))}
        assert {(line.split()[0], line.split()[1], status) for line, status in between.asked} == {
            ("CONNECT", there, "200")
        }


def test_the_login_stands_in_its_file_alone(deployed, machines):
    started = [Path("/proc") / str(deployed.child("h1", name)) for name in ("service", "supernode", "relay")]
    seen = [(process / name).read_bytes() for process in started for name in ("cmdline", "environ")]
    logs = [path.read_bytes() for path in (deployed.at(1) / "logs").iterdir()]
    settings = (deployed.at(1) / "client.yaml").read_bytes()
    output = check(deployed.at(1), within=machines.within("h1")) + party("status", deployed.at(1))
    everything = b"".join([*seen, *logs, settings, output.encode()])
    assert b"proxy" in everything
    for word in (b"zebra", b"m@ngo", b"m%40ngo", b"walnut"):
        assert word not in everything
    assert [b"_proxy=" in variables for variables in seen[1::2]] == [False, True, False]


def restarted(deployed, number):
    deployed.down(f"h{number}")
    deployed.start(f"h{number}", "caucus-party", "start", deployed.at(number), "--only", "relay")


def log_of(deployed, number, before):
    """What SuperNode has logged since; the log has this many characters before."""
    return text(deployed.at(number) / "logs" / "supernode.log")[before:]


def test_a_proxy_that_opens_tls_is_refused_with_the_reason_and_hears_nothing(
    deployed, machines, proxies, undisturbed, tmp_path
):
    make_authority(tmp_path)
    make_certificate(tmp_path, deployed.host)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    between = proxies[0][0]
    between.opens = tls
    before, requests = len(log_of(deployed, 0, 0)), len(between.asked)
    try:
        restarted(deployed, 0)
        wait(lambda: "CERTIFICATE_VERIFY_FAILED" in log_of(deployed, 0, before), "the reason is logged")
        assert "CERTIFICATE_VERIFY_FAILED" in node(deployed, 0)
        row = checked(deployed, machines, 0, code=1)
        assert "opens TLS" in row
    finally:
        between.opens = None
    started = time.monotonic()
    measured("TLS opened: the check", started, row)
    assert len(between.asked) > requests + 1
    assert between.opened == []
    wait(lambda: deployed.online() == COUNT, "the node is online")
    measured("TLS passed on again: node online", started)
    deployed.run("passed-on", EXACT)
    whole(deployed, "passed-on", undisturbed)


@pytest.mark.skipif(shutil.which("tinyproxy") is None, reason="tinyproxy is not installed")
def test_through_a_proxy_that_hospitals_have(deployed, machines, undisturbed, tmp_path):
    """tinyproxy, which asks for a login and lets the coordinator's port through alone."""
    port, settings = free_port(), tmp_path / "tinyproxy.conf"
    lines = (
        f"Port {port}",
        f"Listen {machines.outside}",
        "BasicAuth hospital walnut17",
        f"ConnectPort {deployed.port}",
    )
    settings.write_text("\n".join([*lines, f'LogFile "{tmp_path}/log"', "Timeout 600", ""]))
    with subprocess.Popen(["tinyproxy", "-d", "-c", str(settings)]) as between:
        try:
            for half in ("h0", "h0-service"):
                deployed.down(half)
            deployed.set(0, proxy=f"http://{machines.outside}:{port}")
            write_login(deployed, "walnut17", 0)
            deployed.up(0)
            deployed.run("tinyproxy", EXACT)
            assert f":{port}" in checked(deployed, machines, 0)
        finally:
            between.terminate()
    whole(deployed, "tinyproxy", undisturbed)
    log = text(tmp_path / "log")
    assert f"CONNECT {deployed.host}:{deployed.port}" in log
    assert "walnut17" not in log
