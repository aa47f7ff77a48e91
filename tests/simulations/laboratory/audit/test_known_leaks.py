"""The table of known leaks, from one run of the smallest kind."""

import logging

from simulations.laboratory.audit import known_leaks


def test_a_row_has_a_test_for_each_feature(tmp_path, monkeypatch, capsys):
    (tmp_path / "small").mkdir()
    for part in ("train", "test"):
        rows = "".join(f"{part} number {number} came with a cough {number * number},x\n" for number in range(30))
        (tmp_path / "small" / f"{part}.csv").write_text(f"text,label\n{rows}{rows.replace(',x', ' and fever,y')}")
    monkeypatch.setenv("CAUCUS_DATA", str(tmp_path))
    sizes = ["--records", "40", "--texts", "20", "--seeds", "1"]
    try:
        assert known_leaks.main(["small", "--methods", "rupta", *sizes]) == 0
    finally:
        logging.disable(logging.NOTSET)
    head, row = capsys.readouterr().out.splitlines()
    assert len(head.split(" | ")) == len(row.split(" | ")) == 8
    assert row.startswith("| small | rupta | ")
