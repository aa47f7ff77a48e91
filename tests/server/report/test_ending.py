import json
import re

import numpy as np
import pytest

from server.report.ending import ending
from tests.support.documents import privacy_json, write_run

FIRST = {"run": "first", "plan_digest": "ab", "encoder": "cd"}
SPENT = {"epsilon": 3.2104, "queries_asked": 3, "queries_planned": 4}
METRICS = {
    "synthetic": {"accuracy": 0.83},
    "real_private": {"accuracy": 0.945},
    "majority_class": {"accuracy": 0.25},
}


def lines(folder, *, privacy=None, metrics=None, texts=2):
    (folder / "privacy.json").write_text(json.dumps(privacy_json(**{"spent": SPENT} | (privacy or {}))))
    (folder / "metrics.json").write_text(json.dumps(METRICS if metrics is None else metrics))
    (folder / "synthetic.jsonl").write_text("{}\n" * texts)
    return list(ending(folder, "what comes next"))


def test_six_lines_say_cost_quality_places_and_the_next_command(tmp_path):
    assert lines(tmp_path) == [
        "privacy:  ε = 4 planned and 3.211 spent, δ = 1e-5 planned and spent",
        "accuracy: synthetic 83.0 %, real records 94.5 %, the most frequent label 25.0 %",
        f"texts:    {tmp_path}/synthetic.jsonl (2)",
        f"report:   {tmp_path}/report.html",
        f"as JSON:  {tmp_path}/report.json",
        "next:     what comes next",
    ]


def test_whether_votes_were_noise_is_said_by_the_figures_behind_the_verdict(tmp_path):
    folder = write_run(tmp_path / "run")
    rounds = [json.loads(row) for row in (folder / "rounds.jsonl").read_text().splitlines()]
    for query in (query for entry in rounds for query in entry["queries"]):
        query["noise"] = 3.531
    (folder / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rounds))
    (folder / "state").mkdir()
    for answer in (0, 1):
        values = np.round(np.random.default_rng(answer).normal(0, 3.531 * 128, 2 * 26))
        np.save(folder / "state" / f"answer-{answer:03}.npy", values)
    assert "votes:    all were noise, so that a gain may be the models' own" in list(ending(folder))


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ([-0.01, 0.074], "no clear gain: 3.2 points, −1 to 7.4"),
        ([0.01, 0.054], "a clear gain: 3.2 points, 1 to 5.4"),
    ],
)
def test_the_gain_stands_beside_both_accuracies_that_it_compares(interval, said, tmp_path):
    difference = {"value": 0.032, "interval": interval}
    group = {"accuracy": {"value": 0.79}, "trained_on": 400, "difference": difference}
    assert lines(tmp_path, metrics=METRICS | {"zero_shot": group})[1] == (
        "accuracy: synthetic 83.0 %, the same models without the hospitals 79.0 % (with 400 texts each 82.2 % against "
        f"79.0 %, {said}), real records 94.5 %, the most frequent label 25.0 %"
    )


@pytest.mark.parametrize("fewer", [0.517, 0.642])
def test_a_gain_has_the_sign_of_the_accuracies_beside_it_whatever_all_texts_reach(fewer, tmp_path):
    without, shown = 0.558, re.compile(r"each ([\d.]+) % against ([\d.]+) %, a clear (gain|loss): (−?[\d.]+) points")
    gain = fewer - without
    difference = {"value": gain, "interval": [gain - 0.01, gain + 0.01]}
    group = {"accuracy": {"value": without}, "trained_on": 30, "difference": difference}
    metrics = {"synthetic": {"accuracy": without - gain}, "zero_shot": group}
    found = shown.search(lines(tmp_path, metrics=metrics)[1])
    assert found
    assert float(found[1]) - float(found[2]) == pytest.approx(float(found[4].replace("−", "-")), abs=0.1)
    assert (found[3] == "gain") == (gain > 0)


def test_a_run_with_held_out_spans_has_a_line_on_them(tmp_path):
    group = {"f1": {"value": 0.9}, "zero_shot": {"value": 0.8}, "real": {"value": 0.99}, "precision": {"value": 0.5}}
    assert lines(tmp_path, metrics=METRICS | {"spans": group})[2] == (
        "spans:    synthetic 90.0 %, the same models without the hospitals 80.0 %, other real texts 99.0 % (F1 on real "
        "texts)"
    )


@pytest.mark.parametrize(
    "privacy",
    [
        {"planned_epsilon": "inf", "queries": []},  # baselines that use the records themselves
        {"epsilon": "inf", "planned_epsilon": "inf", "spent": SPENT | {"epsilon": "inf"}},
        {"unproven": ["rewritten records"]},
    ],
)
def test_without_privacy_no_guarantee_is_said(privacy, tmp_path):
    assert lines(tmp_path, privacy=privacy)[0] == "privacy:  no guarantee (ε = ∞)"


def test_a_run_that_asked_nobody_says_so(tmp_path):
    nothing = {"queries": [], "epsilon": 0.0, "planned_epsilon": 0.0, "spent": SPENT | {"epsilon": 0.0}}
    assert lines(tmp_path, privacy=nothing)[0] == "privacy:  no hospital was asked (ε = 0)"
    again = lines(
        tmp_path,
        privacy=nothing | {"epsilon": 2.0, "planned_epsilon": 2.0, "earlier": FIRST},
    )
    assert again[0] == "privacy:  ε = 2, δ = 1e-5 of run first, which asked; nothing more was asked"


def test_what_there_is_not_is_said(tmp_path):
    said = lines(tmp_path, metrics={"synthetic": None}, texts=0)
    assert said[1:3] == ["accuracy: not measured: there are no texts", "texts:    none"]
    assert next(ending(tmp_path / "none", "")) == "privacy:  not known: privacy.json cannot be read"


def test_without_labels_the_distances_from_real_texts_are_in_the_six_lines(tmp_path):
    near = {"texts": 60, "fid": {"value": 0.5641}, "zero_shot": {"value": 0.64}, "real": {"value": 0.24}}
    assert lines(tmp_path, metrics={"nearness": near})[1] == (
        "distance: synthetic 0.564, the same models without the hospitals 0.64, other real texts 0.24 (FID from real "
        "texts)"
    )
    few = {"fid": {"value": None, "reason": "too few"}}
    assert lines(tmp_path, metrics={"nearness": few})[1] == "distance: not measured: too few"
