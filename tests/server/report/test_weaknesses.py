"""Each weakness of a run that has it, and of one that has not."""

import ast
import inspect
import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.domain import UNLABELLED
from server.documents.metrics import Metrics
from server.documents.run import Weakness
from server.domain import Candidate
from server.llm.clean import DROPPING
from server.planning.signal import FEWER_CANDIDATES
from server.report import weaknesses as weaknesses_module
from server.report.votes import VoteHistogram
from server.report.weaknesses import find_weaknesses, read_weaknesses, votes_above_forecast, votes_were_noise
from server.report.write import write_report
from tests.support.documents import privacy, report_of, summary, write_run
from tests.support.pages import Page
from tests.support.screens import assert_accepted, under_headings

LABELS = {"sepsis": "an infection of the blood", "flu": ""}
TEXTS = [
    Candidate.from_json({"text": f"Note {at}.", "label": ["sepsis", "flu"][at % 2], "model": "m", "round": 1})
    for at in range(40)
]


def line(number, **changes):
    plain = {"requested": {"m": 20}, "lost": {"m": 0}, "candidates": 40, "fid": 1.0, "fid_error": 0.02}
    return report_of(number + 1, **plain | changes)


def weaknesses_of(*, run=None, rounds=(), votes=(), metrics=None, texts=TEXTS, **changes):
    """What is weakness of a run that is fine in all else."""
    return find_weaknesses(
        summary(**{"labels": LABELS, "warnings": {}} | (run or {})),
        privacy=privacy(**{"simulation": True} | changes),
        rounds=rounds,
        metrics=Metrics(content=metrics or {}),
        texts=texts,
        votes=votes,
    )


def scored(accuracy, *, majority=0.5, tested=100):
    return {
        "test_records": tested,
        "synthetic": {"accuracy": accuracy},
        "majority_class": {"accuracy": majority},
    }


def compared(low, high, **more):
    """Metrics in which the difference to the same models without the hospitals has this interval."""
    difference = {"value": (low + high) / 2, "interval": [low, high]}
    group = {"trained_on": 40, "accuracy": {"value": 0.8}, "difference": difference}
    return scored(0.8) | {"zero_shot": group} | more


def shares(**of_records):
    return {"label_shares": {"simulation_only": True, "records": of_records}}


WARNING = "votes will be noise: 0.5 votes a candidate against 3 of noise; it takes more records or a larger epsilon"


def vote(spread, *, noise=3.0, candidates=100, query="votes"):
    return VoteHistogram(
        query=query,
        direction="nearest",
        round=1,
        candidates=candidates,
        mechanism="gaussian",
        scale=noise,
        spread=spread,
        noise=noise,
        quantiles=(),
        beyond_noise=0.0,
        edges=(),
        counts=(),
        open_end=False,
    )


REPEATED = [replace(text, text=f"note {at % 9}") for at, text in enumerate(TEXTS)]
FAULTS = {
    "below guessing": {"metrics": scored(0.1), "rounds": [line(0)]},
    "not above guessing": {"metrics": scored(0.58)},
    "no gain": {"metrics": compared(-0.02, 0.06)},
    "loss": {"metrics": compared(-0.1, -0.02)},
    "votes were noise": {"votes": [vote(3.1)]},
    "votes will be noise": {"run": {"warnings": {"votes": f"votes will be noise; it takes {FEWER_CANDIDATES}"}}},
    "no text of a label": {"texts": TEXTS[::2]},
    "labels differ": {"metrics": shares(sepsis=0.9, flu=0.1)},
    "lost": {"rounds": [line(0, lost={"m": 12}, cleaned={"m": {"duplicates": 9}}, losses={"m": {"empty": 3}})]},
    "repeated": {"texts": REPEATED},
    "disclosed": {"metrics": {"disclosures": {"found": {"value": 1.0, "interval": [0.9, 1.0]}}}},
}
"""What makes a run have each weakness."""


def together(*faults):
    """All weaknesses of a run with these faults; of two values of a list, the second fault's."""
    changes = {"metrics": {}, "run": {}}
    for fault in faults:
        for name, value in FAULTS[fault].items():
            changes[name] = changes[name] | value if isinstance(value, dict) else value
    return weaknesses_of(**changes)


def test_the_sentences_of_all_weaknesses():
    screen = under_headings({fault: together(fault) for fault in FAULTS})
    assert_accepted(screen, Path(__file__).parent / "screens" / "weaknesses.txt")


def test_a_run_without_figures_has_no_weaknesses():
    assert weaknesses_of() == weaknesses_of(texts=[]) == ()


@pytest.mark.parametrize(
    ("run", "accuracy", "advised"),
    [
        ({}, 0.11, ["task.labels", "method=census", "method.samples"]),
        ({}, 0.58, ["task.test", "task.labels", "method=census", "method.samples"]),
        ({"method": "census", "labels": {"sepsis": "blood", "flu": "influenza"}}, 0.3, ["method.samples"]),
    ],
    ids=["below", "near", "census of described labels"],
)
def test_accuracy_that_is_not_clearly_above_guessing_has_the_steps_that_may_help(run, accuracy, advised):
    (weakness,) = weaknesses_of(run=run, metrics=scored(accuracy))
    assert [step for step in advised if step in weakness.do] == advised
    assert ("task.test" in weakness.do) == (accuracy == 0.58)
    assert ("method=census" in weakness.do) == (not run)


@pytest.mark.parametrize(
    "metrics",
    [scored(0.61), scored(0.58, tested=400), scored(1.0, majority=1.0), {"synthetic": {"accuracy": 0.1}}],
    ids=["above", "above with more tests", "one label", "older folder"],
)
def test_accuracy_clearly_above_it(metrics):
    assert weaknesses_of(metrics=metrics) == ()


@pytest.mark.parametrize(
    ("sections", "noun"), [(None, "labels"), ([{"start": 0, "end": 1, "heading": "flu"}], "sections")]
)
def test_labels_of_texts_that_have_several_are_not_counted_as_texts(sections, noun):
    given = {"text": "Note.", "labels": ["flu", "sepsis"], "model": "m", "round": 1}
    texts = [replace(Candidate.from_json(given), sections=sections) for _ in range(100)]
    labels = dict.fromkeys(("flu", "sepsis", "cold", "cough"), "x")
    *_, differ = weaknesses_of(metrics=shares(flu=0.1, sepsis=0.1, cold=0.8), texts=texts, run={"labels": labels})
    assert f"of the {noun} of texts" in differ.what
    assert f"80% of the {noun} of records" in differ.what


@pytest.mark.parametrize(
    ("interval", "changes", "advised"),
    [
        (
            (-0.02, 0.06),
            {},
            ["task.test, now 100", "method.samples", "more records", "larger epsilon", "method=census"],
        ),
        ((-0.1, -0.02), {"planned_epsilon": "inf", "run": {"method": "census"}}, ["llm"]),
        ((-0.1, -0.02), {}, ["more records", "larger epsilon", "method=census"]),
    ],
    ids=["no gain", "loss without a guarantee", "loss"],
)
def test_no_clear_gain_over_the_same_models_without_the_hospitals(interval, changes, advised):
    (weakness,) = weaknesses_of(metrics=compared(*interval), **changes)
    every = ("task.test, now 100", "method.samples", "more records", "larger epsilon", "method=census", "llm")
    assert [step for step in every if step in weakness.do] == advised
    assert weaknesses_of(metrics=compared(0.01, 0.1)) == ()


@pytest.mark.parametrize(
    ("difference", "number"), [([0.05, 0.01, 0.09], 0), ([0.05, -0.01, 0.11], 1), ([-0.05, -0.09, -0.01], 1)]
)
def test_texts_without_labels_that_the_answers_brought_no_nearer(difference, number):
    value, *interval = difference
    near = {"texts": 40, "fid": {"value": 0.5}, "difference": {"value": value, "interval": interval}}
    near["zero_shot"] = {"value": 0.6}
    texts = [replace(text, label=UNLABELLED) for text in TEXTS]
    run = {"labels": {UNLABELLED: "note"}}
    weaknesses = weaknesses_of(run=run, metrics={"nearness": near, "test_records": 80}, texts=texts)
    assert len(weaknesses) == number
    assert all(("task.test, now 80" in weakness.do) == (value > 0) for weakness in weaknesses)


def test_votes_below_noise_are_said_once_by_what_was_measured():
    noise = [vote(3.1), vote(3.2)]
    (foreseen,) = weaknesses_of(votes=noise, run={"warnings": {"votes": WARNING}})
    (unforeseen,) = weaknesses_of(votes=noise)
    assert foreseen.what == unforeseen.what
    assert foreseen.do == WARNING.partition("; ")[2]
    assert FEWER_CANDIDATES in unforeseen.do


def test_votes_above_noise_take_back_the_warning():
    assert weaknesses_of(votes=[vote(3.5)], run={"warnings": {"votes": WARNING}}) == ()
    run = summary(warnings={"votes": WARNING})
    assert votes_above_forecast(run, [vote(3.5), vote(9.0, query="others")]) == ["votes"]
    assert votes_above_forecast(run, [vote(3.1)]) == []
    assert weaknesses_of(votes=[vote(3.0), vote(6.0, candidates=60)]) == ()


def test_a_warning_without_votes_stays():
    for votes in ([], [vote(3.0, noise=None)]):  # an older folder states no noise
        (weakness,) = weaknesses_of(votes=votes, run={"warnings": {"votes": WARNING}})
        assert str(weakness) == WARNING


def test_votes_were_noise_if_none_of_them_rises_above_it():
    assert not votes_were_noise([])
    assert votes_were_noise([vote(3.1), vote(3.2, query="others")])
    assert not votes_were_noise([vote(3.1), vote(9.0, query="others")])


def test_labels_of_records_are_a_simulations_figure_and_marked():
    (weakness,) = weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1))
    assert weakness.simulation_only
    assert "method=census or dpga" in weakness.do
    assert weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1), simulation=False) == ()
    assert weaknesses_of(metrics=shares(sepsis=0.7, flu=0.3)) == ()
    weighed = [replace(text, weight={"sepsis": 9.0, "flu": 1.0}[text.label]) for text in TEXTS]
    assert weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1), texts=weighed) == ()


@pytest.mark.parametrize(
    "figures", [{"shares": {"sepsis": 0.9, "flu": 0.1}}, {"metadata": {"labels": {"sepsis": 1.0}}}]
)
def test_a_deployment_has_the_released_counts_if_they_are_noised(figures):
    rounds, run = [line(0, **figures), line(1)], {"method": "dpga"}
    (weakness,) = weaknesses_of(run=run, rounds=rounds, simulation=False)
    assert "released, noised counts" in weakness.what
    assert not weakness.simulation_only
    assert "method=" not in weakness.do
    assert weaknesses_of(run=run, rounds=rounds, simulation=False, epsilon="inf") == ()


def test_few_lost_texts_are_no_weakness():
    assert weaknesses_of(rounds=[line(0, lost={"m": 2})]) == ()
    (weakness,) = weaknesses_of(rounds=[line(0, lost={"m": 3})])
    assert weakness.what.startswith("3 of 20 ")


@pytest.mark.parametrize("rule", DROPPING)
def test_each_rule_that_drops_texts_is_among_the_reasons(rule):
    (weakness,) = weaknesses_of(rounds=[line(0, lost={"m": 12}, cleaned={"m": {rule: 9}})])
    assert f"({rule}: 9)" in weakness.what


@pytest.mark.parametrize(("different", "number", "weak"), [(9, 20, True), (10, 20, False), (1, 19, False)])
def test_texts_most_of_which_repeat_another(different, number, weak):
    texts = [replace(TEXTS[0], text=f"note {at % different}") for at in range(number)]
    repeated = [weakness for weakness in weaknesses_of(texts=texts) if "are different" in weakness.what]
    assert bool(repeated) == weak


def directions(advice):
    """Whether each step says to raise a setting (1) or to lower it (-1), for the settings that advice names."""
    for step in re.split(r", (?!now)| or |; ", advice):
        raised = bool(re.search(r"\b(more|larger)\b", step)) - bool(re.search(r"\b(fewer|smaller|stop)\b", step))
        yield from ((name, raised) for name in re.findall(r"\b(?:task|method|llm|federation)\.\w+", step) if raised)


def test_no_two_pieces_of_advice_of_a_run_move_a_setting_in_opposite_directions(monkeypatch):
    said = set()

    def noted(**fields):
        said.add(sys._getframe(1).f_lineno)
        return Weakness(**fields)

    monkeypatch.setattr(weaknesses_module, "Weakness", noted)
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(weaknesses_module))) if isinstance(node, ast.Call)]
    advising = {call.lineno for call in calls if "do" in {keyword.arg for keyword in call.keywords}}
    for pair in itertools.combinations_with_replacement(FAULTS, 2):
        advice = [weakness.do for weakness in together(*pair)]
        moved = set(itertools.chain.from_iterable(map(directions, advice)))
        assert not {name for name, way in moved if (name, -way) in moved}, pair
    assert said == advising, "a weakness that no fault above leads to"


def test_the_cause_decides_whether_more_or_fewer_texts_are_advised():
    gained = {"metrics": compared(-0.02, 0.06)}
    assert ("method.samples", 1) in {way for one in weaknesses_of(**gained) for way in directions(one.do)}
    first, *others = weaknesses_of(texts=REPEATED, **gained)
    assert [*directions(first.do)] == [("task.public_text", 1), ("method.samples", -1)]
    assert others
    assert not any("method.samples" in other.do for other in others)


def test_weaknesses_are_on_the_page_and_in_report_json(tmp_path):
    run = write_run(tmp_path / "run")
    assert read_weaknesses(run) == []
    (run / "state").mkdir()
    for answer in (0, 1):
        values = np.round(np.random.default_rng(answer).normal(0, 3.531 * 128, 2 * 26))
        np.save(run / "state" / f"answer-{answer:03}.npy", values)
    rounds = [json.loads(row) for row in (run / "rounds.jsonl").read_text().splitlines()]
    for entry in rounds:
        for query in entry["queries"]:
            query["noise"] = 3.531
    (run / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rounds))
    page = Page(write_report(run).read_text(encoding="utf-8"))
    (weakness,) = read_weaknesses(run)
    assert weakness.what.startswith("nearest and furthest votes were noise: 104 noised numbers spread by ")
    assert "What is poor, and what to change" in page.text
    assert str(weakness) in " ".join(page.text.split())


def test_a_foreign_file_has_no_weaknesses_and_still_a_page(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "metrics.json").write_text('{"synthetic": {"accuracy": "high"}, "majority_class": 1, "test_records": "x"}')
    assert "What is poor" not in write_report(run).read_text(encoding="utf-8")
    assert read_weaknesses(run) == []


def test_warnings_of_an_earlier_version_stay(tmp_path):
    run = write_run(tmp_path / "run")
    ended = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(ended | {"warnings": ["votes will be noise; more records"]}))
    write_report(run)
    assert "votes will be noise; more records" in map(str, read_weaknesses(run))


def test_a_damaged_report_has_no_weaknesses(tmp_path):
    for content in ("{", "[]", '{"weaknesses": [{"what": "x", "other": 1}]}'):
        (tmp_path / "report.json").write_text(content)
        assert read_weaknesses(tmp_path) == []
