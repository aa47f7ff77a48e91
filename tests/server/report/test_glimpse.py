"""The three texts of a first look."""

import json

import pytest

from server.domain import Candidate
from server.report.glimpse import glimpse
from tests.support.documents import write_run
from tests.support.pages import report


def texts(*rows):
    return [Candidate(text=text, label=label, model="m", round=1) for text, label in rows]


def test_two_usual_texts_of_two_labels_and_the_one_with_the_rarest_words():
    of_run = texts(
        ("a cough", "a"), ("a cough", "a"), ("a cough", "a"), ("a fever", "b"), ("zebra quartz", "a"), ("", "b")
    )
    first, second, rarest = glimpse(of_run)
    assert rarest.text == "zebra quartz"
    assert {first.label, second.label} == {"a", "b"}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_texts_are_all_shown(number):
    few = texts(("one", "a"), ("two", "b"))[:number]
    assert glimpse(few) == tuple(few)


def test_they_stand_at_the_top_of_the_report_but_not_of_a_refused_one(tmp_path):
    run = write_run(tmp_path / "run")
    page = report(run).text
    assert page.index("Three of the texts") < page.index("The guarantee in full")
    (run / "run.json").write_text(json.dumps(json.loads((run / "run.json").read_text()) | {"status": "refused"}))
    assert "Three of the texts" not in report(run).text
