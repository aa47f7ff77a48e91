import pytest

from server.domain import Task, Wording
from server.llm.render import advice_on_descriptions, kinds_of, label_in_words, plural


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("note", "notes"),
        ("message that a bank customer sends to support", "messages that a bank customer sends to support"),
        ("answer to a question about health", "answers to a question about health"),
        ("discharge summary", "discharge summaries"),
        ("customer's essay, in one sentence", "customer's essays, in one sentence"),
        ("CT of the head", "CTs of the head"),
        ("sketch", "sketches"),
    ],
)
def test_the_plural_of_a_kind_is_that_of_its_noun(kind, kinds):
    assert plural(kind) == kinds


@pytest.mark.parametrize(
    ("kind", "plural", "kinds"),
    [
        ("question to a hospital", "Questions to a hospital", "questions to a hospital"),
        ("ED note", "", "ED notes"),
        ("Arztbrief", "Arztbriefe", "Arztbriefe"),
    ],
)
def test_the_plural_of_a_task_stands_in_a_sentence(kind, plural, kinds):
    assert kinds_of(kind, Wording(plural=plural)) == kinds


def test_labels_that_only_a_name_or_a_number_describes_are_named():
    labels = {"age_limit": "age limit", "1": "2.0", "fee": "Fee", "late_card": "a card that has not come"}
    advice = advice_on_descriptions(Task(name="t", kind="note", labels=labels))
    assert all(name in advice for name in ("age_limit", "1", "fee", "task.labels"))
    assert "late_card" not in advice
    described = Task(name="t", kind="note", labels={"late_card": "a card that has not come"})
    assert advice_on_descriptions(described) == advice_on_descriptions(described.without_labels()) == ""


@pytest.mark.parametrize(
    ("label", "description", "words"),
    [
        ("late_card", "a card that has not come", '"late card" (a card that has not come)'),
        ("late_card", "Late card", '"late card"'),
        ("late_card", "", '"late card"'),
        ("2.0", "negative", '"negative"'),
        ("C34", "cancer of the lung", '"cancer of the lung"'),
    ],
)
def test_a_label_is_said_by_its_name_and_description_as_far_as_they_are_words(label, description, words):
    assert label_in_words(label, description) == words
