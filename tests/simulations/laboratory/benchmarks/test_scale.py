from pathlib import Path

from common.ledger.ledger import Ledger
from simulations.laboratory.benchmarks import scale


def test_each_part_is_measured_at_both_sizes_and_its_growth_is_a_ratio(capsys):
    sizes = ["--texts", "60", "120", "--runs", "2", "4", "--replies", "20", "40", "--dimensions", "32"]
    ratios = scale.main(sizes)
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["part", "of"]
    for name in ("FID", "distinct 3-grams", "map", "query to three parties", "self-similarity, duplicates"):
        assert [line.split()[len(name.split())] for line in lines if line.startswith(name)] == ["60", "120"]
    assert sum(line.startswith("ledger") for line in lines) == 8
    assert sum(line.startswith("cache") for line in lines) == 12
    assert len(ratios) == 2 * 5 + 3 + 2 + 2
    assert all(ratio.value > 0 for ratio in ratios)
    assert {ratio.to for ratio in ratios} == {"60 texts", "2 runs", "20 replies", "20 vectors"}


def test_the_ledger_that_is_measured_is_sound(tmp_path: Path):
    scale._write_ledger(tmp_path / "ledger.db", 3)
    ledger = Ledger(tmp_path / "ledger.db")
    assert ledger.verify().events == 3 * 4 * 3
    assert all(entry.committed and entry.survivors == {0, 1, 2} for entry in ledger.entries())


def test_a_quadratic_part_is_seen(monkeypatch, capsys):
    monkeypatch.setitem(scale._PARTS, "FID", lambda texts, _: bytearray(len(texts) ** 2))
    _, peak = scale._of_texts("FID", [1000, 8000], 8)
    assert peak.value > 7
    assert "FID" in capsys.readouterr().out
