import json
import re
from pathlib import Path

import numpy as np
import pytest

from server.report.ending import ending
from tests.support.documents import privacy_json, write_run
from tests.support.screens import assert_accepted, under_headings

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


def gained(value, low, high):
    return {"accuracy": {"value": 0.79}, "trained_on": 400, "difference": {"value": value, "interval": [low, high]}}


NOTHING = {"queries": [], "epsilon": 0.0, "planned_epsilon": 0.0, "spent": SPENT | {"epsilon": 0.0}}
SPANS = {"f1": {"value": 0.9}, "zero_shot": {"value": 0.8}, "real": {"value": 0.99}, "precision": {"value": 0.5}}
NEAR = {"texts": 60, "fid": {"value": 0.5641}, "zero_shot": {"value": 0.64}, "real": {"value": 0.24}}
ENDINGS = {
    "accuracies": {},
    "no clear gain": {"metrics": METRICS | {"zero_shot": gained(0.032, -0.01, 0.074)}},
    "a clear gain": {"metrics": METRICS | {"zero_shot": gained(0.032, 0.01, 0.054)}},
    "spans": {"metrics": METRICS | {"spans": SPANS}},
    "distances": {"metrics": {"nearness": NEAR}},
    "no distance": {"metrics": {"nearness": {"fid": {"value": None, "reason": "too few"}}}},
    "no texts": {"metrics": {"synthetic": None}, "texts": 0},
    "no hospital asked": {"privacy": NOTHING},
    "asked in an earlier run": {"privacy": NOTHING | {"epsilon": 2.0, "planned_epsilon": 2.0, "earlier": FIRST}},
    "a baseline with the records themselves": {"privacy": {"planned_epsilon": "inf", "queries": []}},
    "no noise": {"privacy": {"epsilon": "inf", "planned_epsilon": "inf", "spent": SPENT | {"epsilon": "inf"}}},
    "no proof": {"privacy": {"unproven": ["rewritten records"]}},
}


def test_the_last_lines_of_all_kinds_of_runs(tmp_path):
    screen = under_headings({name: lines(tmp_path, **changes) for name, changes in ENDINGS.items()})
    assert_accepted(screen.replace(str(tmp_path), "RUN"), Path(__file__).parent / "screens" / "endings.txt")


@pytest.mark.parametrize("name", ["a baseline with the records themselves", "no noise", "no proof"])
def test_without_privacy_no_guarantee_is_said(name, tmp_path):
    assert lines(tmp_path, **ENDINGS[name])[0] == "privacy:  no guarantee (ε = ∞)"


@pytest.mark.parametrize("fewer", [0.517, 0.642])
def test_a_gain_has_the_sign_of_the_accuracies_beside_it_whatever_all_texts_reach(fewer, tmp_path):
    without = 0.558
    gain = fewer - without
    difference = {"value": gain, "interval": [gain - 0.01, gain + 0.01]}
    group = {"accuracy": {"value": without}, "trained_on": 30, "difference": difference}
    said = lines(tmp_path, metrics={"synthetic": {"accuracy": without - gain}, "zero_shot": group})[1]
    shown = re.search(r"each ([\d.]+) % against ([\d.]+) %.* is (−?[\d.]+) points", said)
    assert float(shown[1]) - float(shown[2]) == pytest.approx(float(shown[3].replace("−", "-")), abs=0.1)
    assert ("a clear loss" in said) == (gain < 0)


def test_an_unreadable_statement_promises_nothing(tmp_path):
    assert next(ending(tmp_path / "none", "")) == "privacy:  not known: privacy.json cannot be read"
