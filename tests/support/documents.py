"""The documents of a run with three simulated parties, and their run folder."""

import json

import numpy as np

from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary

HOSTILE = '</script><script>alert(1)</script><!-- <img src=http://evil.example/x.png> & "it\'s" \u2028 end'

VOTES = {
    "name": "votes",
    "times": 2,
    "kind": "votes",
    "top": 8,
    "furthest": True,
    "mechanism": "gaussian",
    "summed": True,
    "epsilon_alone": 4.0,
    "subsampling": None,
    "grid": 128,
    "sensitivity_l1": 3.984375,
    "sensitivity_l2": 1.63298,
    "scale": 3.531,
    "scale_grid": 451.968,
}
"""A query; the other queries in tests differ from it only in the fields that they state."""


def privacy_json(**changes):
    """Return an early version's `privacy.json`, without explanations; queries in `changes` override VOTES."""
    queries = [VOTES | query for query in changes.pop("queries", [{}])]
    return {
        "epsilon": 4.0,
        "delta": 1e-5,
        "adjacency": {"relation": "add or remove", "unit": "sample", "max_records": 1},
        "mechanism": "discrete Gaussian",
        "planned_epsilon": 4.0,
        "released_epsilon": 4.0,
        "party_epsilon": 4.0,
        "calibration": "tight",
        "queries": queries,
        "parties": 3,
        "max_dropouts": 0,
        "assumed_survivors": 3,
        "assumed_colluders": 0,
        "noise_parties": 3,
        "threshold": 2,
        "largest_coalition": 1,
        "aggregation": "secure, semi-honest coordinator",
        "against_colluders": [{"colluders": 0, "epsilon": 4.0}, {"colluders": 1, "epsilon": 5.12341}],
        "spent": {"epsilon": 4.0, "queries_asked": 4, "queries_planned": 4},
        "simulation": False,
    } | changes


def privacy(**changes):
    return Privacy.from_json(privacy_json(**changes))


def round_json(number, **changes):
    """Return a line of `rounds.jsonl` as an early version wrote it."""
    return {
        "round": number,
        "requested": {"urban": 7, "rural": 7},
        "generated": {"urban": 7, "rural": 6},
        "lost": {"urban": 0, "rural": 1},
        "candidates": 13 * (number + 1),
        "fid": None,
        "seconds": {"generate": 1.5, "embed": 0.25, "ask": 0.25},
        "tokens": {"input": 1000, "output": 200},
        "calls": 14,
        "queries": [],
        "notes": [],
    } | changes


def report_of(number, **changes):
    return RoundReport.from_json(round_json(number, **changes))


def summary(**changes):
    return RunSummary.from_json(summary_json(**changes))


def summary_json(**changes):
    """Return the content of `run.json`."""
    return {
        "status": "complete",
        "method": "wasp",
        "task": "demo_notes",
        "parties": 3,
        "versions": {"caucus": "0.1.0", "numpy": "2.4.6"},
        "seconds": 75.0,
    } | changes


def write_run(folder, *, texts=40, rounds=3, **changes):
    """Write the run folder of a simulated federation; `changes` replaces fields of privacy.json."""
    folder.mkdir()
    labels, models = ("sepsis", "pneumonia"), ("urban", "rural")
    rows = [
        {
            "text": f"Note {at}: fever.",
            "label": labels[at % 2],
            "model": models[at % 3 % 2],
            "round": at * rounds // texts,
        }
        for at in range(texts)
    ]
    rows[1]["text"] = HOSTILE
    query = {
        "name": "nearest and furthest votes",
        "mechanism": "gaussian",
        "scale": 3.531,
        "survivors": 3,
        "parties": 3,
    }
    lines = [
        round_json(
            number,
            weights={"urban": 0.5 - 0.1 * number, "rural": 0.5 + 0.1 * number},
            fid=3.0 - number if number else None,
            queries=[] if number == rounds - 1 else [query | {"index": number}],
            notes=["rural wrote <b>one</b> text too few"] if number == 1 else [],
            prompts={} if number else {"zero_shot": {"written_by": "rural", "prompt": HOSTILE, "reply": HOSTILE}},
        )
        for number in range(rounds)
    ]
    score = {"records": texts, "accuracy": 0.8125, "macro_f1": 0.75}
    facts = privacy_json(**({"queries": [{"name": query["name"]}], "simulation": True} | changes))
    files = {
        "config.yaml": "method: wasp # <script>\n",
        "synthetic.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
        "rounds.jsonl": "".join(json.dumps(line) + "\n" for line in lines),
        "privacy.json": json.dumps(facts),
        "metrics.json": json.dumps(
            {
                "definition": "Logistic regression.",
                "test_records": 400,
                "synthetic": score,
                "real_private": {**score, "records": 900, "simulation_only": True},
            }
        ),
        "run.json": json.dumps(summary_json()),
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def edit(run, name, **fields):
    """Replace fields of a JSON object in a run folder; return the folder."""
    content = json.loads((run / name).read_text(encoding="utf-8"))
    (run / name).write_text(json.dumps(content | fields), encoding="utf-8")
    return run


def edit_rounds(run, change, *, only=None):
    """Change each round of `rounds.jsonl`, or only the one with this index; return the folder."""
    rounds = [json.loads(line) for line in (run / "rounds.jsonl").read_text(encoding="utf-8").splitlines()]
    for entry in rounds if only is None else [rounds[only]]:
        change(entry)
    (run / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rounds), encoding="utf-8")
    return run


def answer_with_noise(run):
    """Lay votes that are noise alone into a run folder, in the two rounds that asked; return the folder."""
    (run / "state").mkdir()
    for answer in (0, 1):
        values = np.round(np.random.default_rng(answer).normal(0, 3.531 * 128, 2 * 26))
        np.save(run / "state" / f"answer-{answer:03}.npy", values)
    return edit_rounds(run, lambda entry: [query.update(noise=3.531) for query in entry["queries"]])
