"""The health check of a hospital's containers says what does not work."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from client.channel import SOCKET, serve
from client.deploy import health

RUNS, WAITS = {"process": 8, "restarts": 0}, {"process": None, "restarts": 3}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)  # the check goes there, and a test comes back
    monkeypatch.setattr(health, "PATIENCE", 0.2)
    return tmp_path


@pytest.fixture
def children(monkeypatch):
    """Of the half's supervisor; empty this for none."""
    states = {}
    monkeypatch.setattr(health, "status", lambda folder, half: {"children": states[half]} if states else None)
    return states


def said(folder, half, capsys):
    code = health.main([str(folder), half])
    return code, capsys.readouterr().out.strip()


def test_what_is_not_started_does_not_work(folder, children, capsys):
    assert said(folder, "service", capsys) == (1, "service is not started")
    assert said(folder, "relay", capsys) == (1, "relay is not started")


def test_a_relay_works_while_all_its_processes_run(folder, children, capsys):
    children["relay"] = {"supernode": RUNS, "relay": RUNS}
    assert said(folder, "relay", capsys) == (0, "works")
    children["relay"]["supernode"] = WAITS
    assert said(folder, "relay", capsys) == (1, "supernode has ended and waits to start again")


def test_a_service_works_while_it_answers(folder, children, capsys):
    children["service"] = {"service": RUNS}
    assert said(folder, "service", capsys) == (1, "the party service does not answer within 0.2 s")
    server = serve({0: SimpleNamespace(handle=None)}, SOCKET)
    try:
        assert said(folder, "service", capsys) == (0, "works")
    finally:
        server.stop(None).wait()


def test_a_check_every_half_minute_loads_nothing_heavy():
    heavy = "import sys, client.deploy.health; print({'torch', 'scipy', 'flwr'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "set()\n"
