"""The health check of a hospital's containers says what does not work."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from client.channel import SOCKET
from client.deploy import health
from tests.support.party_requests import on_socket

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


def test_a_relay_works_while_all_its_processes_run(folder, children, capsys):
    code, problem = said(folder, "relay", capsys)  # not started
    assert (code, problem[:5]) == (1, "relay")
    children["relay"] = {"supernode": RUNS, "relay": RUNS}
    assert said(folder, "relay", capsys) == (0, "works")
    children["relay"]["supernode"] = WAITS
    code, problem = said(folder, "relay", capsys)
    assert (code, problem[:9]) == (1, "supernode")


def test_a_service_works_while_it_answers(folder, children, capsys):
    assert said(folder, "service", capsys)[0] == 1
    children["service"] = {"service": RUNS}
    code, problem = said(folder, "service", capsys)
    assert (code, problem[-5:]) == (1, "0.2 s")
    with on_socket({0: SimpleNamespace(handle=None)}, SOCKET):
        assert said(folder, "service", capsys) == (0, "works")


def test_a_check_every_half_minute_loads_nothing_heavy():
    heavy = "import sys, client.deploy.health; print({'torch', 'scipy', 'flwr'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "set()\n"
