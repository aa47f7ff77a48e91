"""The page of a sweep marks its figures as the pages of its runs do, and says where there is no guarantee."""

import json

from simulations.sweeps.render import write_table
from simulations.sweeps.table import read_table
from tests.support.pages import Page
from tests.support.sweeps import run

FIGURES = {
    "synthetic": {"accuracy": 0.7},
    "fidelity": {"fid": {"value": 0.5}},
    "membership": {"PPL": {"value": 0.6}, "simulation_only": True},
}


def swept(folder):
    write_table(folder)
    return Page((folder / "report.html").read_text("utf-8"))


def test_figures_have_arrows_marks_and_the_same_footnotes(tmp_path):
    for number in range(2):
        path = run(tmp_path, number, ["method=wasp"], 0.7)
        (path / "metrics.json").write_text(json.dumps(FIGURES))
    page = swept(tmp_path)
    assert "fidelity: fid ↓(lower is better)" in page.text
    assert "membership: PPL ↓(lower is better) simulation only" in page.text
    assert sum(attrs.get("class") == "tag" for attrs in page.tags("span")) == 1
    assert "↑ higher is better, ↓ lower is better." in page.text
    assert "95 % interval" in page.text
    assert "no guarantee" not in page.text.lower()


def test_a_run_without_a_guarantee_is_said_to_have_none_in_the_banner_the_rows_the_runs_and_the_table(tmp_path):
    run(tmp_path, 0, ["privacy.epsilon=4"], 0.7)
    run(tmp_path, 1, ["privacy.epsilon=inf"], 0.8, epsilon="inf")
    page = swept(tmp_path)
    assert page.text.count("∞: no guarantee") == 2
    assert page.first == "No guarantee:"
    assert "| ∞: no guarantee |" in (tmp_path / "table.md").read_text("utf-8")


def test_a_run_that_asked_nobody_has_spent_nothing(tmp_path):
    path = run(tmp_path, 0, ["method=fusegen"], 0.7)
    privacy = json.loads((path / "privacy.json").read_text()) | {"queries": [], "planned_epsilon": 0.0}
    (path / "privacy.json").write_text(json.dumps(privacy))
    one = read_table(tmp_path).runs.loc["0"]
    assert (one.epsilon, one.unprotected) == (0.0, False)
