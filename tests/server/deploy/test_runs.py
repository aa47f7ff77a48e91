"""How `run` reads a run's folder aloud and what it makes of its end; Flower is a stand-in that writes the folder."""

import json
import shutil

import pytest

from server.command import main
from server.deploy import create, enrolment, runs, status
from server.failure import lock_folder
from tests.common.system.test_enrolment import GOOD


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A coordinator with one hospital."""
    monkeypatch.setattr(create, "write_bundle", lambda *_: "ab" * 32)
    monkeypatch.setattr(enrolment, "flwr", lambda *_: {"node-id": 7})
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.01)
    (tmp_path / "party.json").write_text(json.dumps(GOOD))
    folder = tmp_path / "coordinator"
    assert main(["init", str(folder), "--address", "localhost:9443"]) == 0
    assert main(["enrol", str(folder), str(tmp_path / "party.json")]) == 0
    capsys.readouterr()
    return folder


def flower(monkeypatch, folder, *, leaves, says="finished:failed"):
    """Flower, which leaves these files in the run's folder when a run is submitted."""
    run = folder / "runs" / "first"

    def flwr(_, *arguments):
        if arguments[0] == "run":
            for name, content in leaves.items():
                (run / name).write_text(content)
            return {"run-id": "17"}
        return {"runs": [{"run-id": "17", "status": says}], "nodes": [{"node-id": 7, "status": "online"}]}

    for module in (runs, status):
        monkeypatch.setattr(module, "flwr", flwr)


def start(folder, command="run"):
    return main([command, str(folder), "first", *(["secagg=none", "method=fusegen"] if command == "run" else [])])


DONE = {"run.json": '{"status": "complete"}', "report.html": "page", "run.log": "round 1 of 1\n"}


def test_a_run_that_ends_well(folder, monkeypatch, capsys):
    flower(monkeypatch, folder, leaves=DONE)
    assert start(folder) == 0
    out = capsys.readouterr().out.splitlines()
    assert "with 1 hospitals" in out[0]
    assert out[-1] == f"done: {folder / 'runs' / 'first' / 'report.html'}"
    config = (folder / "runs" / "first" / "config.yaml").read_text()
    assert "parties: 1" in config
    assert "engine" not in config
    assert start(folder) == 2
    assert "expected a new name; got a run of that name" in capsys.readouterr().err
    assert main(["status", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parties"] == [{"number": 0, "name": "St. Mary", "node": "online"}]
    assert facts["runs"][0]["status"] == "complete"


def test_a_run_that_fails_says_why_and_how_to_go_on(folder, monkeypatch, capsys):
    flower(monkeypatch, folder, leaves={"error.txt": "too few parties take part (party 0 refused: AWAITING)."})
    assert start(folder) == 1
    error = capsys.readouterr().err
    assert "yet to approve the plan (caucus-party approve)" in error
    assert f"caucus-coordinator resume {folder} first goes on" in error
    flower(monkeypatch, folder, leaves=DONE)
    assert start(folder, "resume") == 0
    assert not (folder / "runs" / "first" / "error.txt").exists()


def test_a_run_whose_process_died_without_a_word(folder, monkeypatch, capsys):
    monkeypatch.setattr(runs, "ASK_FLOWER_EVERY", 0.0)
    flower(monkeypatch, folder, leaves={})
    assert start(folder) == 1
    assert "run; expected its end; got finished:failed; at " in capsys.readouterr().err
    room = shutil.disk_usage(folder)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    assert start(folder, "resume") == 1
    assert "got finished:failed, and a full disk; at " in capsys.readouterr().err


def test_what_still_runs_is_not_resumed_and_what_was_killed_is(folder, monkeypatch, capsys):
    flower(monkeypatch, folder, leaves=DONE, says="running")  # as Flower says for a while of a killed one, too
    assert start(folder) == 0
    capsys.readouterr()
    monkeypatch.setattr(runs, "ENDING_SECONDS", 0.1)
    lock = lock_folder(folder / "runs" / "first")
    assert start(folder, "resume") == 1
    assert "run; expected one that has ended; got a process at work" in capsys.readouterr().err
    lock.close()
    assert start(folder, "resume") == 0
