import json
import sys
from pathlib import Path

from server.documents.run import WeaknessCode
from server.report.ending import ending
from server.report.verdict import Judgement
from server.report.write import write_report
from tests.support.documents import answer_with_noise, privacy_json, write_run
from tests.support.screens import assert_accepted, under_headings

FIRST = {"run": "first", "plan_digest": "ab", "encoder": "cd"}
SPENT = {"epsilon": 3.2104, "queries_asked": 3, "queries_planned": 4}
METRICS = {
    "test_records": 400,
    "synthetic": {"accuracy": 0.83},
    "real_private": {"accuracy": 0.945},
    "majority_class": {"accuracy": 0.25},
}


def lines(folder, *, privacy=None, metrics=None, texts=2):
    (folder / "privacy.json").write_text(json.dumps(privacy_json(**{"spent": SPENT} | (privacy or {}))))
    (folder / "metrics.json").write_text(json.dumps(METRICS if metrics is None else metrics))
    (folder / "synthetic.jsonl").write_text("{}\n" * texts)
    return list(ending(folder, lambda judgement: f"what comes after: {judgement}"))


def test_whether_votes_were_noise_is_said_by_the_figures_behind_the_verdict(tmp_path):
    folder = answer_with_noise(write_run(tmp_path / "run"))
    (folder / "metrics.json").write_text(json.dumps(METRICS | {"zero_shot": gained(0.032, 0.01, 0.054)}))
    assert any(line.startswith(f"verdict:  {Judgement.NOISE}") for line in ending(folder))
    (folder / "metrics.json").unlink()
    write_report(folder)
    assert any(line.startswith(f"poor:     {WeaknessCode.ANSWERS_ARE_NOISE}: ") for line in ending(folder))


def gained(value, low, high):
    return {"accuracy": {"value": 0.79}, "trained_on": 400, "difference": {"value": value, "interval": [low, high]}}


NOTHING = {"queries": [], "epsilon": 0.0, "planned_epsilon": 0.0, "spent": SPENT | {"epsilon": 0.0}}
SPANS = {"f1": {"value": 0.9}, "zero_shot": {"value": 0.8}, "real": {"value": 0.99}, "precision": {"value": 0.5}}
SECTIONS = {"order_distance": 0.1, "independent": 0.4, "words": 90.0, "words_real": 80.0}
COUNTED = {"accuracy": {"value": 0.71, "interval": [0.6, 0.8], "rows": 300}}
NEAR = {"texts": 60, "fid": {"value": 0.5641}, "zero_shot": {"value": 0.64}, "real": {"value": 0.24}}
ENDINGS = {
    "accuracies": {},
    "no clear gain": {"metrics": METRICS | {"zero_shot": gained(0.032, -0.01, 0.074)}},
    "a clear gain": {"metrics": METRICS | {"zero_shot": gained(0.032, 0.01, 0.054)}},
    "a gain below guessing": {
        "metrics": METRICS | {"synthetic": {"accuracy": 0.1}, "zero_shot": gained(0.1, 0.05, 0.2)}
    },
    "a gain over one that says one label": {
        "metrics": METRICS | {"zero_shot": gained(0.58, 0.5, 0.6) | {"accuracy": {"value": 0.25}}}
    },
    "a count alone": {"metrics": {"federated": COUNTED}},
    "a count beside references": {"metrics": METRICS | {"synthetic": None, "federated": COUNTED}},
    "spans": {"metrics": METRICS | {"spans": SPANS}},
    "sections": {"metrics": METRICS | {"zero_shot": gained(-0.2, -0.3, -0.1), "sections": SECTIONS}},
    "distances": {"metrics": {"nearness": NEAR}},
    "no distance": {"metrics": {"nearness": {"fid": {"value": None, "reason": "too few"}}}},
    "no texts": {"metrics": {"synthetic": None}, "texts": 0},
    "no hospital asked": {"privacy": NOTHING},
    "asked in an earlier run": {"privacy": NOTHING | {"epsilon": 2.0, "planned_epsilon": 2.0, "earlier": FIRST}},
    "a baseline with the records themselves": {"privacy": {"planned_epsilon": "inf", "queries": []}},
    "no noise": {"privacy": {"epsilon": "inf", "planned_epsilon": "inf", "spent": SPENT | {"epsilon": "inf"}}},
    "no proof": {"privacy": {"unproven": ["rewritten records"]}},
}


def test_the_last_lines_of_all_kinds_of_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["caucus-simulate"])
    screen = under_headings({name: lines(tmp_path, **changes) for name, changes in ENDINGS.items()})
    assert_accepted(screen.replace(str(tmp_path), "RUN"), Path(__file__).parent / "screens" / "endings.txt")


def test_an_unreadable_statement_promises_nothing(tmp_path):
    assert "privacy:  not known: privacy.json cannot be read" in ending(tmp_path / "none")
