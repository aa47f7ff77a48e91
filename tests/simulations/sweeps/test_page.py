"""The page of a sweep marks its figures as the pages of its runs do, and says where there is no guarantee."""

import json
import re

import pytest

from simulations.sweeps.render import write_table
from simulations.sweeps.table import read_table
from tests.support.documents import edit
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


def rows_of(folder, caption):
    """The cells of the table with this caption on the page of a sweep, row by row."""
    page = (folder / "report.html").read_text("utf-8")
    table = page.partition(f"<caption>{caption}</caption>")[2].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in table.split("<tr>")[1:]]


def test_figures_have_arrows_marks_and_the_same_footnotes(tmp_path):
    for number in range(2):
        path = run(tmp_path, number, ["method=wasp"], 0.7)
        (path / "metrics.json").write_text(json.dumps(FIGURES))
    page = swept(tmp_path)
    assert [text for text in ("Fidelity (1)", "fid ↓", "PPL ↓", "simulation only") if text not in page.text] == []
    assert sum(attrs.get("class") == "tag" for attrs in page.tags("span")) == 1
    assert "no guarantee" not in page.text.lower()


def test_a_run_without_a_guarantee_is_said_to_have_none_in_the_banner_the_rows_the_runs_and_the_table(tmp_path):
    run(tmp_path, 0, ["privacy.epsilon=4"], 0.7)
    run(tmp_path, 1, ["privacy.epsilon=inf"], 0.8, epsilon="inf")
    page = swept(tmp_path)
    assert page.text.count("∞: no guarantee") == 2
    assert page.first == "No guarantee:"
    assert "| ∞: no guarantee |" in (tmp_path / "table.md").read_text("utf-8")


def test_a_run_that_asked_nobody_has_spent_nothing(tmp_path):
    edit(run(tmp_path, 0, ["method=fusegen"], 0.7), "privacy.json", queries=[], planned_epsilon=0.0)
    one = read_table(tmp_path).runs.loc["0"]
    assert (one.epsilon, one.unprotected) == (0.0, False)


def test_rows_and_runs_have_the_gain_over_the_same_models_without_the_hospitals(tmp_path):
    for number, gain in enumerate((0.04, 0.06)):
        path = run(tmp_path, number, ["method=wasp"], 0.7)
        difference = {"value": gain, "interval": [-0.01, 0.11]}
        as_many = {"accuracy": {"value": 0.64 + gain}}
        group = {"accuracy": {"value": 0.64}, "trained_on": 40, "difference": difference, "as_many": as_many}
        (path / "metrics.json").write_text(json.dumps(FIGURES | {"zero_shot": group}))
    run(tmp_path, 2, ["method=dp_kps"], 0.6)  # has no texts to compare with
    page = swept(tmp_path)
    assert "difference ↑" in page.text
    assert "-0.01 to 0.11" in page.text
    lines = (tmp_path / "table.md").read_text("utf-8").splitlines()
    assert "| method=wasp | 2 | 70.0 ± 0.0 | 69.0 ± 1.4 | 64.0 ± 0.0 | +5.0 ± 1.4 | 4 |" in lines
    assert "| method=dp_kps | 1 | 60.0 | – | – | – | 4 |" in lines
    shown = rows_of(tmp_path, "Means over the runs of each row")
    assert shown[1][:6] == ["method=wasp", "2", "70.0 ± 0.0", "69.0 ± 1.4", "64.0 ± 0.0", "+5.0 ± 1.4"]


@pytest.mark.parametrize("seeds", [1, 2])
def test_two_values_are_a_table_of_rows_under_a_heading_that_names_no_curve(seeds, tmp_path):
    for number in range(2 * seeds):
        epsilon = 1 + number // seeds
        run(tmp_path, number, [f"privacy.epsilon={epsilon}"], 0.7, epsilon=epsilon)
    page = swept(tmp_path)
    assert not list(page.tags("svg"))
    assert "Curves" not in page.text
    assert ("over the seeds" in page.text) == (seeds > 1)
    assert rows_of(tmp_path, "Accuracy by ε")[0] == ["series", "ε 1", "ε 2"]
    assert [row[0] for row in rows_of(tmp_path, "Accuracy by ε")[1:]] == ["all runs"]
