"""The measurement of the smallest leak, on a corpus whose texts have nothing in common."""

import math

import numpy as np
import pytest

from simulations.laboratory.audit import smallest_leak
from simulations.laboratory.audit.smallest_leak import COPIES, Run


@pytest.fixture
def corpus(monkeypatch):
    monkeypatch.setattr(smallest_leak, "_SIDE", 30)
    monkeypatch.setattr(smallest_leak, "SPLITS", 20)
    monkeypatch.setattr(smallest_leak, "values_of", lambda text: set())
    generator = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in generator.integers(10**6, size=12)) for _ in range(160)]
    return smallest_leak._corpus(texts[:60], texts[60:], "a test")


def test_the_smallest_leak_is_that_of_the_arithmetic(corpus):
    # A hypergeometric test of one fifth of 5 % needs 7 of 7 where nothing else is disclosed.
    assert {Run(corpus, 50, number).smallest(0.0) for number in range(4)} <= {6, 7}


def test_what_is_too_small_is_not_found(corpus, monkeypatch):
    monkeypatch.setattr(smallest_leak, "COPIES", COPIES[:1])
    assert Run(corpus, 50, 0).smallest(0.0) == math.inf


def test_copies_are_of_records_of_training(corpus):
    run = Run(corpus, 50, 0)
    flags = run.leaking(run._records[:10])["rare word sequences"]
    assert np.flatnonzero(flags).tolist() == list(range(10))
    # The same texts looked at together disclose the same.
    both = smallest_leak.features.disclosed_records(
        run._records, run._records[:10], nearness=np.zeros((60, 2), dtype=np.float32), personal=None
    )
    assert np.array_equal(both["rare word sequences"], flags)


def test_the_share_of_runs_is_a_quantile_with_its_interval():
    assert smallest_leak.quantile([*range(1, 41)], 100) == "32 (32.00%); 27 to 38"
    assert smallest_leak.quantile([7, math.inf], 100) == "none; 7 to inf"


def test_a_row_has_leaks_guarantees_and_alarms(corpus, monkeypatch, capsys):
    monkeypatch.setattr(smallest_leak, "CORPORA", {"small": lambda _: corpus})
    monkeypatch.setattr(smallest_leak, "COPIES", (6, 12, 24))
    assert smallest_leak.main(["small", "--texts", "40", "--runs", "2"]) == 0
    cells = capsys.readouterr().out.splitlines()[1].split(" | ")
    assert cells[:3] == ["| small", "40", "a test"]
    assert cells[5].endswith(" of 2")
    assert cells[6].endswith("%) |")


def test_a_set_has_texts_of_its_own_or_of_a_chain(tmp_path, monkeypatch):
    monkeypatch.setattr(smallest_leak, "_SIDE", 2)
    monkeypatch.setattr(smallest_leak, "_BANK", 9)
    (tmp_path / "cfpb8").mkdir()
    for part in ("train", "test"):
        rows = "".join(f"{part} a{number} b c,x\n" for number in range(4))
        (tmp_path / "cfpb8" / f"{part}.csv").write_text(f"text,label\n{rows}")
    monkeypatch.setenv("CAUCUS_DATA", str(tmp_path))
    smallest_leak._set.cache_clear()
    corpus = smallest_leak.CORPORA["cfpb8"]
    assert [(corpus(texts).source, len(corpus(texts).texts)) for texts in (4, 5)] == [("the set", 4), ("a chain", 9)]
    smallest_leak._set.cache_clear()
