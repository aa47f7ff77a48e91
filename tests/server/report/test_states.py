"""Verdict, bars, release and terminal agree on every state of a run: what was measured, why not, and who was asked."""

import datetime as dt
import itertools
import json
import re
from pathlib import Path

import pytest

from common.page.words import catalogue
from server.documents.metrics import Metrics
from server.documents.run import COMPLETE, PARTIAL
from server.domain import Candidate
from server.metrics.intervals import OVER_TRAININGS
from server.report.dataset_card import Terms, card, page
from server.report.ending import ending
from server.report.facts import gather
from server.report.figure_tables import tables
from server.report.quality import read_utility, reason_not_measured
from server.report.verdict import Judgement, draw_bars
from server.report.write import RELEASE as FILE
from server.report.write import escape_markdown, write_report
from server.settings.evaluation import METRICS
from tests.support.documents import edit, edit_rounds, privacy, summary, summary_json, write_run
from tests.support.pages import Page
from tests.support.screens import assert_accepted, under_headings

COUNT = {"name": "evaluation", "kind": "correct count"}
ACCURACY = {"value": 0.7, "interval": [0.6, 0.8], "rows": 90}
MEASURED = {
    "accuracy": {
        "test_records": 90,
        "synthetic": {"records": 40, "accuracy": 0.7},
        "majority_class": {"accuracy": 0.3},
    },
    "several": {"test_records": 90, "utility": {"definition": f"Over 3 {OVER_TRAININGS}.", "accuracy": ACCURACY}},
    "label sets": {"test_records": 90, "label_sets": {"trained_on": 40, "micro_f1": ACCURACY}},
    "nearness": {"test_records": 90, "nearness": {"texts": 40, "fid": {"value": 0.5, "interval": [-0.1, 1.1]}}},
    "federated": {"federated": {"accuracy": ACCURACY}},
}
TESTS = vars(catalogue("server.report").tests)
OF_SOME = vars(catalogue("server.report").tests_of_some)
REASON = "for this and no other reason"
FAILED = {"value": None, "reason": REASON}
UNMEASURED = {
    "nothing": {},
    "drowned": {"federated": {"accuracy": FAILED, "records": {"value": 3.0}}},
    "failed": {"test_records": 90, "utility": FAILED},
    "far": {"test_records": 2, "utility": {"value": None, "reason": "no labels"}, "nearness": {"fid": FAILED}},
}


def written(folder, metrics, *, status=COMPLETE, texts=40, **changes):
    run = write_run(folder / "run", simulation=False, **changes)
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "run.json").write_text(json.dumps(summary_json(status=status)))
    if not texts:
        (run / "synthetic.jsonl").write_text("")
    write_report(run)
    return run


def section(run, heading):
    return (run / FILE).read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("metrics", MEASURED.values(), ids=MEASURED)
def test_what_was_measured_is_said_everywhere_to_be_measured_and_tested(tmp_path, metrics):
    run = written(tmp_path, metrics)
    facts, said = gather(run).to_json(), "\n".join(ending(run)).replace(str(run), "")
    assert facts["bars"]["rows"]
    assert not facts["bars"]["missing"]
    for sentence in (facts["verdict"]["sentence"], said):
        assert "not measured" not in sentence.lower()
        assert "70" in sentence or "0.5" in sentence
    assert "Nothing." not in section(run, "What was tested")


@pytest.mark.parametrize(("name", "status", "texts"), [*itertools.product(UNMEASURED, (COMPLETE, PARTIAL), (0, 40))])
def test_what_was_not_measured_has_one_reason_everywhere(tmp_path, name, status, texts):
    metrics = UNMEASURED[name]
    run = written(tmp_path, metrics, status=status, texts=texts)
    facts, said = gather(run).to_json(), "\n".join(ending(run)).replace(str(run), "")
    reason = reason_not_measured(Metrics(content=metrics), complete=status == COMPLETE, texts=texts)
    assert (reason == REASON) == (status == COMPLETE and texts > 0 and name != "nothing")
    assert f"{Judgement.NOT_MEASURED}: {reason}\n" in said
    assert facts["bars"]["missing"] == reason
    assert reason in facts["verdict"]["sentence"] or not texts
    assert "Nothing." in section(run, "What was tested") or name == "drowned"


@pytest.mark.parametrize("metric", METRICS)
def test_every_group_of_figures_is_named_as_tested_or_not(metric):
    assert metric.replace("_", " ") in TESTS


def test_a_test_is_either_done_or_not(run):
    write_report(run)
    done, missing = section(run, "What was tested"), section(run, "What was not tested")
    for title in TESTS:
        named = f"- **{title.capitalize()}**"
        assert (named in done) != (named in missing)


def test_what_others_wrote_stays_text(run):
    edit(run, "run.json", purpose="a | b\n## <b>Approved</b>")
    write_report(run)
    assert r"| Purpose | a \| b \#\# \<b\>Approved\</b\> |" in (run / FILE).read_text("utf-8")
    assert escape_markdown("[x](y)") == r"\[x\](y)"


def test_the_reason_of_a_failed_test_is_in_the_list_of_what_was_not_tested(tmp_path):
    names = [title for title in OF_SOME | TESTS if title != "privacy"]
    metrics = {title.replace(" ", "_"): {"definition": "d", "one": FAILED, "two": FAILED} for title in names}
    run = written(tmp_path, metrics | {"privacy": FAILED})
    assert section(run, "What was tested").strip() == "Nothing."
    listed = section(run, "What was not tested")
    for title in (*names, "privacy"):
        assert re.search(rf"- \*\*{title.capitalize()}\*\*, .*: {REASON}\n", listed)
    (tmp_path / "other").mkdir()
    other = section(written(tmp_path / "other", {}), "What was not tested")
    assert not any(f"**{title.capitalize()}**" in other for title in OF_SOME)


def test_the_worst_label_is_the_figure_s(tmp_path):
    worst = {"value": 0.8, "interval": [0.7, 0.88], "rows": 100, "definition": "b: the worst of 2."}
    confused = {"a": {"a": 90}, "b": {"b": 80, "a": 20}, "rare": {"a": 1}}
    metrics = {
        "synthetic": {"accuracy": 0.8, "confusion": confused},
        "utility": {"accuracy": ACCURACY, "worst_label": worst},
    }
    tested = section(written(tmp_path, metrics), "What was tested")
    assert all(fact in tested for fact in ("80.0%", worst["definition"]))
    assert "rare" not in tested


@pytest.mark.parametrize("metrics", MEASURED.values(), ids=MEASURED)
def test_intervals_are_drawn_within_the_drawing_and_say_what_they_are_over(tmp_path, metrics):
    html = (written(tmp_path, metrics) / "report.html").read_text("utf-8")
    made = draw_bars(Metrics(content=metrics))
    assert f"interval, {made.over};" in Page(html).text.replace("\N{NO-BREAK SPACE}", " ")
    reaches = [attrs for attrs in Page(html).tags("rect") if attrs.get("class") == "reach"]
    assert len(reaches) == sum(bar.interval is not None for bar in made.rows)
    for attrs in reaches:
        assert float(attrs["x"]) >= 0
        assert float(attrs["x"]) + float(attrs["width"]) <= 100.1


@pytest.mark.parametrize(("labels", "heading"), [(["a"], "texts (share)"), (["a", "b"], "texts (share of all labels)")])
def test_a_share_in_the_table_of_labels_is_of_what_its_heading_says(tmp_path, labels, heading):
    run = written(tmp_path, {})
    (run / "synthetic.jsonl").write_text(json.dumps({"text": "t", "labels": labels, "model": "m", "round": 1}) + "\n")
    assert heading in Page(write_report(run).read_text("utf-8")).text
    assert gather(run).labels.rows[0].share == 1 / len(labels)


NOTHING = {"epsilon": "inf", "planned_epsilon": "inf"}
NOT_ASKED = {"queries": [], "planned_epsilon": 0.0, "spent": {"epsilon": 0, "queries_asked": 0, "queries_planned": 0}}
STOPPED = {"spent": {"epsilon": 0, "queries_asked": 0, "queries_planned": 4}}
EARLIER = {"earlier": {"run": "first-1", "plan_digest": "ab", "encoder": "cd"}}


@pytest.mark.parametrize(
    ("changes", "approved"),
    [
        ({}, "Each hospital took part"),
        (NOT_ASKED, "none had a plan"),
        (STOPPED, "when the run stopped"),
        (EARLIER, "first-1"),
    ],
)
def test_who_decided_is_said_of_hospitals_that_were_asked(tmp_path, changes, approved):
    decided = section(written(tmp_path, {}, **changes), "Who decided").partition("\nWhether these texts")[0]
    assert approved in decided
    assert ("Each hospital took part" in decided) == (not changes)


TRAINED = {"kind": "fine-tuned samples", "longest": 200, "steps": 100, "noise_multiplier": 1.1, "mechanism": "dp-sgd"}
ASKED = {
    "votes": {},
    "votes of one hospital": {"parties": 1},
    "a count alone": {"queries": [COUNT]},
    "votes and a count": {"queries": [{}, COUNT]},
    "models of hospitals": {"queries": [TRAINED]},
    "texts of hospitals": {"queries": [{"longest": 90}]},
    "votes without noise": NOTHING,
    "votes at an infinite epsilon": {"planned_epsilon": "inf"},
    "nothing": NOT_ASKED,
    "a baseline, which may show records to the models": NOT_ASKED | {"planned_epsilon": "inf"},
    "no proof": {"unproven": ["seeds"], "queries": [{"longest": 90}]},
}
"""What hospitals are asked, by which title, lead and card say what steered the texts and what models have seen."""


def test_title_lead_and_card_of_a_run_say_what_was_accepted(tmp_path):
    texts, terms = [Candidate(text="t", label="flu", model="m", round=1)], Terms(license="cc0-1.0")
    screens = {}
    for name, changes in ASKED.items():
        facts = gather(write_run(tmp_path / name, **changes)).to_json()
        made = card(summary(), privacy(**changes), terms, texts=texts, public=[], published=dt.date(2026, 1, 1))
        screens[name] = (facts["title"], facts["lead"], made.collection)
    assert_accepted(under_headings(screens), Path(__file__).parent / "screens" / "titles.txt")


def test_the_page_of_a_data_set_says_what_was_accepted():
    texts = [Candidate(text="t", label="flu", model="m", round=1)]
    terms = Terms(license="cc0-1.0", language="en", creator="A ward")
    about = {
        "started": "2026-11-24",
        "models": ["m"],
        "encoder": "minilm",
        "labels": {"flu": "influenza", "cold": None},
    }
    made = card(summary(**about), privacy(), terms, texts=texts, public=[], published=dt.date(2026, 1, 1))
    assert_accepted(page(made), Path(__file__).parent / "screens" / "dataset.txt")


def test_figures_on_other_test_texts_are_no_references():
    figures = {"perplexity": {"value": 3.0}}
    for test, columns in (("own.csv", ["value"]), (None, ["synthetic texts", "real against real"])):
        groups = Metrics(
            content={"language": figures | ({"test": test} if test else {}), "language_real": figures}
        ).groups
        assert tables(groups)[0]["columns"] == columns
    encoder = {"utility_encoder": {"accuracy": 0.9}, "test": "own.csv"}
    assert read_utility(Metrics(content=encoder)).rows == ()


@pytest.mark.parametrize(
    ("costs", "money", "said"),
    [
        ({"urban": None}, {"urban": None}, "price unknown"),
        (
            {"urban": 0.25, "rural": None},
            {"urban": 0.75, "rural": None},
            "0.75, in the currency of the prices, and some at unknown prices",
        ),
    ],
)
def test_money_of_a_model_at_an_unknown_price_is_not_0(tmp_path, costs, money, said):
    paid = {model: {"replies": 2, "cost": cost} for model, cost in costs.items()}
    run = edit_rounds(written(tmp_path, {}), lambda entry: entry.update(paid=paid))
    assert gather(run).to_json()["cost"]["money"] == money
    assert re.search(rf"Paid to models\s*{said}", Page(write_report(run).read_text("utf-8")).text)
