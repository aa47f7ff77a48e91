"""Further texts from a finished run's class sums: nobody is asked, and the statement is that of the run that asked."""

import json
import shutil

import pytest

from common.errors import ConfigError, InternalError
from common.ledger.ledger import Ledger
from server import run as loop
from server.command import main
from server.deploy import steer
from server.operators import class_sums_file
from server.prepare.calls import AGREED
from server.prepare.components import build_components
from server.prepare.compose import compose_settings, load_settings, store
from server.report.ending import ending
from server.settings.sections import with_values
from server.tasks import demo_notes
from tests.support.runs import labelled, lines, read, settings, tiny

RUN = ("method=class_sums", "method.rounds=2", "method.samples=40", "method.directions=4", "method.shots=2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class_sums")
    task = labelled(folder / "data", public=demo_notes.public_text(60, 0))  # of other words, further texts would repeat
    return tiny(folder / "first", *task, *RUN, "federation.parties=2", "evaluation.federated=0.2")


def said(capsys, *arguments, code=2):
    assert main(["steer", *map(str, arguments)]) == code
    out, error = capsys.readouterr()
    if code:
        assert error.splitlines()[-1].startswith("caucus-coordinator: ")
    return error.splitlines()[-1] if code else out


def test_other_models_write_further_texts_and_nobody_is_asked(finished, tmp_path, capsys):
    folder = tmp_path / "more"
    out = said(capsys, finished, "llm.use=[noisy]", "method.samples=24", "--out", folder, code=0)
    origin = read(finished, "run.json")["run"]
    assert f"run {origin}, epsilon 4" in out
    assert out.splitlines()[2:] == list(ending(folder))  # as of a simulation
    rows = lines(folder, "synthetic.jsonl")
    assert (len(rows), {row["model"] for row in rows}) == (24, {"noisy"})
    privacy = read(folder, "privacy.json")
    assert (privacy["epsilon"], privacy["delta"], privacy["earlier"]["run"]) == (4.0, 1e-5, origin)
    assert privacy["spent"]["queries_asked"] == 0
    assert not Ledger(folder / "state" / "ledger.db").entries(read(folder, "run.json")["run"])
    assert not (folder / "parties").exists()
    assert read(folder, "run.json")["status"] == "complete"
    # The texts are further ones, of which a few short ones may be written twice by chance.
    assert len({row["text"] for row in rows} & {row["text"] for row in lines(finished, "synthetic.jsonl")}) < 6
    # The settings are those of the finished run.
    config, before = load_settings(folder), load_settings(finished)
    assert (config.method.directions, config.task, config.evaluation.federated) == (4, before.task, 0.0)


def test_a_folder_beside_the_run_is_named_by_it_and_a_steered_run_can_be_steered(finished, capsys):
    small = ("method.samples=8", "method.rounds=1", "llm.use=[narrow]")
    for name, run in (
        ("first-steered", "first"),
        ("first-steered-2", "first"),
        ("first-steered-steered", "first-steered"),
    ):
        said(capsys, finished.parent / run, *small, code=0)
        assert len(lines(finished.parent / name, "synthetic.jsonl")) == 8
        assert read(finished.parent / name, "privacy.json")["earlier"]["run"] == read(finished, "run.json")["run"]


def test_a_group_of_settings_is_chosen_as_a_whole(finished, tmp_path):
    config = steer.reusing(finished, ["llm=smollm2", "method.words=30", "llm.use=[smollm2]"], tmp_path / "new")
    assert (list(config.llm.use), config.method.words, config.method.samples) == (["smollm2"], 30, 40)
    assert "broad" not in config.llm.models
    assert config.experiment_seed != load_settings(finished).experiment_seed
    assert steer.reusing(finished, ["experiment_seed=7"], tmp_path / "new").experiment_seed == 7


@pytest.mark.parametrize(
    ("more", "most"), [([], 2000), (["llm.confirm_calls=9"], 9), (["llm.confirm_calls=null"], None)]
)
def test_whoever_agreed_to_the_calls_of_the_finished_run_did_not_to_further_ones(more, most, finished, tmp_path):
    run = tmp_path / "run"
    store(with_values(load_settings(finished), AGREED), run)
    (run / "census.json").write_bytes((finished / "census.json").read_bytes())
    assert steer.reusing(run, more, tmp_path / "new").llm.confirm_calls == most


def test_yes_agrees_to_the_calls_of_a_steered_run(finished, tmp_path, monkeypatch):
    stored = []
    monkeypatch.setattr(steer, "store", lambda settings, _: stored.append(settings.llm.confirm_calls) or 1 / 0)
    for options in ([], ["--yes"]):
        with pytest.raises(ZeroDivisionError):
            main(["steer", str(finished), *options, "--out", str(tmp_path / f"new{len(options)}")])
    assert stored == [2000, None]


@pytest.mark.parametrize(
    "override",
    [
        "privacy.epsilon=8",
        "federation.parties=9",
        "secagg=none",
        "embedding=minilm",
        "method=wasp",
        "method.census=x",
        "method.directions=8",
        "method.count=1",
        "evaluation.federated=0.2",
    ],
)
def test_what_was_asked_cannot_change_any_more(finished, tmp_path, override, capsys):
    assert f"got {override}" in said(capsys, finished, override, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_single_settings_of_groups_that_the_finished_run_chose_can_change(finished, tmp_path, monkeypatch):
    run, new = tmp_path / "run", tmp_path / "new"
    store(compose_settings(["method=class_sums", "task=csv", "llm=smollm2", "method.words=9"], "server"), run)
    (run / "census.json").write_bytes((finished / "census.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    changes = ["task.public_text=more.csv", "llm.models.smollm2.top_p=0.5", "method.words=null"]
    config = steer.reusing(run, [*changes, "task.labels={flu: influenza, cold: a cold}"], new)
    assert config.task.public_text == str(tmp_path / "more.csv")
    assert config.llm.models["smollm2"].settings["top_p"] == 0.5
    assert (config.method.words, config.task.labels) == (None, {"flu": "influenza", "cold": "a cold"})
    with pytest.raises(ConfigError, match=r"^task\.public_txet;"):
        steer.reusing(run, ["task.public_txet=more.csv"], new)


@pytest.mark.parametrize(
    "override", ["method.smaples=8", "method.samples=many", "method.samples=8,9", "+llm.max_csot=5", "~task"]
)
def test_a_setting_that_is_wrong_leaves_no_folder(finished, tmp_path, override, capsys):
    said(capsys, finished, override, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_without_class_sums_or_one_that_is_in_use_is_refused(finished, tmp_path, capsys):
    assert "run folder;" in said(capsys, tmp_path)
    (tmp_path / "config.yaml").write_text("method: {}")
    assert "run folder;" in said(capsys, tmp_path)
    assert "folder; expected" in said(capsys, finished, "--out", finished)


def test_damaged_class_sums_are_named_before_there_is_a_folder(finished, tmp_path, capsys):
    run = tmp_path / "run"
    config = load_settings(finished)
    store(config, run)
    (run / "census.json").write_text(json.dumps(read(finished, "census.json") | {"sums": [[1.0] * 4]}))
    assert f"got (1, 4); at {run / 'census.json'}" in said(capsys, run)
    assert not (tmp_path / "run-steered").exists()


def test_an_interrupted_one_goes_on(finished, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "more"
    monkeypatch.setattr(loop, "track", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["steer", str(finished), "method.samples=24", "experiment_seed=3", "--out", str(folder)])
    monkeypatch.undo()
    assert (read(folder, "run.json")["status"], len(lines(folder, "rounds.jsonl"))) == ("partial", 1)
    said(capsys, folder, "--resume", code=0)
    assert read(folder, "run.json")["status"] == "complete"
    said(capsys, finished, "method.samples=24", "experiment_seed=3", "--out", tmp_path / "whole", code=0)
    assert lines(folder, "synthetic.jsonl") == lines(tmp_path / "whole", "synthetic.jsonl")
    assert "takes no further settings" in said(capsys, folder, "method.samples=9", "--resume")
    assert "steer did not begin" in said(capsys, finished, "--resume")


def test_a_run_that_asks_nobody_has_no_network():
    for call in (lambda: steer.Nobody().join(None, 3), lambda: steer.Nobody().exchange({})):
        with pytest.raises(InternalError, match="nothing"):
            call()


CONTRADICTIONS = {
    "epsilon": (
        lambda c: c["privacy"].update(epsilon=0.5),
        "privacy.epsilon 4.0, as privacy.json next to it says; got 0.5",
    ),
    "delta": (
        lambda c: c["privacy"].update(delta=1e-9),
        "privacy.delta 1e-05, as privacy.json next to it says; got 1e-09",
    ),
    "plan": (lambda c: c.update(plan_digest="ab" * 32), f'as privacy.json next to it says; got "{"ab" * 32}"'),
    "unit": (lambda c: c["privacy"]["adjacency"].update(unit="user"), "privacy.adjacency "),
    "left out": (lambda c: c["privacy"].pop("party_epsilon"), "expected privacy.party_epsilon: an entry; got none"),
    "run": (lambda c: c.update(run="another"), "charges of run another and plan "),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
@pytest.mark.parametrize("named", [False, True])
def test_class_sums_that_their_run_contradicts_are_refused_with_both_figures(what, named, finished, tmp_path, capsys):
    edit, line = CONTRADICTIONS[what]
    run, released = shutil.copytree(finished, tmp_path / "run"), read(finished, "census.json")
    edit(released)
    (run / "census.json").write_text(json.dumps(released))
    if named:  # as method.census of any run, in a simulation too
        config = settings(*RUN, "federation.parties=2", f"method.census={run / 'census.json'}")
        with pytest.raises(ConfigError) as refused:
            build_components(config)
        error = str(refused.value)
    else:
        error = said(capsys, run)
    assert line in error
    assert f"at {run / 'census.json'}" in error
    assert not (tmp_path / "run-steered").exists()
    if what not in {"left out", "unit"}:  # sent alone it says what it says
        (run / "privacy.json").unlink()
        assert class_sums_file.read_noisy_sums(run / "census.json")[1].run == released["run"]


def test_a_guarantee_that_both_files_state_and_the_ledger_contradicts_is_refused(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")

    def both(**figures):
        for name in ("census.json", "privacy.json"):
            facts = read(finished, name)
            facts.get("privacy", facts).update(figures)
            (run / name).write_text(json.dumps(facts))
        return said(capsys, run)

    assert "privacy.delta: " in both(delta="x")
    assert "privacy.delta: a probability; got 2.0" in both(delta=2.0)
    assert "at least 4, as charged in state/ledger.db next to it; got 2; " in both(epsilon=2.0)
    (run / "state" / "ledger.db").write_bytes(b"no ledger")
    assert "ledger" in said(capsys, run, code=1)
    (run / "state" / "ledger.db").unlink()
    assert class_sums_file.read_noisy_sums(run / "census.json")[1].epsilon == 2.0
    (run / "privacy.json").write_text("[")
    assert "JSON" in said(capsys, run)
