import json
import sys

import pytest

from simulations.laboratory.benchmarks import __main__ as bench
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark

RATIOS = [Ratio(name="a", to="b", value=0.5), Ratio(name="c", to="b", value=2.0, goal=1.25)]


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A page and a record of its own, of a benchmark that needs no process."""
    monkeypatch.setattr(bench, "RECORDED", tmp_path / "ratios.json")
    monkeypatch.setattr(bench, "PAGE", tmp_path / "README.md")
    (tmp_path / "ratios.json").write_text("{}")
    (tmp_path / "README.md").write_text(f"before\n{bench._BEGIN}\nold\n{bench._END}\nafter\n")
    monkeypatch.setattr(bench, "ratios_of", lambda name: RATIOS)
    return tmp_path


def test_ratios_are_printed_with_their_goal_and_written_where_the_last_argument_says(tmp_path, monkeypatch):
    file = tmp_path / "ratios.json"
    monkeypatch.setattr(sys, "argv", ["bench", "--size", "3", "--ratios", str(file)])
    seen = []
    benchmark(lambda arguments: seen.append(arguments) or RATIOS)
    assert seen == [["--size", "3"]]
    assert [Ratio(**row) for row in json.loads(file.read_text())] == RATIOS
    assert [str(ratio).split()[:2] for ratio in RATIOS] == [["0.500", "a,"], ["2.000", "MISSED"]]


def test_accepted_ratios_are_recorded_and_stand_in_the_page(recorded, capsys):
    assert bench.main(["votes", "--accept"]) == 0
    assert json.loads((recorded / "ratios.json").read_text())["votes"]["ratios"][1]["value"] == 2.0
    page = (recorded / "README.md").read_text()
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "old" not in page
    assert "| votes | c | b | 2 | 1.25 |" in page
    capsys.readouterr()
    assert bench.main(["votes"]) == 0
    assert "| votes | a | b | 0.5 |  | 0.5 |" in capsys.readouterr().out


@pytest.mark.parametrize(("value", "code"), [(0.74, 0), (0.76, 1)])
def test_a_ratio_of_more_than_one_and_a_half_times_the_recorded_one_fails(recorded, monkeypatch, capsys, value, code):
    bench.main(["votes", "--accept"])
    monkeypatch.setattr(bench, "ratios_of", lambda name: [Ratio(name="a", to="b", value=value)])
    before = (recorded / "README.md").read_text()
    assert bench.main(["votes"]) == code
    assert ("votes, a: 0.76" in capsys.readouterr().out) == bool(code)
    assert (recorded / "README.md").read_text() == before
