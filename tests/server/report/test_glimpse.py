"""The three texts of a first look."""

import pytest

from server.domain import Candidate
from server.report.samples import glimpse
from tests.support.documents import edit
from tests.support.pages import report


def texts(*rows):
    return [Candidate(text=text, label=label, model="m", round=1) for text, label in rows]


def test_two_usual_texts_of_two_labels_and_the_one_with_the_rarest_words():
    of_run = texts(
        ("a cough", "a"), ("a cough", "a"), ("a cough", "a"), ("a fever", "b"), ("zebra quartz", "a"), ("", "b")
    )
    first, second, rarest = glimpse(of_run)
    assert rarest.text.text == "zebra quartz"
    assert {first.text.label, second.text.label} == {"a", "b"}
    assert first.why == second.why == "Usual words" != rarest.why


def test_the_texts_that_are_nearest_to_most_real_ones_come_first():
    """The nearest of another label is the second; the rarest text and a line that the file lacks are passed over."""
    of_run = texts(
        ("a cough one", "a"), ("a cough two", "a"), ("a cough one", "b"), ("a cough two", "b"), ("zebra quartz", "a")
    )
    shown = glimpse(of_run, [(4, 9), (77, 8), (1, 7), (0, 6), (3, 5)], 1200)
    assert [one.text.text for one in shown] == ["a cough two", "a cough two", "zebra quartz"]
    assert [one.text.label for one in shown] == ["a", "b", "a"]
    assert [f" {votes} of 1,200 " in one.why for one, votes in zip(shown, (7, 5), strict=False)] == [True, True]
    assert " 7 real " in glimpse(of_run, [(1, 7)])[0].why
    assert glimpse(of_run, [(1, 7)])[1].why == "Usual words"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_few_texts_are_all_shown(number):
    few = texts(("one", "a"), ("two", "b"))[:number]
    assert [one.text for one in glimpse(few, [(0, 3)])] == few


@pytest.mark.parametrize(
    "wrong", [3, {"0": 1}, ["ab"], [[True, 7]], [[1, True]], [[-1, 7]], [[1, -7]], [[1.0, 7]], [[[1], 7]]]
)
def test_lines_and_votes_that_are_no_counts_are_passed_over(run, wrong):
    page = report(edit(run, "metrics.json", nearest_texts=wrong)).text
    assert "Typical: " not in page
    assert page.count("Usual words") == 2


def test_they_stand_at_the_top_of_the_report_but_not_of_a_refused_one(run):
    page = report(edit(run, "metrics.json", nearest_texts=[[4, 11]])).text
    assert " 11 of 400 real " in page
    assert page.index("Three of the texts") < page.index("The guarantee in full")
    page = report(edit(run, "run.json", status="refused")).text
    assert "Three of the texts" not in page
    assert "disclose records, or this could not be tested" in page.partition("Is it safe?")[2]
