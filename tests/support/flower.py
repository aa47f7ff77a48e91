"""A stand-in for Flower, and a coordinator's folder with two hospitals, for tests of runs without any processes."""

import json
from pathlib import Path

from common.errors import CaucusError
from common.system import processes
from server.command import main
from server.deploy import create, enrolment, run_state, runs
from server.prepare.compose import compose_settings, store
from tests.support.documents import privacy_json, round_json, summary_json
from tests.support.enrolment import PARTY, node_key

OTHER = {"name": "St. Luke", "identity": "cd" * 32, "node_key": node_key()}
SMALL = ("secagg=none", "method=fusegen")
DONE = {"run.json": json.dumps(summary_json()), "report.html": "page", "run.log": "round 1 of 1\n"}
PROCESSES = {"superlink": 5, "executor": 6, "front_door": 7}
SERVE = {"children": {name: {"process": process, "restarts": 0} for name, process in PROCESSES.items()}}


class Flower:
    """A stand-in for Flower with two nodes; a submitted run leaves files in its folder as the run's process would.

    Args:
        folder: The coordinator's folder.
    """

    def __init__(self, folder):
        self.folder = folder
        self.leaves, self.says, self.online, self.fails = DONE, "finished:failed", {"7", "8"}, set()
        self.asked, self.given, self.serve = [], [], SERVE

    def __call__(self, _, *arguments):
        verb = arguments[0] if arguments[0] != "supernode" else f"supernode {arguments[1]}"
        self.asked.append(verb)
        if verb in self.fails:
            raise CaucusError("Flower", got="a stand-in", where=verb)
        match verb:
            case "supernode register":
                return {"node-id": 7 + self.asked.count(verb) - 1}
            case "supernode list":
                return {"nodes": [self.node(node) for node in ("7", "8")]}
            case "run":
                self.given = arguments
                folder = Path(arguments[arguments.index("--run-config") + 1]).parent
                for name, content in self.leaves.items():
                    (folder / name).write_text(content)
                return {"run-id": "17"}
            case "list":
                return {"runs": [{"run-id": "17", "status": self.says, "status-details": "No heartbeat"}]}
        return {}

    def command(self, verb):
        """Return the command that does this with the run `first`."""
        return f"caucus-coordinator {verb} {self.folder} first"

    def node(self, node):
        online = node in self.online
        times = {"online-at": "2026-01-02 10:00:00Z", "offline-at": "N/A" if online else "2026-01-02 11:00:00Z"}
        return {"node-id": node, "status": "online" if online else "offline"} | times


def said(capsys, *arguments, code=2):
    """Return the one line in which the command reports what is wrong."""
    assert main(list(map(str, arguments))) == code
    error = capsys.readouterr().err
    assert error.startswith("caucus-coordinator: ")
    assert error.count("\n") == 1
    return error


def coordinated(folder, monkeypatch):
    """Make a coordinator's folder with two hospitals; return the stand-in for its Flower."""
    flower = Flower(folder)
    monkeypatch.setattr(create, "write_bundle", lambda *_: "ab" * 32)
    for module in (enrolment, run_state, runs):
        monkeypatch.setattr(module, "flwr", flower)
    monkeypatch.setattr(processes, "status", lambda *_: flower.serve)
    monkeypatch.setattr(run_state, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(run_state, "ASK_FLOWER_EVERY", 0.0)
    assert main(["init", str(folder), "--address", "localhost:9443"]) == 0
    for name, party in (("a", PARTY), ("b", OTHER)):
        (folder / f"{name}.json").write_text(json.dumps(party | {"max_records": 1000}))
        assert main(["enrol", "--yes", str(folder), str(folder / f"{name}.json")]) == 0
    flower.asked.clear()
    return flower


def under_way(flower, name="first", *more):
    """Create the folder of a run with two of five rounds complete, which has paid for a model and awaits nobody."""
    folder = flower.folder / "runs" / name
    overrides = ["secagg=none", "method=wasp", "method.rounds=5", "llm.max_cost=5", "llm.max_tokens=100000", *more]
    store(compose_settings(overrides, "server"), folder)
    paid = {"api": {"replies": 3, "input_tokens": 900, "cached_tokens": 0, "output_tokens": 100, "cost": 0.5}}
    rounds = [round_json(number, epsilon=float(number), paid=paid) for number in (1, 2)]
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rounds))
    spent = {"epsilon": 1.5, "queries_asked": 2, "queries_planned": 4}
    (folder / "privacy.json").write_text(json.dumps(privacy_json(spent=spent, plan_digest="ab" * 32)))
    use = {"model": "api", "input": 1800, "cached": 0, "kept": 0, "output": 200, "cost": 1.0}
    (folder / "spending.jsonl").write_text(json.dumps(use) + "\n")
    (folder / "run.log").write_text("early\n" * 100 + "\x1b[92mround 2 of 5\x1b[0m <b>\x07\n")
    return folder
