"""Which labels a classifier of the texts confuses, as a matrix or as a list."""

import pytest

from server.report.labels import MOST_CONFUSED, list_confusions
from tests.support.documents import HOSTILE, edit, write_run
from tests.support.pages import report


def confused(folder, matrix):
    """The page of a run with this matrix."""
    return report(edit(write_run(folder / "run"), "metrics.json", synthetic={"accuracy": 0.8, "confusion": matrix}))


def test_a_matrix_has_a_row_and_a_column_for_each_label():
    shown = list_confusions({"a": {"a": 5, "c": 2}, "b": {"a": 1}})
    assert shown.labels == ("a", "b", "c")  # nothing is of c, but a text is taken for it
    assert shown.letters == ("A", "B", "C")
    assert shown.counts == ((5, 0, 2), (1, 0, 0), (0, 0, 0))
    assert [(error.label, error.predicted, error.texts, error.tested) for error in shown.most] == [
        ("a", "c", 2, 7),
        ("b", "a", 1, 1),
    ]


def test_many_labels_have_their_most_frequent_confusions_alone():
    names = [f"label {at:02}" for at in range(MOST_CONFUSED + 1)]
    shown = list_confusions({name: {name: 3, names[at - 1]: at + 1} for at, name in enumerate(names)})
    assert shown.labels == shown.counts == ()
    assert [error.texts for error in shown.most] == list(range(MOST_CONFUSED + 1, 1, -1))


@pytest.mark.parametrize("labels", [2, MOST_CONFUSED + 1])
def test_the_page_shows_either_with_the_recall_of_each_label(tmp_path, labels):
    names = ["sepsis", *(f"label {at}" for at in range(1, labels))]
    page = confused(tmp_path, {"sepsis": {"sepsis": 5, "label 1": 3}, "label 1": dict.fromkeys(names, 1)})
    assert "62.5%" in page.text
    assert ("A sepsis" in page.text) == ("sepsis is taken for label 1: 3 of 8 texts" in page.text) == (labels == 2)
    assert "3 of 8" in page.text
    assert page.text.index("By label") < page.text.index("The guarantee in full")
    assert "confusion" not in page.text.partition("Every other figure")[2].partition("The texts")[0]


@pytest.mark.parametrize(
    "wrong", [3, {"a": 3}, *({"a": {"a": value}} for value in ("many", 0, -1, 1.0, True, [1])), {"a": {}}, {}]
)
def test_nothing_is_shown_of_what_is_no_matrix(tmp_path, wrong):
    page = confused(tmp_path, wrong).text
    assert "own label" not in page
    assert "recall" not in page


@pytest.mark.parametrize(
    "label", [HOSTILE, "x" * 300, "", "internal_medicine", "\N{ARABIC LETTER SEEN}\N{ARABIC LETTER MEEM}"]
)
def test_any_label_is_text_apart_from_the_words_around_it(tmp_path, label):
    """A label written from right to left would take the numbers after it to its other side."""
    page = confused(tmp_path, {label: {label: 5, "b": 3}, "b": {label: 1}})
    assert f"Most often, {label} is taken for b: 3 of 8 texts." in page.text
    assert len(page.tags("bdi")) == 6  # in the table of labels, the matrix and the sentence
