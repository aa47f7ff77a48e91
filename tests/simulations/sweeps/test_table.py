import json
import sys
from dataclasses import replace

import pytest
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from common.errors import CheckpointError, ConfigError
from server.prepare.compose import compose_settings, load_settings, store
from server.report.verdict import Judgement
from server.settings.sections import setting
from simulations import launch
from simulations.sweeps.combinations import (
    SweepCallback,
    record_failure,
    resuming_arguments,
    settings_to_continue,
    with_overrides,
)
from simulations.sweeps.render import as_markdown, as_text, markdown_row, write_table
from simulations.sweeps.runs import FAILURE
from simulations.sweeps.table import read_table
from tests.support.documents import edit, privacy_json, round_json
from tests.support.runs import command
from tests.support.sweeps import run

EXPERIMENT = {
    "title": "Of two methods",
    "data": ["IMDb", "Banking"],
    "rows": {
        "theirs": {"set": ["method.top=1"], "paper": [81.5, 70]},
        "not ours": {"paper": [60.25, 50]},
        "ours": {"set": []},
    },
}

PROVED = ["unsafe_no_noise=false", "unsafe_unproven=false"]  # without these, a limit of all runs is refused
SEEDS = ["--multirun", "experiment_seed=0,1,2"]


def cells_of(text):
    """The cells of a table in Markdown, its head first."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [line.strip("| ").split(" | ") for line in lines]


@pytest.mark.parametrize("name", ["state/state.json", "metrics.json", "run.json"])
def test_a_run_of_a_sweep_goes_on_with_its_settings_once_it_has_begun(name, tmp_path):
    overrides = ("privacy.epsilon=4",)
    new, stored = compose_settings([]), replace(compose_settings([]), overrides=overrides)
    store(stored, tmp_path)
    assert settings_to_continue(new, overrides, tmp_path).run == new.run
    (tmp_path / "state").mkdir()
    (tmp_path / name).touch()
    assert settings_to_continue(new, overrides, tmp_path).run == stored.run
    assert settings_to_continue(new, ("privacy.epsilon=1",), tmp_path).run == new.run


def test_mean_and_deviation_of_each_row_in_the_experiment_order_with_the_paper_beside(tmp_path):
    for number, (row, accuracy) in enumerate([("ours", 0.7), ("ours", 0.9), ("theirs", 0.5), ("theirs", 0.6)]):
        run(tmp_path, number, row, accuracy, experiment=EXPERIMENT)
    made = write_table(tmp_path)
    assert {(tmp_path / name).stat().st_mode & 0o077 for name in ("table.md", "table.json", "report.html")} == {0}
    assert [row.row for row in made.rows] == ["theirs", "not ours", "ours"]
    assert (made.rows[2].mean, made.rows[2].deviation) == (pytest.approx(0.8), pytest.approx(0.02**0.5))
    text = (tmp_path / "table.md").read_text("utf-8")
    assert text.startswith("# Of two methods\n")
    assert cells_of(text) == [
        ["row", "runs", "accuracy", "ε", "paper: IMDb", "paper: Banking"],
        ["theirs", "2", "55.0 ± 7.1", "4", "81.50", "70.00"],
        ["not ours", "–", "–", "–", "60.25", "50.00"],
        ["ours", "2", "80.0 ± 14.1", "4", "–", "–"],
    ]
    rows = json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"]
    assert rows[0]["mean"] == pytest.approx(0.55)
    assert rows[0]["paper"] == {"IMDb": 81.5, "Banking": 70}


def test_any_figure_and_the_wall_time_can_be_a_column(tmp_path):
    experiment = EXPERIMENT | {"columns": ["fidelity.mean_distance", "membership.PPL", "seconds"]}
    for number, distance in enumerate([0.25, 0.75]):
        path = run(tmp_path, number, "ours", 0.7, experiment=experiment)
        figures = {"fidelity": {"mean_distance": {"value": distance}}, "membership": {"PPL": {"reason": "too few"}}}
        (path / "metrics.json").write_text(json.dumps({"synthetic": {"accuracy": 0.7}, **figures}))
        edit(path, "run.json", seconds=40.0 + 20 * number)
    head, *_, ours = cells_of(as_markdown(read_table(tmp_path)))
    assert head[3:7] == ["ε", "fidelity: mean distance", "membership: PPL", "seconds"]
    assert ours[:7] == ["ours", "2", "70.0 ± 0.0", "4", "0.5 ± 0.35", "–", "50 ± 14"]


def test_failed_runs_are_shown_not_left_out(tmp_path):
    run(tmp_path, 0, "ours", 0.7, experiment=EXPERIMENT)
    run(tmp_path, 1, "ours", 0.7, experiment=EXPERIMENT, status="partial")
    path = run(tmp_path, 2, "theirs", experiment=EXPERIMENT, status="partial")
    record_failure({}, [], path, "unanswered")
    record_failure({}, ["a=1", "experiment_seed=1"], tmp_path / "3", "wrong")  # it leaves its configuration
    made = read_table(tmp_path)
    assert (made.failures.keys(), made.failures["2"], made.failures["3"]) == ({"1", "2", "3"}, "unanswered", "wrong")
    rows = {row[0]: row[1:4] for row in cells_of(as_markdown(made))}
    assert rows["ours"] == ["1, 1 failed", "70.0", "4"]
    assert rows["theirs"] == ["0, 1 failed", "failed", "–"]


def test_a_run_that_was_resumed_to_its_end_counts_whatever_it_said_before(tmp_path):
    record_failure({}, [], run(tmp_path, 0, "ours", 0.7, experiment=EXPERIMENT), "a network error")
    assert not read_table(tmp_path).failures


def test_a_sweep_without_experiment_has_a_row_for_each_combination_of_what_varies(tmp_path):
    for number in range(12):
        run(tmp_path, number, ["task=csv", f"a={number % 2}", f"b={number // 2 % 2}"], 0.5, epsilon=number % 2 + 1)
    made = read_table(tmp_path)
    assert [row.row for row in made.rows] == ["a=0, b=0", "a=1, b=0", "a=0, b=1", "a=1, b=1"]
    assert [row.runs for row in made.rows] == [3, 3, 3, 3]
    assert [row.epsilons for row in made.rows] == [(1.0,), (2.0,), (1.0,), (2.0,)]
    assert "paper" not in as_markdown(made)


def test_a_sweep_over_seeds_alone_has_one_row_and_counts_runs_that_measure_nothing(tmp_path):
    for number in range(2):
        run(tmp_path, number, ["task=csv"])
    assert cells_of(as_markdown(read_table(tmp_path)))[1] == ["all runs", "2", "–", "4"]


def test_only_private_counts_by_its_private_records(tmp_path):
    path = run(tmp_path, 0, ["a=1"], epsilon="inf")
    (path / "metrics.json").write_text(json.dumps({"synthetic": None, "real_private": {"accuracy": 0.25}}))
    write_table(tmp_path)
    assert "| 25.0 | ∞" in (tmp_path / "table.md").read_text("utf-8")
    assert json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"][0]["epsilons"] == ["inf"]


def test_traffic_is_for_one_party_and_one_answer(tmp_path):
    traffic = {"parties": 10, "bytes_to_parties": 40 * 2048, "bytes_from_parties": 40 * 512}
    run(tmp_path, 0, "ours", 0.5, experiment=EXPERIMENT | {"traffic": True}, traffic=traffic)
    assert cells_of(as_markdown(read_table(tmp_path)))[-1][:6] == ["ours", "1", "50.0", "4", "2.0", "0.5"]


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="runs"):
        read_table(tmp_path)


def test_a_row_sets_its_overrides_below_the_command_line():
    task = ["+experiment=wasp_table5", "row=Q 16", "method.samples=1000"]
    config = with_overrides(compose_settings(task), task)
    assert (config.method.top, config.method.samples, config.row) == (16, 1000, "Q 16")
    assert with_overrides(compose_settings(task), [*task, "method.top=2"]).method.top == 2


def test_a_row_that_nothing_runs_is_refused():
    for row in ("Q 3", "PrE-Text OPT"):
        with pytest.raises(ConfigError, match="row"):
            with_overrides(compose_settings(["+experiment=wasp_table2", f"row={row}"]), [])


def test_a_sweep_goes_on_where_a_run_fails_and_ends_with_its_table(tmp_path):
    small = ["method.rounds=2", "task.records_per_party=16", "task.test_records=24", "task.public_notes=120"]
    small += ["evaluation.metrics=[]"]
    code, output = command(
        tmp_path, "--multirun", "method.samples=24,1", "method.shots=4", *small, f"hydra.sweep.dir={tmp_path}/sweep"
    )
    text = (tmp_path / "sweep" / "table.md").read_text("utf-8")
    assert as_text(read_table(tmp_path / "sweep")) in output
    assert f"report:   {tmp_path}/sweep/report.html\n" in output
    assert code == 1
    assert "| method.samples=24 | 1 |" in text
    assert "| method.samples=1 | 0, 1 failed | failed | – |" in text
    assert "failed: method.samples" in text
    assert "1 of 2" in output


def test_a_run_that_failed_at_once_keeps_the_settings_of_its_row(tmp_path):
    sweep = f"hydra.sweep.dir={tmp_path}/sweep"
    row = "row=WASP without weighting"
    (tmp_path / "train.csv").write_text("text,label\nsame,a\n")
    task = ["task=csv", f"task.train={tmp_path}/train.csv", "experiment_seed=0"]
    code, output = command(tmp_path, "--multirun", "+experiment=wasp_table4", row, *task, sweep)
    assert code == 1, output
    kept = load_settings(tmp_path / "sweep" / "0")
    assert (tmp_path / "sweep" / "0" / FAILURE).exists()
    assert f"row={setting(kept, 'row')}" == row
    assert setting(kept, "method.weighting") is False


def test_a_sweep_has_a_page_with_curves_over_what_varies_and_its_table_is_printed_in_columns(tmp_path, capsys):
    for number in range(8):
        row = [f"method={'wasp' if number < 4 else 'aug_pe'}", f"privacy.epsilon={1 + number % 2 * 7}"]
        path = run(tmp_path, number, [*row, f"federation.parties={number // 2 % 2 + 2}"], 0.1 * number + 0.1)
        edit(path, "run.json", method=row[0][7:], parties=number // 2 % 2 + 2, seconds=2.0)
        edit(path, "privacy.json", epsilon=1 + number % 2 * 7)
        tokens = {"input": 5, "output": 5}
        lines = [round_json(at, fid=value, tokens=tokens) for at, value in enumerate((3.0, None, 1.0 + number), 1)]
        (path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "0" / "report.html").write_text("its own page")
    poor = {"what": "accuracy below <guessing>", "do": "write more texts", "simulation_only": False}
    (tmp_path / "0" / "report.json").write_text(json.dumps({"weaknesses": [poor]}))
    run(tmp_path, 8, ["method=<b>"], 0.5, epsilon="inf", status="partial")
    write_table(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert {key for key in ("epsilon", "parties", "fid") if f'id="plot-{key}"' in page} == {"epsilon", "parties", "fid"}
    assert '<a href="0/report.html">0</a>' in page
    assert '<a href="1/report.html">' not in page
    assert page.count("&lt;guessing&gt;") == 1
    assert "<b>" not in page
    assert "method=&lt;b&gt;" in page
    assert "1 failed" in page
    assert "No guarantee:" not in page  # a failed run releases nothing
    printed = capsys.readouterr().out
    assert len({len(line) for line in printed.splitlines()[2:13]}) == 1
    first = json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"][0]
    assert (first["methods"], first["parties"], first["fid"], first["tokens"]) == (["wasp"], [2], [3.0, None, 1.0], 30)


def test_the_difference_from_another_row_is_that_of_runs_with_the_same_seed(tmp_path):
    experiment = {
        "rows": {"theirs": {"set": []}, "ours": {"set": [], "against": {"them": "theirs", "a row": "never run"}}}
    }
    for row, accuracies in {"theirs": [0.5, 0.9, 0.2], "ours": [0.55, 0.97, 0.29, 0.6]}.items():
        for seed, accuracy in enumerate(accuracies):
            run(tmp_path, f"{row}{seed}", row, accuracy, experiment=experiment, seed=seed)
    made = write_table(tmp_path)
    # Differences 5, 7 and 9 points: mean 7, standard error 2 / sqrt(3), and t = 4.303 with two degrees of freedom.
    assert made.rows[1].against["them"].differences == pytest.approx((0.05, 0.07, 0.09))
    ours = cells_of((tmp_path / "table.md").read_text("utf-8"))[-1]
    assert ours == ["ours", "4", "60.2 ± 28.0", "4", "+7.0 ± 5.0", "–"]
    rows = json.loads((tmp_path / "table.json").read_text("utf-8"))["rows"]
    assert rows[1]["against"]["them"]["interval"] == pytest.approx([0.07 - 0.0497, 0.07 + 0.0497], abs=1e-4)


def test_seeds_with_several_runs_in_a_row_are_no_pair(tmp_path):
    experiment = {"rows": {"theirs": {"set": []}, "ours": {"set": [], "against": {"them": "theirs"}}}}
    for number, (row, accuracy) in enumerate([("theirs", 0.5), ("ours", 0.6), ("ours", 0.7)]):
        run(tmp_path, number, row, accuracy, experiment=experiment, seed=0)
    assert write_table(tmp_path).rows[1].against["them"].differences == ()


def hydra_of(folder, monkeypatch):
    """Hydra's own settings in a sweep with `--config-dir mine`, of which this process knows nothing yet."""
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    hydra = {
        "mode": RunMode.MULTIRUN,
        "sweep": {"dir": str(folder)},
        "sweeper": {"params": {}},
        "overrides": {"task": ["method.samples=24", "++privacy.epsilon=1,4"], "hydra": ["hydra/launcher=joblib"]},
        "runtime": {
            "config_sources": [{"path": "mine", "schema": "file", "provider": "command-line"}],
            "choices": {"hydra/launcher": "joblib"},
        },
    }
    return OmegaConf.create({"hydra": OmegaConf.merge(OmegaConf.structured(HydraConf), hydra)})


def test_ctrl_c_in_a_parallel_sweep_says_what_is_left_and_how_it_goes_on(monkeypatch, tmp_path):
    config = hydra_of(tmp_path, monkeypatch)
    OmegaConf.save(config, tmp_path / "multirun.yaml")

    def stopped():
        SweepCallback().on_multirun_start(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "_composed", stopped)
    monkeypatch.setattr("sys.argv", ["caucus-simulate"])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(KeyboardInterrupt) as caught:
        launch._by_hydra(["method.samples=24", "--multirun", "privacy.epsilon=1,4"])
    assert f"caucus-simulate --resume {tmp_path} " in str(caught.value)
    assert sys.argv[1:] == ["--multirun", "method.samples=24", "privacy.epsilon=1,4"]
    assert resuming_arguments(tmp_path)[:3] == ["--multirun", "--config-dir", "mine"]


@pytest.mark.parametrize(
    ("of_run", "limits", "tried"),
    [
        (({}, Judgement.HELPS), [], ["--multirun", "privacy.epsilon=1,4,16"]),
        (({}, Judgement.NO_GAIN), [], ["privacy.epsilon=inf"]),
        (({"planned_epsilon": "inf"}, Judgement.NO_GAIN), [], SEEDS),
        (({"queries": []}, Judgement.NO_GAIN), [], SEEDS),
        (({}, Judgement.HELPS), ["max_epsilon=6"], ["--multirun", "privacy.epsilon=1,4"]),
        (({}, Judgement.HELPS), ["max_epsilon=8", "lifetime_epsilon=3", *PROVED], ["privacy.epsilon=1"]),
        (({"planned_epsilon": 1}, Judgement.HELPS), ["max_epsilon=2"], SEEDS),
        (({}, Judgement.NO_GAIN), ["max_epsilon=8"], SEEDS),
    ],
)
def test_the_next_run_follows_from_the_judgement_and_the_limits(of_run, limits, tried, monkeypatch, tmp_path):
    privacy, judgement = of_run
    asked = [f"privacy.epsilon={privacy['planned_epsilon']}"] if "planned_epsilon" in privacy else []
    store(compose_settings([*asked, *(f"client.limits.{limit}" for limit in limits)]), tmp_path)
    (tmp_path / "privacy.json").write_text(json.dumps(privacy_json(**privacy)))
    SweepCallback().on_multirun_start(hydra_of(tmp_path, monkeypatch))
    kept = ["++privacy.epsilon=1,4"] if tried == SEEDS else []
    assert launch._next_run(tmp_path, judgement) == ["--config-dir", "mine", *tried, "method.samples=24", *kept]


def test_a_curve_has_the_interval_over_its_seeds_within_0_and_1(tmp_path):
    for number, accuracy in enumerate((0.5, 0.6, 0.7, 0.72, 0.8, 0.8)):
        run(tmp_path, number, [f"privacy.epsilon={number // 2 + 1}"], accuracy, epsilon=number // 2 + 1)
    write_table(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count('<path class="stroke thin"') == page.count('<path class="dots s0"') == 1
    assert "0 to 1</span>" in page  # two seeds that differ by 0.1 say little
    assert "0.5829 to 0.8371</span>" in page


def test_a_name_breaks_neither_a_cell_nor_a_line():
    assert markdown_row(["a|b", "c\nd", ""]) == "| a\\|b | c d |  |\n"
