"""How runs are begun, followed, cancelled and resumed, and what is said of their ends; Flower is a stand-in."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import yaml

from common.domain import UNLABELLED
from common.system import processes
from server.command import main
from server.deploy import run_state, runs
from server.deploy.settings import CoordinatorSettings
from server.documents.hospitals import HospitalVersion, HospitalVersions
from server.documents.run import Weakness, WeaknessCode
from server.failure import lock_folder
from server.prepare.compose import compose_settings, store
from tests.support.flower import DONE, SERVE, SMALL, under_way


def start(flower, *more, name="first"):
    return main(["run", "--yes", str(flower.folder), name, *SMALL, *more])


def again(flower, verb="resume", *more):
    return main([verb, str(flower.folder), "first", *more])


def read(flower, name):
    return (flower.folder / "runs" / "first" / name).read_text()


def status(flower, capsys, *, served=True):
    """The JSON of the only run, of which the lines for people say the same."""
    capsys.readouterr()
    assert main(["status", str(flower.folder)]) == 0
    lines = capsys.readouterr().out
    assert main(["status", str(flower.folder), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert f"run {run['name']}: {run['status']}" in lines
    assert all(fact in lines for fact in (run["reason"], *run["hospitals"], *run["weaknesses"]))
    return run


def refused(capsys, what, code=2):
    """Check that a command ended with one error about this."""
    assert f"caucus-coordinator: {what};" in capsys.readouterr().err
    return code


def test_a_run_that_ends_well(flower, capsys):
    assert start(flower) == 0
    out = capsys.readouterr().out.splitlines()
    run = flower.folder / "runs" / "first"
    assert f"report:   {run / 'report.html'}" in out
    assert out[-1].endswith(f"caucus-coordinator evaluate {run} --test FILE")
    config = yaml.safe_load(read(flower, "config.yaml"))
    assert config["run"].startswith("first-")
    assert len(bytes.fromhex(config["run"].removeprefix("first-"))) == 4
    assert config["federation"]["parties"] == 2
    assert config["federation"]["hospitals"] == [{"name": "St. Mary", "node": 7}, {"name": "St. Luke", "node": 8}]
    assert "engine" not in config
    run = status(flower, capsys)
    assert (run["name"], run["status"], run["weaknesses"]) == ("first", "complete", [])
    assert again(flower) == 0  # nothing is left to do
    assert flower.asked.count("run") == 1
    poor = Weakness(code=WeaknessCode.NO_CLEAR_GAIN, what="inaccurate", do="Write more")
    report = json.dumps({"weaknesses": [poor.to_json()]})
    (flower.folder / "runs" / "first" / "report.json").write_text(report)
    assert status(flower, capsys)["weaknesses"] == [str(poor)]
    assert again(flower, "follow") == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert (first, others.count(f"poor:     {poor}")) == ("round 1 of 1", 1)


def test_status_says_who_is_online_and_since_when(flower, capsys):
    flower.online = {"8"}
    assert main(["status", str(flower.folder)]) == 0
    mary, luke = capsys.readouterr().out.splitlines()[1:]
    assert mary.startswith('"St. Mary" is offline since 2026-01-02 11:00:00Z')
    assert luke.startswith('"St. Luke" is online since 2026-01-02 10:00:00Z')
    assert main(["status", str(flower.folder), "--json"]) == 0
    party = {"number": 0, "name": "St. Mary", "node": "offline", "since": "2026-01-02 11:00:00Z", "version": None}
    assert json.loads(capsys.readouterr().out)["parties"][0] == party


def test_status_says_the_version_that_each_hospital_told_last(flower, capsys):
    for number, (day, caucus) in enumerate([("03", "0.3.0"), ("04", "0.4.0"), ("02", "0.2.0")]):
        told = {
            "St. Mary": HospitalVersion(caucus=caucus, at=f"2026-01-{day}"),
            "St. Luke": HospitalVersion(caucus="", at=f"2026-01-{day}"),
        }
        (folder := flower.folder / "runs" / str(number)).mkdir()
        HospitalVersions(versions=told).save(folder)
    (folder / HospitalVersions.FILE).write_text("{")
    assert main(["status", str(flower.folder)]) == 0
    mary, luke = capsys.readouterr().out.splitlines()[1:3]
    assert mary.endswith("; caucus 0.4.0 at 2026-01-04")
    assert luke.endswith("; version unknown at 2026-01-04")
    assert main(["status", str(flower.folder), "--json"]) == 0
    party, _ = json.loads(capsys.readouterr().out)["parties"]
    assert party["version"] == {"caucus": "0.4.0", "at": "2026-01-04"}


def test_a_run_that_fails_says_why_once_and_how_to_go_on(flower, capsys):
    flower.leaves = {"error.txt": "St. Mary: DECLINED", "run.log": "round 1\n10:00 ERROR caucus: St. Mary: DECLINED\n"}
    assert start(flower) == 1
    out, error = capsys.readouterr()
    assert ("round 1" in out, out.count("DECLINED"), error.count("DECLINED")) == (True, 0, 1)
    assert "DECLINED" in read(flower, "run.log")
    assert flower.command("resume") in error
    run = status(flower, capsys)
    assert (run["status"], run["reason"]) == ("failed", "St. Mary: DECLINED")
    flower.leaves = DONE
    assert again(flower) == 0
    assert not (flower.folder / "runs" / "first" / "error.txt").exists()


def test_a_run_that_a_hospital_rejects_is_not_to_be_resumed(flower, capsys):
    flower.leaves = {"rejected.txt": "", "error.txt": "too few parties"}
    assert start(flower) == 1
    assert "resume" not in capsys.readouterr().err
    flower.leaves = {"error.txt": "too few parties"}
    assert again(flower) == 1
    assert "resume" in capsys.readouterr().err


def test_a_run_that_awaits_approval_names_who_and_what_comes_next(flower, capsys):
    flower.leaves = {"awaiting.txt": "St. Mary\nSt. Luke"}
    assert start(flower) == 1
    error = capsys.readouterr().err
    for fact in ("St. Mary and St. Luke", "caucus-party approve", flower.command("resume")):
        assert fact in error
    run = status(flower, capsys)
    assert (run["status"], run["hospitals"]) == ("awaiting approval", ["St. Mary", "St. Luke"])
    flower.leaves = DONE
    assert again(flower) == 0


@pytest.mark.parametrize(
    ("serve", "cause"),
    [
        (SERVE, "lack of memory"),
        (None, "serve was stopped"),
        ({"children": {"superlink": {"process": 5}, "executor": {"process": 9}}}, "started again"),
    ],
)
def test_a_run_whose_process_was_killed_says_the_cause_where_it_points(serve, cause, flower, capsys, monkeypatch):
    flower.leaves = {"lock": "4711", "run.log": "at work\n"}  # and no process has the lock
    monkeypatch.setattr(run_state, "command", lambda *_: setattr(flower, "serve", serve) or "COMMAND")
    assert start(flower) == 1
    error = capsys.readouterr().err
    assert f"{run_state.DIED}: " in error
    assert cause in error
    log = flower.folder / "runs" / "first" / "run.log"
    assert f"at {log}. COMMAND" in error
    assert cause in log.read_text().splitlines()[-1]
    assert cause in read(flower, "error.txt")
    assert cause in status(flower, capsys)["reason"]
    assert "list" not in flower.asked  # its process shows it


@pytest.mark.parametrize(("leaves", "said"), [({}, "No heartbeat"), ({"lock": "4711"}, run_state.DIED)])
def test_a_run_whose_process_did_not_begin_or_died_names_a_full_disk_as_a_cause(
    leaves, said, flower, capsys, monkeypatch
):
    flower.leaves = leaves
    for full in (False, True):
        room = shutil.disk_usage(flower.folder)._replace(free=0 if full else 2**30)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, room=room: room)
        assert (again(flower) if full else start(flower)) == 1
        error = capsys.readouterr().err
        assert said in error
        assert ("full disk" in error) is full


def test_what_still_runs_is_not_resumed_and_what_was_killed_is(flower, monkeypatch, capsys):
    flower.leaves = {"lock": "4711"}
    flower.says = "running"  # as Flower says for a while of a killed one, too
    assert start(flower) == 1
    monkeypatch.setattr(runs, "ENDING_SECONDS", 0.1)
    lock = lock_folder(flower.folder / "runs" / "first")
    (flower.folder / "runs" / "first" / "error.txt").unlink()
    run = status(flower, capsys)
    assert (run["status"], run["rounds"]) == ("running", 0)
    assert again(flower) == 1
    assert flower.command("follow") in capsys.readouterr().err
    lock.close()
    flower.leaves = DONE
    assert again(flower) == 0
    assert flower.asked.count("stop") == 1


def test_ctrl_c_leaves_the_run_at_work_and_says_so(flower, capsys, monkeypatch):
    flower.leaves = {}

    def pressed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", pressed)
    flower.says = "running"
    assert start(flower) == 130
    error = capsys.readouterr().err
    for verb in ("follow", "cancel"):
        assert f"caucus-coordinator {verb} {flower.folder} first" in error
    assert "stop" not in flower.asked


def test_a_cancelled_run_is_stopped_marked_and_can_be_resumed(flower, capsys):
    flower.leaves = {"error.txt": "interrupted"}
    flower.says = "running"
    assert start(flower) == 1
    capsys.readouterr()
    assert again(flower, "cancel") == 0
    output = capsys.readouterr().out
    assert flower.command("resume") in output
    assert "keep their answers" in output
    assert "stop" in flower.asked
    run = status(flower, capsys)
    assert (run["status"], run["reason"][:2]) == ("cancelled", "20")
    flower.leaves = DONE
    assert again(flower) == 0
    assert status(flower, capsys)["status"] == "complete"
    assert again(flower, "cancel") == refused(capsys, "run")


def test_a_run_that_stops_with_the_coordinator_says_so_and_when(flower, capsys, monkeypatch):
    folder = under_way(flower)
    lock = lock_folder(folder)
    monkeypatch.setattr(processes, "stop", lambda *_: run_state.mark_stopped(flower.folder / "runs") or True)
    assert main(["stop", str(flower.folder)]) == 0
    running, stopped = capsys.readouterr().out.splitlines()
    assert ("run first" in running, "resume" in running, stopped) == (True, True, "stopped")
    assert status(flower, capsys)["status"] == "running"  # its process has not ended yet
    (folder / "error.txt").write_text("Flower ended the run")
    assert status(flower, capsys)["status"] == "stopped"
    (folder / "error.txt").unlink()
    lock.close()
    run = status(flower, capsys)
    assert (run["status"], run["reason"][:2]) == ("stopped", "20")
    assert again(flower, "follow") == 1
    assert "resume" in capsys.readouterr().err
    assert again(flower) == 0
    assert status(flower, capsys)["status"] == "complete"


def test_a_coordinator_that_does_not_run_is_said_with_hospitals_and_runs_from_its_folder(flower, capsys):
    under_way(flower, "earlier")
    flower.serve = None
    assert main(["status", str(flower.folder)]) == 0
    first, _, *lines = capsys.readouterr().out.splitlines()
    assert f"caucus-coordinator serve {flower.folder}" in first
    assert [line.partition(";")[0] for line in lines[:2]] == ['"St. Mary"', '"St. Luke"']
    assert lines[2].startswith("run earlier: ")
    assert main(["status", str(flower.folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["served"], [party["node"] for party in facts["parties"]]) == (False, ["unknown", "unknown"])
    assert not flower.asked
    assert start(flower) == 1
    assert "caucus-coordinator serve " in capsys.readouterr().err


def test_a_run_that_flower_does_not_stop_is_not_called_cancelled(flower, capsys):
    flower.leaves = {"error.txt": "interrupted"}
    start(flower)
    flower.says = "running"
    folder = flower.folder / "runs" / "first"
    lock = lock_folder(folder)
    assert again(flower, "cancel") == 1
    assert "run;" in capsys.readouterr().err
    assert not (folder / "cancelled.txt").exists()
    lock.close()


@pytest.mark.parametrize("name", ["text_of", "is_at_work"])
def test_a_process_that_begins_between_two_looks_at_its_folder_has_not_died(name, flower, monkeypatch):
    folder = under_way(flower)
    (folder / "lock").write_bytes(b"")
    looked, locks = getattr(run_state, name), []

    def looked_at(path):
        seen = looked(path)
        if path in {folder, folder / "lock"} and not locks:
            locks.append(lock_folder(folder))
            (folder / "lock").write_text("18")
        return seen

    monkeypatch.setattr(run_state, name, looked_at)
    assert run_state.progress(folder).status is not run_state.RunStatus.FAILED
    assert run_state.progress(folder).status is run_state.RunStatus.RUNNING
    locks[0].close()
    assert run_state.progress(folder).reason == run_state.DIED


@pytest.mark.parametrize(("verb", "asks"), [("resume", "run"), ("cancel", "stop")])
def test_one_command_at_a_time_starts_resumes_or_cancels_a_run(verb, asks, flower, monkeypatch, capsys):
    flower.leaves, flower.says = {"error.txt": "interrupted"}, "running"
    start(flower)
    kept_out = {}

    def asked(folder, *arguments):
        run = os.open(flower.folder / "runs" / "first", os.O_RDONLY)
        try:
            fcntl.flock(run, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            kept_out[arguments[0]] = True
        os.close(run)
        return flower(folder, *arguments)

    for module in (run_state, runs):
        monkeypatch.setattr(module, "flwr", asked)
    again(flower, verb)
    capsys.readouterr()
    assert kept_out[asks]


def test_a_run_that_steer_makes_is_left_to_it(flower, capsys):
    folder = flower.folder / "runs" / "first"
    store(
        compose_settings(
            ["method=class_sums", "method.census=census.json", "federation.expected_records=100"], "server"
        ),
        folder,
    )
    for verb in ("resume", "cancel"):
        assert again(flower, verb) == 2
        assert "caucus-coordinator steer" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]
    assert flower.asked == []


def test_a_run_that_is_no_run(flower, capsys):
    for verb in ("resume", "follow", "cancel"):
        assert again(flower, verb) == refused(capsys, "run")
    assert start(flower, name="second") == 0
    assert again(flower, "cancel") == refused(capsys, "run")


def test_a_name_that_is_taken_offers_what_there_is_to_do(flower, capsys):
    flower.leaves = {"error.txt": "why"}
    assert start(flower) == 1
    for resume in (True, False):
        capsys.readouterr()
        assert start(flower) == 2
        error = capsys.readouterr().err
        assert "name of the run;" in error
        assert (flower.command("resume") in error) is resume
        flower.leaves = DONE
        assert again(flower) == 0


def test_offline_hospitals_are_named_before_anything_begins(flower, capsys):
    flower.online = {"7"}
    assert start(flower) == refused(capsys, "hospitals online", code=1)
    assert not list((flower.folder / "runs").iterdir())
    assert start(flower, "--wait") == 0
    assert start(flower, "federation.max_dropouts=1", name="second") == 0
    waits, goes_on = (line for line in capsys.readouterr().out.splitlines() if "federation.timeout=600" in line)
    assert waits.startswith('"St. Luke" is offline since 2026-01-02 11:00:00Z')
    assert goes_on == f"{waits} and goes on without them"


@pytest.mark.parametrize("fails", ["run", "supernode list"])
def test_where_flower_fails_no_folder_is_left(fails, flower, capsys):
    flower.fails = {fails}
    assert start(flower) == 1
    assert f"at {fails}" in capsys.readouterr().err
    assert not list((flower.folder / "runs").iterdir())


def test_relative_paths_are_those_of_the_operator(flower, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public.txt").write_text("A public text.\nAnother public text.\n")
    (tmp_path / "test.csv").write_text("text,label\na,flu\nb,cold\n")
    (tmp_path / "model").mkdir()
    paths = {"task": {"public_text": "public.txt", "test": "test.csv"}, "evaluation": {"checkpoint": "model"}}
    given = [f"{group}.{name}={path}" for group, named in paths.items() for name, path in named.items()]
    assert start(flower, "task=csv", "task.labels={flu: influenza, cold: a common cold}", *given) == 0
    config = yaml.safe_load(read(flower, "config.yaml"))
    for group, named in paths.items():
        assert {name: config[group][name] for name in named} == {
            name: str(tmp_path / path) for name, path in named.items()
        }


def test_a_run_keeps_the_number_that_was_chosen_for_auto(flower):
    assert start(flower, "method.rounds=auto") == 0
    assert yaml.safe_load(read(flower, "config.yaml"))["method"]["rounds"] == 5


NAMES = ["../x", "n" * 101, "a\nb", "taken"]
WRONG = [
    *("no.such=1", "method=none", "+privacy.epsilom=1", "federation.timeout=null", "federation.parties=5"),
    *("task.train=notes.csv task=csv", "method.rounds=2.5", "llm.models=3", "task.public_text=absent.txt task=csv"),
]
EARLY = [([name], "name of the run") for name in NAMES]
EARLY += [(["first", *words.split()], words.partition("=")[0].lstrip("+")) for words in WRONG]

ALONE = """
import contextlib, io, json, os, sys
from server.command import main
folder, cases = sys.argv[1], json.loads(sys.argv[2])
for words in cases:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(["run", folder, *words])
    heavy = sorted({"torch", "sklearn", "transformers", "flwr", "server.app"} & set(sys.modules))
    print(json.dumps([code, said.getvalue(), heavy, os.listdir(folder + "/runs")]))
"""


def test_what_is_wrong_is_said_before_anything_heavy_is_imported_or_left(flower):
    (flower.folder / "runs" / "taken").mkdir()
    cases = json.dumps([words for words, _ in EARLY])
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", ALONE, str(flower.folder), cases]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    for (words, what), line in zip(EARLY, said, strict=True):
        code, error, heavy, left = json.loads(line)
        assert error.startswith(f"caucus-coordinator: {what};"), words
        assert error.count("\n") == 1
        assert (code, heavy, left) == (2, [], ["taken"]), words


def test_nobody_enrolled_is_said_first(flower, capsys):
    for name in ("St. Mary", "St. Luke"):
        assert main(["remove", "--yes", str(flower.folder), name]) == 0
    assert start(flower) == refused(capsys, "hospitals")


@pytest.mark.parametrize("name", ["é" * 100, 'the "first" year\'s'])
def test_a_longest_name_in_any_script_and_one_with_spaces_and_quotes_reach_flower_whole(name, flower):
    assert start(flower, name=name) == 0
    config = yaml.safe_load((flower.folder / "runs" / name / "config.yaml").read_text())
    assert len(config["run"]) == len(name) + 9
    configuration = Path(flower.given[flower.given.index("--run-config") + 1])
    assert tomllib.loads(configuration.read_text()) == {"run-folder": str(flower.folder / "runs" / name)}
    assert CoordinatorSettings.load(flower.folder).folder == flower.folder


def test_which_records_take_part_is_said():
    assert "flu, cold" in runs.taking_part(("flu", "cold"))
    assert "one population" in runs.taking_part((UNLABELLED,))


@pytest.mark.parametrize(
    ("overrides", "asks"),
    [
        (["method=wasp"], True),
        (["method=wasp", "federation.expected_records=360"], True),
        (["method=wasp", "federation.expected_records=1900", "privacy.epsilon=40"], False),
        (["method=class_sums"], False),
    ],
)
def test_votes_that_are_likely_to_be_noise_are_asked_for_only_by_a_yes(overrides, asks, flower, capsys, monkeypatch):
    words = ["run", str(flower.folder), "first", "secagg=none", *overrides]
    assert main(words) == (2 if asks else 0)
    out, err = capsys.readouterr()
    assert "ε = " in out
    assert ("federation.expected_records" in out) == (len(overrides) == 1)
    assert (flower.folder / "runs" / "first").exists() is not asks
    if not asks:
        return
    assert "nearest and furthest votes" in err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert main(words) == 1
    assert "method=class_sums" in capsys.readouterr().err
    assert "run" not in flower.asked
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert main(words) == 0
