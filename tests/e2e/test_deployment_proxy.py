"""Hospitals that reach the coordinator through a proxy alone, with and without a login.

Hospital 0 has a proxy that anybody may use, hospital 1 one that asks for a login, and hospital 2 the direct way. The
direct way of the first two is closed.
"""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from client.flower.proxy import LOGIN
from common.system.processes import free_port
from simulations.laboratory.nodes.deployment import text
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


def checked(deployed, machines, number):
    """The row of the connection, and the advice, of `caucus-party check` on that hospital's machine."""
    lines = check(deployed.at(number), within=machines.within(f"h{number}")).splitlines()
    (row,) = (at for at, line in enumerate(lines) if line.split()[1:2] == ["connection"])
    return "\n".join(lines[row : row + 2])


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
