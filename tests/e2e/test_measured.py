"""Figures of a whole run: after it, later by a test file, and of one that never ended."""

import json
import shutil

import pytest

from common.system.commands import command_to_copy
from server.command import main
from server.report.ending import ending
from server.report.weaknesses import read_weaknesses
from server.report.write import write_report
from tests.support.runs import read, tiny

FAST = "evaluation.language_model={epochs: 1, width: 16, layers: 1, vocabulary: 300, length: 24}"
ALL = "evaluation.metrics=[utility,language,fidelity,diversity,privacy,fidelity_private,membership]"
WRITTEN = ("metrics.json", "report.html", "report.json", "release.md")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "run"
    sizes = ("method.samples=60", "evaluation.shadows=1", "task.test_records=48")
    return tiny(folder, ALL, FAST, "evaluation.federated=0.1", *sizes)


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


def evaluate(capsys, *arguments):
    code = main(["evaluate", "--json", *map(str, arguments)])
    out, error = capsys.readouterr()
    return code, json.loads(out) if code == 0 else error


def test_a_run_measures_what_was_chosen_and_marks_what_looked_at_records(run):
    metrics = read(run, "metrics.json")
    marked = {name for name, group in metrics.items() if isinstance(group, dict) and group.get("simulation_only")}
    assert marked == {
        "real_private",
        "label_shares",
        "utility_real",
        "language_real",
        "fidelity_real",
        "fidelity_private",
        "membership",
    }
    assert metrics["membership"]["PPL"]["rows"] == 48 + 24
    assert 0 <= metrics["membership"]["LIRA"]["value"] <= 1
    assert metrics["utility"]["accuracy"]["value"] == metrics["synthetic"]["accuracy"]
    page = (run / "report.html").read_text("utf-8")
    assert "MAUVE" in page or "mauve" in page


def test_the_shares_of_the_records_labels_are_a_simulations_and_so_is_what_they_say(run, copy):
    counted = read(run, "metrics.json")["label_shares"]["records"]
    assert sum(counted.values()) == pytest.approx(1)
    metrics = read(copy, "metrics.json")
    metrics["label_shares"]["records"] = {next(iter(counted)): 1.0}
    (copy / "metrics.json").write_text(json.dumps(metrics))
    write_report(copy)
    (weakness,) = [one for one in read_weaknesses(copy) if one.what.startswith("labels of texts and records")]
    assert weakness.simulation_only


def test_the_parties_were_asked_once_more_within_the_same_epsilon(run):
    privacy, counted = read(run, "privacy.json"), read(run, "metrics.json")["federated"]
    assert [query["name"] for query in privacy["queries"]][-1] == "evaluation"
    assert privacy["spent"]["queries_asked"] == privacy["spent"]["queries_planned"] == 3
    assert privacy["planned_epsilon"] <= 4
    *_, last = [json.loads(line) for line in (run / "rounds.jsonl").read_text("utf-8").splitlines()]
    assert last["queries"][-1]["name"] == "evaluation"  # and so is in the ledger of the page
    assert last["epsilon"] == privacy["spent"]["epsilon"]
    sigma = counted["records"]["noise"]
    assert abs(counted["records"]["value"] - 48) < 8 * sigma
    assert sigma == pytest.approx(2**0.5 * privacy["queries"][-1]["scale"])


def test_later_by_a_test_file(copy, tmp_path, capsys):
    before = read(copy, "metrics.json")
    assert before["zero_shot"]["difference"]["interval"]
    file = tmp_path / "own.csv"
    file.write_text("text,label\n" + "fever and green sputum,pneumonia\nswollen ankles,heart failure\nodd,other\n" * 4)
    for name in WRITTEN:
        (copy / name).chmod(0o644)
    code, made = evaluate(capsys, copy, "--test", file, "--metrics", "utility", "diversity", "membership")
    assert [name for name in WRITTEN if (copy / name).stat().st_mode & 0o077] == []
    assert code == 0
    assert made | {"format": 1} == read(copy, "metrics.json")
    assert (made["test"], made["test_records"]) == ("own.csv", 12)
    assert "4 of 12" in made["utility"]["note"]
    assert made["utility"]["test"] == made["zero_shot"]["test"] == "own.csv"
    assert made["zero_shot"]["difference"]["rows"] == 12
    assert made["membership"] == before["membership"]  # a simulation's; nothing here could have made it
    assert made["fidelity"] == before["fidelity"]
    for name in ("real_private", "utility_real", "language_real"):
        assert made[name] is None  # it was of other test texts
    code, made = evaluate(capsys, copy, "--test", file)
    assert made["fidelity"]["test"] == "own.csv"
    assert main(["evaluate", str(copy), "--test", str(file), "--metrics", "utility"]) == 0
    lines = ending(copy, lambda _: command_to_copy("caucus-coordinator", "publish", str(copy), "--license", "LICENCE"))
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in lines)


def test_of_a_run_that_died_what_there_is(copy, tmp_path, capsys):
    for name in ("metrics.json", "report.html"):
        (copy / name).unlink()
    status = read(copy, "run.json") | {"status": "partial"}
    (copy / "run.json").write_text(json.dumps(status))
    file = tmp_path / "own.csv"
    file.write_text("text,label\nfever and green sputum,pneumonia\n")
    code, made = evaluate(capsys, copy, "--test", file, "--metrics", "utility", "fidelity", "membership")
    assert code == 0
    assert "is partial" in made["note"]
    assert made["utility"]["accuracy"]["rows"] == 1
    assert "2 texts" in made["fidelity"]["fid"]["reason"]
    assert "private records" in made["membership"]["reason"]
    assert (copy / "report.html").exists()


def test_no_run_no_texts_no_test_file(copy, tmp_path, capsys):
    code, error = evaluate(capsys, tmp_path / "nothing", "--test", tmp_path / "own.csv")
    assert (code, "run folder" in error) == (2, True)
    code, error = evaluate(capsys, copy, "--test", tmp_path / "absent.csv")
    assert code == 2
    assert "absent.csv" in error
    (tmp_path / "own.csv").write_text("text,label\na,b\n")
    code, error = evaluate(capsys, copy, "--test", tmp_path / "own.csv", "--metrics", "beauty")
    assert (code, "evaluation.metrics" in error) == (2, True)
    code, error = evaluate(capsys, copy, "--test", tmp_path / "own.csv")
    assert code == 2
    assert "--test: labels; expected texts with labels of the run: " in error
    (tmp_path / "own.csv").write_text("text,label\na,pneumonia\n")
    (copy / "synthetic.jsonl").write_text("")
    code, error = evaluate(capsys, copy, "--test", tmp_path / "own.csv")
    assert (code, "none yet" in error) == (2, True)
