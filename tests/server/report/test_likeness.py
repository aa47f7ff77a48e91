"""What the hospitals' texts are like, from whole, noisy and tampered files."""

import json
import re

import pytest

from common.queries.questions import QUESTIONS
from server.report.facts import gather
from server.report.write import write_report
from tests.support.documents import privacy_json, write_run

ANSWERS = {question.name: dict.fromkeys(question.answers, 20.0) for question in QUESTIONS}


def with_class_sums(run, numbers=None, **asked):
    """Write a run with class sums whose questionnaire has these entries."""
    write_run(run)
    space = {"labels": ["a", "b"], "sums": [], "noise": 1.0, "softness": 1.0, "radius": 1.0, "basis": "", "centres": ""}
    about = {"run": "r", "plan_digest": "d", "encoder": "e", "privacy": privacy_json()}
    counted = {"counts": [40.0, 60.0], "count_noise": 5.0} | (numbers or {})
    terms = {"listed": {"fever": 30.0}, "term_noise": 9.0, "first": 4}
    questionnaire = {"answers": ANSWERS, "noise": 5.0} | terms | asked
    (run / "census.json").write_text(json.dumps(about | space | counted | {"questionnaire": questionnaire}))
    return run


def test_a_share_whose_band_is_100_percent_or_more_is_noise(tmp_path):
    clear = write_report(with_class_sums(tmp_path / "clear")).read_text("utf-8")
    assert "“fever” among the first words" in clear
    assert ">noise<" not in clear
    noisy = write_report(with_class_sums(tmp_path / "noisy", noise=5000.0)).read_text("utf-8")
    assert noisy.count(">noise<") == sum(len(question.answers) for question in QUESTIONS)


@pytest.mark.parametrize(
    ("numbers", "asked", "problem"),
    [
        ({}, {"answers": ANSWERS | {"another": {"yes": 1.0}}}, "census.json: .*the questions of this version"),
        ({}, {"noise": "inf"}, "census.json: .*finite numbers"),
        ({}, {"noise": float("nan")}, "census.json: .*finite numbers"),
        ({}, {"first": 0}, "census.json: .*first"),
        ({"counts": [float("nan"), 1.0]}, {}, "census.json is not in the format"),
        ({"count_noise": float("inf")}, {}, "census.json is not in the format"),
        ({}, {"noise": 0.0}, ""),
        ({}, {"term_noise": 0.0}, ""),
    ],
)
def test_answers_of_another_version_or_tampered_ones_are_named_and_not_shown(tmp_path, numbers, asked, problem):
    run = with_class_sums(tmp_path / "run", numbers, **asked)
    facts = gather(run)
    assert facts.to_json()["likeness"] is None
    assert len(facts.problems) == bool(problem)
    if problem:
        (line,) = facts.problems
        assert re.match(problem, line)
    assert "What your hospitals' texts are like" not in write_report(run).read_text("utf-8")
