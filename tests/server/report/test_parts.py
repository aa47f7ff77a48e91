"""What pages are made of: figures of any kind, votes, plots; and input that is not as it should be."""

import json
import math

import numpy as np
import pytest

from server.documents.maps import PrivateMap, TextMap
from server.documents.metrics import Metrics
from server.report import figure_tables
from server.report.facts import gather
from server.report.votes import read_votes
from server.report.write import write_report
from tests.support.documents import edit_rounds, privacy, write_run
from tests.support.pages import report

METRICS = {
    "definition": "Of everything.",
    "test_records": 7,
    "odd": {"value": None, "reason": "there is no record"},
    "utility": {
        "definition": "A small model.",
        "note": "one label was never learned",
        "accuracy": {"value": 0.5, "interval": [0.4, 0.6], "rows": 7},
        "perplexity": {"value": "inf", "rows": 7},
        "of_a_kind": {"email": {"value": 2.0}},
    },
    "utility_real": {
        "accuracy": {"value": 0.75},
        "perplexity": 3.0,
        "of_a_kind": {"email": 0},
        "simulation_only": True,
    },
    "membership": {"definition": "An attack.", "area": 0.5, "simulation_only": True},
    "empty": {"definition": "Of nothing."},
}


@pytest.mark.parametrize("simulation", [True, False])
def test_files_of_a_simulation_which_show_figures_of_records_are_for_their_owner_alone(simulation, tmp_path):
    run = write_run(tmp_path / "run", simulation=simulation)
    write_report(run)
    files = [run / name for name in ("report.json", "report.html", "release.md")]
    assert {path.stat().st_mode & 0o077 == 0 for path in files} == {simulation}


def test_a_run_that_does_not_say_what_it_is_counts_as_a_simulation(run):
    (run / "privacy.json").unlink()
    assert write_report(run).stat().st_mode & 0o077 == 0


def test_the_same_figures_of_private_records_stand_beside():
    made = {table["title"]: table for table in figure_tables.tables(Metrics(content=METRICS).groups)}
    assert list(made) == ["In general", "Utility", "Membership"]
    assert made["Utility"]["columns"] == ["synthetic texts", "real against real"]
    assert made["Utility"]["marked"] == ["real against real"]
    assert [[cell.value for cell in row["cells"]] for row in made["Utility"]["rows"]] == [[math.inf, 3], [2, 0]]
    assert [row["better"] for row in made["Utility"]["rows"]] == ["lower", "lower"]


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("fid", "lower"),
        ("mauve", "higher"),
        ("fidelity: mauve", "higher"),
        ("privacy: of a kind: email", "lower"),
        ("stated epsilon", None),
        ("nearness: real", "lower"),
        ("spans: real", "higher"),
        ("spans: zero shot", "higher"),
        ("label sets: zero shot: micro f1", "higher"),
    ],
)
def test_a_figure_is_better_in_one_direction_or_has_none(name, direction):
    assert figure_tables.better(name) == direction


def test_every_figure_is_on_the_page_with_its_interval_reason_and_mark(run):
    (run / "metrics.json").write_text(json.dumps(METRICS))
    page = report(run)
    for fact in ("0.4 to 0.6", "∞", "there is no record", "not measured", "An attack.", "email"):
        assert fact in page.text
    # The row in the table of utility, the private column of the shared table, and the table of its own.
    assert sum(attrs.get("class") == "tag" for attrs in page.tags("span")) == 3


def test_the_twin_has_the_same_facts_and_is_strict_json(run):
    write_report(edit_rounds(run, lambda entry: entry.update(fid=float("nan"), epsilon=float("inf")), only=0))
    twin = json.loads((run / "report.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert twin["released"] == gather(run).to_json()["released"]
    assert (twin["rounds"][0]["fid"], twin["rounds"][0]["epsilon"]) == (None, "inf")
    assert twin["privacy"]["statement"].startswith("The hospitals' records are protected")
    assert twin["cost"]["input_tokens"] == 3000
    assert "Note 7" not in (run / "report.json").read_text("utf-8")  # texts stay in their own file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", "{}"),
        ("privacy.json", '{"epsilon": 4}'),
        ("privacy.json", "null"),
        ("run.json", '{"status": "complete", "method": "m", "task": "t", "parties": 3, "seconds": "long"}'),
        ("metrics.json", '["accuracy"]'),
        ("metrics.json", '{"utility": {"accuracy": {"value": "much"}}}'),
        ("metrics.json", '{"utility": {"accuracy": {"value": 1, "interval": 3}}}'),
        ("metrics.json", '{"nearest_texts": [1]}'),
        (TextMap.FILE, '{"points": [[0, "x"]]}'),
        (TextMap.FILE, '{"points": [[NaN, 1]]}'),
        (PrivateMap.FILE, '{"points": {"sepsis": [1]}}'),
    ],
)
def test_a_file_that_is_not_ours_is_named(run, name, content):
    (run / name).write_text(content)
    (problem,) = gather(run).problems
    assert problem.startswith(f"{name} ")
    assert problem in report(run).text


@pytest.mark.parametrize("name", ["synthetic.jsonl", "rounds.jsonl"])
@pytest.mark.parametrize(
    "line", ["[]", "{}", "null", '{"text": 3, "label": "a", "model": "m", "round": 0}', '{"text": "zyx', "\x00"]
)
def test_a_line_that_is_not_ours_is_named_not_quoted_and_the_others_are_shown(run, name, line):
    whole = (run / name).read_text("utf-8")
    (run / name).write_text(whole + line + "\n", encoding="utf-8")
    page = report(run)
    count = whole.count("\n") + 1
    assert f"{name}: 1 of {count} lines" in page.text
    assert "40 synthetic texts" in page.text
    assert "zyx" not in page.text


@pytest.mark.parametrize(
    "change",
    [
        {"requested": [7]},
        {"tokens": {"input": 3}},
        {"calls": None},
        {"paid": {"urban": 3}},
        {"queries": [{"index": 0}]},
    ],
)
def test_a_round_without_its_numbers_is_left_out_and_named(run, change):
    page = report(edit_rounds(run, lambda entry: entry.update(change), only=1))
    assert "rounds.jsonl: 1 of 3 lines" in page.text
    assert "Each round" in page.text


@pytest.mark.parametrize("name", ["spent", "queries", "delta", "against_colluders", "adjacency"])
def test_half_a_privacy_statement_is_none(run, name):
    privacy = json.loads((run / "privacy.json").read_text())
    del privacy[name]
    (run / "privacy.json").write_text(json.dumps(privacy))
    page = report(run)
    assert "privacy.json is not in the format of this program." in page.text
    assert "Treat these texts as private data." in page.first + page.text
    assert "ε = 4" not in page.text


def test_bytes_that_are_no_text_are_named(run):
    (run / "config.yaml").write_bytes(b"\xff\xfe\xff")
    assert "config.yaml is not UTF-8." in report(run).text


def test_a_set_without_texts_and_one_of_one_label(tmp_path):
    empty = write_run(tmp_path / "empty")
    (empty / "synthetic.jsonl").write_text("")
    assert "There are no texts." in report(empty).text
    single = write_run(tmp_path / "single", texts=2)
    row = {"text": "", "label": "only", "model": "m", "round": 0}
    (single / "synthetic.jsonl").write_text(json.dumps(row) + "\n")
    (single / TextMap.FILE).write_text('{"points": [[1, 2]]}')
    page = report(single)
    assert "1 synthetic texts" in page.text
    assert {"plot-map", "plot-lengths"} <= {attrs.get("id") for attrs in page.tags("figure")}


def test_private_records_are_drawn_in_a_simulation_alone(tmp_path):
    for simulation in (True, False):
        run = write_run(tmp_path / str(simulation), simulation=simulation)
        (run / TextMap.FILE).write_text(json.dumps({"points": [[at, 0] for at in range(40)]}))
        (run / PrivateMap.FILE).write_text(json.dumps({"points": {"sepsis": [[5, 5]]}}))
        page = report(run)
        private = [attrs for attrs in page.tags("path") if "s1" in attrs.get("class", "") and "data-label" in attrs]
        assert len(private) == simulation
        assert ("map_private.json was not read" in page.text) != simulation
        assert (gather(run).simulated == {}) != simulation


def test_a_map_of_other_texts_is_not_drawn(run):
    (run / TextMap.FILE).write_text('{"points": [[1, 2]]}')
    page = report(run)
    assert "map.json does not belong to the texts in synthetic.jsonl." in page.text
    assert "plot-map" not in {attrs.get("id") for attrs in page.tags("figure")}


def answered(run, *, scale=3.5, votes=None):
    """Lay an answer into the run folder; votes are on a grid of 128."""
    (run / "state").mkdir(exist_ok=True)
    np.save(run / "state" / "answer-000.npy", np.arange(-256, 256, 8) if votes is None else votes)
    return gather(edit_rounds(run, lambda entry: entry["queries"][0].update(scale=scale), only=0)).votes


def test_votes_are_in_votes_and_in_both_directions(run):
    nearest, furthest = answered(run, scale=0.5)
    assert (nearest.direction, furthest.direction, nearest.candidates) == ("nearest", "furthest", 32)
    assert nearest.quantiles[0] == -2
    assert furthest.quantiles[-1] == pytest.approx(1.9375, abs=1e-3)
    assert (nearest.beyond_noise, furthest.beyond_noise) == (0, pytest.approx(15 / 32, abs=1e-4))
    assert sum(nearest.counts) == 32


def test_exact_votes_are_not_shown(run):
    assert answered(run, scale=0.0) == []
    document = privacy(queries=[{"name": "nearest and furthest votes", "summed": False}])
    assert list(read_votes(run, document, gather(run).rounds)) == []


def test_an_answer_that_cannot_be_read_is_left_out(run):
    assert len(answered(run)) == 2
    (run / "state" / "answer-000.npy").write_bytes(b"damaged")
    assert gather(run).votes == []
    assert "Noised votes" not in report(run).text
