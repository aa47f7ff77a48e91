"""The page is whole, loads nothing, and shows hostile or missing input as what it is."""

import base64
import hashlib
import itertools
import json
import re
from pathlib import Path

import pytest

from common.errors import DataError
from server.report.write import write_report
from tests.support.documents import HOSTILE, write_run
from tests.support.pages import report
from tests.support.screens import assert_accepted

SCREENS = Path(__file__).parent / "screens"


def test_every_section_is_there_and_says_what_was_accepted(run):
    page = report(run)
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    assert ids >= {"guarantee", "open", "utility", "rounds", "queries", "samples", "configuration", "ledger"}
    lines = (line.strip() for line in page.text.splitlines())
    assert_accepted("\n".join(filter(None, lines)) + "\n", SCREENS / "report.txt")
    assert_accepted((run / "release.md").read_text("utf-8"), SCREENS / "release.txt")


def test_the_first_screen_is_read_at_a_glance(run):
    """In bold stand short answers, with at most three numbers, and no line begins with the sign of a percentage."""
    first = write_report(run).read_text("utf-8").partition("<main>")[2].partition("<nav")[0]
    title = re.search("<h1>(.*)</h1>", write_report(run).read_text("utf-8"))[1]
    bold = [title, *re.findall("<strong.*?>(.*?)</strong>", first)]
    assert len(bold) > 3
    assert len(re.findall(r"\d[\d.,]*", " ".join(bold))) <= 3
    assert "%" in first
    assert not re.search(r"(\s|&nbsp;)%", first)


@pytest.mark.parametrize(("epsilon", "most"), [(40.0, "100"), (4.0, "98.21"), (1.0986, "75")])
def test_the_most_right_guesses_are_said_as_in_the_sentence_above_the_bar(tmp_path, epsilon, most):
    figures = {"planned_epsilon": epsilon, "released_epsilon": epsilon, "against_colluders": []}
    page = report(write_run(tmp_path / "run", delta=0.0, **figures)).text
    assert f"in at most {most}% of cases" in page
    assert f"Red: up to {most}, with the texts." in page


def test_nothing_is_fetched(run):
    page = report(run)
    for tag, attrs in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        for name, value in attrs.items():
            assert not name.startswith("on")
            assert name not in {"src", "srcset", "style"}
            if name in {"href", "action"}:
                assert value.startswith("#")
    policy = next(attrs["content"] for attrs in page.tags("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'")
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_all_texts_are_embedded_and_a_hostile_one_stays_text(run):
    page = report(run)
    data, code = page.scripts  # two and no third
    assert "<" not in data
    samples = json.loads(data)
    assert (samples["labels"], samples["models"]) == (["sepsis", "pneumonia"], ["urban", "rural"])
    assert samples["rounds"] == ["1", "2", "3"]  # as people read them
    assert (samples["rows"][1], len(samples["rows"])) == ([HOSTILE, 1, 1, 0], 40)
    assert "alert" not in code
    assert HOSTILE in page.text  # among the examples of its label


def test_accessible_structure(run):
    page = report(run)
    assert page.tags("html")[0]["lang"] == "en"
    assert len(page.tags("main")) == len(page.tags("header")) == len(page.tags("footer")) == len(page.tags("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3"}]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    pictures = [attrs for attrs in page.tags("svg") if attrs.get("aria-hidden") != "true"]
    assert len(pictures) == 3
    assert all(set(attrs["aria-labelledby"].split()) <= set(ids) for attrs in pictures)
    assert {attrs["href"][1:] for attrs in page.tags("a")} <= set(ids)


def test_banners(tmp_path):
    plain = report(write_run(tmp_path / "plain", simulation=False))
    assert not any("banner" in attrs.get("class", "") for attrs in plain.tags("p"))
    spent = {"epsilon": "inf", "queries_asked": 2, "queries_planned": 2}
    open_run = report(write_run(tmp_path / "open", epsilon="inf", against_colluders=[], spent=spent))
    assert "No privacy: no noise was added to the hospitals' answers (ε is infinite)." in open_run.text
    assert open_run.first.startswith("No privacy:")
    assert "ε = ∞" in open_run.text
    assert "protected by differential privacy" not in open_run.text
    assert "A trial on one computer, which had all hospitals' records: a simulation." in open_run.text
    assert sum("banner" in attrs.get("class", "") for attrs in open_run.tags("p")) == 1


@pytest.mark.parametrize(
    "name", ["config.yaml", "synthetic.jsonl", "rounds.jsonl", "privacy.json", "metrics.json", "run.json"]
)
def test_a_missing_file_is_named(run, name):
    (run / name).unlink()
    assert f"{name} is missing." in report(run).text


def test_an_empty_run_promises_nothing(tmp_path):
    text = report(tmp_path).text
    assert "The run did not reach its end." in text
    assert "Treat these texts as private data." in text
    assert "ε =" not in text


def test_a_partial_run_says_how_far_it_came(tmp_path):
    run = write_run(tmp_path / "run", rounds=1, spent={"epsilon": 2.1, "queries_asked": 1, "queries_planned": 4})
    ended = json.loads((run / "run.json").read_text()) | {"status": "partial", "reason": "Too few parties were left."}
    (run / "run.json").write_text(json.dumps(ended))
    (run / "metrics.json").unlink()
    text = report(run).text
    assert all(fact in text for fact in (ended["reason"], "1 of 4", "Not measured", "ε = 2.1"))


def test_half_a_surrogate_pair_is_replaced(run):
    with (run / "synthetic.jsonl").open("a") as file:
        file.write('{"text": "half \\ud800 pair", "label": "sepsis", "model": "urban", "round": 2}\n')
    assert json.loads(report(run).scripts[0])["rows"][-1][0] == "half ? pair"


def test_an_earlier_page_is_replaced_and_nothing_else_left(run):
    before = {path.name for path in run.iterdir()}
    assert write_report(run).read_bytes() == write_report(run).read_bytes()
    assert {path.name for path in run.iterdir()} == before | {"report.html", "report.json", "release.md"}


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match="expected a folder"):
        write_report(tmp_path / "nowhere")


def test_page_of_six_thousand_texts_has_each_once(tmp_path):
    run = write_run(tmp_path / "run", texts=6000)
    data = sum(path.stat().st_size for path in run.iterdir())
    page = write_report(run)
    # The fixed part is about 40 kB; every text stands in the page once, with less around it than in its own file.
    assert page.stat().st_size < data + 60_000
