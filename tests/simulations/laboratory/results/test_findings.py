import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ConfigError, DataError
from server.failure import lock_folder
from simulations.laboratory.results import __main__ as command
from simulations.laboratory.results import cells, claims, execution, findings, page, runs

SETTINGS = {
    "name": "votes",
    "paper": "A paper",
    "claim": "Votes help.",
    "where": "Table 1",
    "published": "+1 | point",
    "rows": {"votes": ("method=wasp",), "none": ("method=fusegen",)},
    "compare": ("votes", "none"),
    "seeds": 3,
}
PRESET = cells.Preset(name="full", model="A model", base=(), of_data={"banking10": ()})


def claim(**changes):
    return claims.Claim(**SETTINGS | changes)


def results(made, values):
    """A result for each row, epsilon and seed."""
    return {
        (key := PRESET.key(cell)): runs.RunMeasurements(
            key=key, data=cell.data, seed=cell.seed, figures={"utility_encoder.accuracy": value}
        )
        for place, cell_list in PRESET.cells(made).items()
        for cell, value in zip(cell_list, values.get(place[1] if place[0] == "votes" else "none", ()), strict=False)
    }


def measured(*found, model="A model"):
    """What was measured with a model: these findings."""
    return page.Measured(preset="full", model=model, findings=found, lines=[], planned=9, measured=8, core_hours=0.1)


HIGH, SAME, LOW, NONE = (0.8, 0.9, 0.85), (0.5, 0.41, 0.46), (0.2, 0.11, 0.16), (0.5, 0.4, 0.45)


@pytest.mark.parametrize(
    ("private", "without", "expects", "verdict"),
    [
        (HIGH, HIGH, "higher", "holds"),
        (SAME, HIGH, "higher", "holds without privacy only"),
        (SAME, SAME, "higher", "does not show"),
        (LOW, SAME, "higher", "refuted"),
        (LOW, LOW, "lower", "holds"),
        (HIGH, SAME, "lower", "refuted"),
        (SAME, SAME, "within", "holds"),
        (HIGH, HIGH, "within", "refuted"),
        (LOW, LOW, "within", "refuted"),
        ((), (), "higher", "not all run"),
        ((0.9,), (0.9,), "higher", "not all run"),
        (HIGH, HIGH[:2], "higher", "not all run"),
    ],
)
def test_verdicts(private, without, expects, verdict):
    made = claim(expects=expects, margin=0.05 if expects == "within" else 0)
    finding = findings.finding(PRESET, made, results(made, {4.0: private, math.inf: without, "none": NONE}))
    assert finding.verdict == verdict


def test_a_claim_about_no_privacy_alone_holds_or_not():
    for values, verdict in ((HIGH, "holds"), (SAME, "does not show"), (LOW, "refuted"), ((), "not all run")):
        made = claim(epsilons=(math.inf,))
        finding = findings.finding(PRESET, made, results(made, {math.inf: values, "none": NONE}))
        assert (finding.verdict, finding.from_epsilon) == (verdict, None)


def test_a_claim_may_hold_from_some_epsilon():
    made = claim(epsilons=(1.0, 4.0, math.inf))
    finding = findings.finding(PRESET, made, results(made, {1.0: SAME, 4.0: HIGH, math.inf: HIGH, "none": NONE}))
    assert (finding.verdict, finding.from_epsilon) == ("holds", 4.0)
    assert "from ε = 4" in page.render_paper([measured(finding)], "A paper")


def test_a_model_that_was_run_on_none_of_a_paper_s_claims_has_no_column_unless_none_was():
    made = claim()
    missing = findings.finding(PRESET, made, {})
    done = findings.finding(PRESET, made, results(made, {4.0: HIGH, math.inf: HIGH, "none": NONE}))
    for models, heads in (((done, missing), "| One |"), ((missing, missing), "| One | Two |")):
        shown = [measured(finding, model=name) for finding, name in zip(models, ("One", "Two"), strict=True)]
        assert f"| claim | where {heads}\n" in page.render_paper(shown, "A paper")


def test_a_difference_is_between_runs_of_the_same_seed_and_its_interval_is_students():
    made = claim()
    finding = findings.finding(PRESET, made, results(made, {4.0: HIGH, math.inf: SAME, "none": NONE}))
    difference, _ = finding.differences
    assert difference.pairs == 3
    assert difference.mean == pytest.approx(0.4)
    # t(0.975, 2) = 4.3027; the differences are .3, .5 and .4
    assert difference.interval == pytest.approx((0.4 - 4.302653 * 0.1 / 3**0.5, 0.4 + 4.302653 * 0.1 / 3**0.5))
    assert [(figure.row, figure.epsilon, figure.planned) for figure in finding.figures] == [
        ("votes", 4.0, 3),
        ("votes", math.inf, 3),
        ("none", 4.0, 3),
        ("none", math.inf, 3),
    ]


def test_pages_have_each_models_verdict_and_differences_side_by_side(tmp_path):
    made = claim(where="a | b")
    finding = findings.finding(PRESET, made, results(made, {4.0: HIGH, math.inf: LOW, "none": NONE}))
    other = findings.finding(PRESET, made, results(made, {4.0: LOW, math.inf: LOW, "none": NONE}))
    models = [measured(replace(finding, failures=("broken",))), measured(other, model="Another")]
    page.write_pages(tmp_path, models)
    paper = (tmp_path / "claims" / "a_paper.md").read_text("utf-8")
    assert (
        "| a \\| b | **holds**, not after the correction<br>ε=4: 85.0 against 45.0: +40.0 [15.2, 64.8] (3)<br>" in paper
    )
    assert "| **refuted**<br>ε=4: 15.7 against 45.0" in paper
    summary = (tmp_path / page.PAGE).read_text("utf-8")
    assert [
        fact for fact in ("- broken", "claims/a_paper.md", "| refuted | 0 | 0 | 1 (1, 1) | 0 |") if fact not in summary
    ] == []


def test_a_claim_with_a_failed_run_is_whole_and_shows_nothing():
    made = claim()
    known = results(made, {4.0: HIGH, math.inf: HIGH, "none": NONE})
    failed = next(key for key, one in known.items() if one.figures["utility_encoder.accuracy"] == HIGH[0])
    known[failed] = runs.RunMeasurements(key=failed, data="banking10", seed=0, error="broken")
    finding = findings.finding(PRESET, made, known)
    assert (finding.verdict, finding.failures) == ("does not show", ("broken",))
    assert finding.differences[0].pairs == 2


def test_results_survive_and_the_last_of_a_cell_counts(tmp_path):
    one = runs.RunMeasurements(key="k", data="d", seed=0, error="broken")
    runs.append(tmp_path / "deep" / "runs.jsonl", one)
    runs.append(tmp_path / "deep" / "runs.jsonl", replace(one, error=None))
    (read,) = runs.read_results(tmp_path / "deep" / "runs.jsonl").values()
    assert read == replace(one, error=None)
    (tmp_path / "runs.jsonl").write_text('{"key": "k", "data": "d", "seed": 0, "overrides": [], "epsilon": 4}\n')
    assert runs.read_results(tmp_path / "runs.jsonl") == {"k": replace(one, error=None)}  # an earlier version's
    for wrong in ('{"key": 1}', "[]", "{"):
        (tmp_path / "runs.jsonl").write_text(f"{wrong}\n")
        with pytest.raises(DataError) as caught:
            runs.read_results(tmp_path / "runs.jsonl")
        assert caught.value.where == f"{tmp_path}/runs.jsonl:1"


def test_a_failed_run_is_tried_again_and_a_finished_one_is_not():
    made = claim()
    planned = cells.cells_in_order(PRESET, [made])
    known = results(made, {4.0: HIGH, math.inf: HIGH, "none": NONE})
    assert execution.missing(PRESET, planned, known) == []
    assert len(execution.missing(PRESET, planned, {})) == len(planned)
    key = next(iter(known))
    known[key] = runs.RunMeasurements(key=key, data="banking10", seed=0, error="broken")
    assert [PRESET.key(cell) for cell in execution.missing(PRESET, planned, known)] == [key]


@pytest.mark.slow
def test_a_run_gives_its_figures_and_a_wrong_setting_its_reason(tmp_path):
    small = ["method.samples=40", "method.rounds=2", "task.records_per_party=16", "task.test_records=24"]
    blank = runs.RunMeasurements(key="k", data="demo_notes", seed=0)
    ran = execution.run_one(blank, [*small, "evaluation.metrics=[]"], tmp_path / "k")
    assert ran.error is None
    assert 0 <= ran.figures["accuracy"] <= 1
    assert {"synthetic.accuracy", "fid", "seconds"} <= set(ran.figures)
    assert "parties" in execution.run_one(blank, ["federation.parties=0"], tmp_path / "b").error
    with lock_folder(tmp_path / "k"):
        assert f"{tmp_path}/k" in execution.run_one(blank, small, tmp_path / "k").error
    assert (tmp_path / "k" / "run.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "tiny"], "small, full, chat"),
        (["--claim", "nothing"], "near_and_far"),
        (["--claim", "contrst"], "as contrast; got"),
    ],
)
def test_a_wrong_name_gets_one_line_and_exit_code_2(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--preset", "full"] if "--claim" in arguments else arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_without_its_data_set_the_small_preset_has_the_demos_messages(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAUCUS_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        command.main(["--page", "--out", str(tmp_path / "out")])
    assert not ended.value.code
    assert "banking10" in capsys.readouterr().out
    written = (tmp_path / "out" / page.PAGE).read_text("utf-8")
    assert "demo_messages" in (tmp_path / "out" / "claims" / "wasp.md").read_text("utf-8")
    # What is said of the project's own figures is not said of others.
    sections = [line for line in written.splitlines() if line.startswith("## ")]
    assert sections == ["## How to read the tables", "## Claim by claim"]


def test_a_result_that_no_claim_needs_is_kept_beside_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_run", lambda *_, **__: None)
    out, work = tmp_path / "out", tmp_path / "work"
    arguments = ["--preset", "full", "--out", str(out), "--work", str(work)]
    runs.append(out / "full.jsonl", runs.RunMeasurements(key="old", data="d", seed=0, seconds=9))
    for _ in range(2):
        with pytest.raises(SystemExit):
            command.main(arguments)
    assert not runs.read_results(out / "full.jsonl")
    assert list(runs.read_results(work / command.UNNEEDED)) == ["old"]
    assert len((work / command.UNNEEDED).read_text().splitlines()) == 1


def test_the_processes_of_the_runs_end_with_a_command_that_is_killed(tmp_path):
    program = f"""
import pathlib, time
from simulations.laboratory.results import cells, execution
wrong = cells.Cell("demo_messages", ("federation.parties=0",), 0)
for one in execution.run_all(cells.preset("small"), [wrong], pathlib.Path({str(tmp_path)!r})):
    print(one.error, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert "parties" in process.stdout.readline()
        process.kill()
        process.communicate(timeout=30)  # waits for all processes that write to the same output


def test_a_second_command_in_the_same_folder_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("server.failure.PATIENCE", 0.0)
    with lock_folder(tmp_path), pytest.raises(SystemExit) as ended:
        command.main(["--work", str(tmp_path)])
    assert ended.value.code == 2
    assert "got another" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_gets_one_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        command.main(["--page", "--preset", "full", "--out", str(tmp_path / "file")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_figure_that_its_runs_lack_is_said():
    made = claim(figure="utility_encoder.acuracy")
    finding = findings.finding(PRESET, made, results(made, {4.0: HIGH, math.inf: LOW, "none": NONE}))
    (failure,) = finding.failures
    assert failure.startswith("claims.votes.figure;")


@pytest.fixture(scope="module")
def published():
    return command.published()


def test_the_projects_own_pages_and_picture_are_what_its_runs_say(published, tmp_path):
    page.write_pages(tmp_path, published)
    written = [file.relative_to(tmp_path) for file in tmp_path.rglob("*.*")]
    assert len(written) == len(published[0].papers) + len(published) + 1
    differ = [file for file in written if (tmp_path / file).read_text() != (cells.HERE / file).read_text()]
    assert differ == [Path(page.PAGE)]  # which says what we found in these runs, too
    ours = (cells.HERE / page.PAGE).read_text("utf-8")
    assert page.render(published, ours) == ours
    for mark in ("<!-- papers -->", "<!-- end of papers -->"):  # nothing of the page is lost
        with pytest.raises(ConfigError):
            page.render(published, ours.replace(mark, ""))


@pytest.mark.parametrize("name", command.PUBLISHED)
def test_no_run_of_the_projects_own_pages_is_made_again_and_each_has_figures_of_claims_alone(name, published):
    chosen = cells.preset(name)
    needed = cells.cells_in_order(chosen, (*claims.read_claims(), *claims.read_lines()))
    known = runs.read_results(cells.HERE / runs.FILE.format(name))
    assert known.keys() <= {chosen.key(cell) for cell in needed}
    assert name == "chat" or execution.missing(chosen, needed, known) == []
    shown = {claim.figure for claim in (*claims.read_claims(), *claims.read_lines())}
    assert {name for one in known.values() for name in one.figures} <= shown | {"utility_encoder.worst_label"}


def test_a_claim_of_the_page_is_short_and_its_verdict_is_explained_in_its_file(published):
    for one in published[0].findings:
        assert len(one.claim.claim.split()) <= 25, one.claim.name
        assert one.verdict in one.claim.why, one.claim.name
