"""The files for other projects' evaluation hold released and held-out texts, and nothing private."""

import csv
import json

import numpy as np
import pytest

from common.errors import DataError
from simulations.laboratory.peers import suites
from tests.support.runs import labelled, lines, private_texts, tiny, words_in


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_run_folder_becomes_the_suites_input_with_our_figures(tmp_path, monkeypatch):
    given = {"value": 0.5}
    monkeypatch.setattr(suites, "fidelity", lambda *_: {"definition": "", "fid": given})  # seconds to import
    folder = tiny(tmp_path / "run", *labelled(tmp_path / "data"), "method.samples=20", "llm.most_lost=1")
    out = tmp_path / "out"
    suites.main([str(folder), str(out)])
    released = [(line["text"], line["label"]) for line in lines(folder, "synthetic.jsonl")]
    assert [(row["text"], row["label"]) for row in rows(out / "synthetic.csv")] == released
    assert len(rows(out / "real.csv")) == 10
    pairs = rows(out / "pairs.csv")
    assert len(pairs) == 10
    assert {pair["source"] for pair in pairs} <= {text for text, _ in released}
    assert len(np.load(out / "real.embeddings.npz")["embeddings"]) == 10
    ours = json.loads((out / "ours.json").read_text("utf-8"))
    assert ours["fid"] == 0.5
    assert 0 <= ours["accuracy"] <= 1
    for path in out.iterdir():
        assert not words_in(path.read_bytes(), private_texts(tmp_path))


def test_without_held_out_texts_there_is_nothing_to_compare_with(tmp_path):
    folder = tiny(tmp_path / "run", *labelled(tmp_path / "data"), "task.test=null", "method.samples=20")
    with pytest.raises(DataError, match="held-out"):
        suites.write(folder, tmp_path / "out")
