"""Rules on texts: known answers, exactly one for any text, and in a time that grows with its length alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import LENGTHS, QUESTIONS, answers

BY_NAME = {question.name: question for question in QUESTIONS}


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("words", "", "under 5"),
        ("words", "one two three four", "under 5"),
        ("words", "one two three four five", "5 to 9"),
        ("words", "w " * 119, "80 to 119"),
        ("words", "w " * 120, "120 or more"),
        ("sentences", "no end", "none or 1"),
        ("sentences", "One. Two!", "2"),
        ("sentences", "Really?! Yes... 3.5 mg. No.", "3 or 4"),
        ("sentences", "A. " * 9, "9 or more"),
        ("person", "I've lost my card; can you help?", "I or we"),
        ("person", "Can YOU help?", "you"),
        ("person", "She denies it.", "he, she or they"),
        ("person", "The patient denies it in Ireland.", "none"),
        ("numbers", "none at all", "none"),
        ("numbers", "5mg twice, 10 mg", "1 or 2"),
        ("numbers", "1 2 3", "3 or more"),
        ("abbreviations", "A note. Not HYPERTENSION, nor McB", "none"),
        ("abbreviations", "COPD and BP", "1 or 2"),
        ("abbreviations", "COPD, BP, HR", "3 or more"),
        ("ending", "", "another, or none"),
        ("ending", " \t\n", "another, or none"),
        ("ending", "why? ", "?"),
        ("ending", "“Stop!”)", "!"),
        ("ending", "It ends.\n", "."),
        ("ending", "Plan:", ":"),
        ("ending", "no mark", "another, or none"),
    ],
)
def test_known_answers(name, text, answer):
    question = BY_NAME[name]
    assert question.answers[question.rule(text)] == answer


@given(st.text(max_size=200))
def test_every_text_has_one_of_the_answers_to_each_question(text):
    (row,) = answers(QUESTIONS, [text]).tolist()
    assert all(0 <= place < len(question.answers) for place, question in zip(row, QUESTIONS, strict=True))
    # It depends on no other text.
    assert answers(QUESTIONS, ["another", text]).tolist()[1] == row


def test_of_a_long_text_the_two_ends_are_read():
    text = "I know. " + "x" * 10_000 + " Do I?"
    person, ending, words = answers([BY_NAME["person"], BY_NAME["ending"], BY_NAME["words"]], [text])[0].tolist()
    assert (person, ending, BY_NAME["words"].answers[words]) == (0, 0, "5 to 9")
    assert answers([BY_NAME["person"]], ["x" * 3000 + " I " + "x" * 3000])[0].tolist() == [3]


def test_no_texts_and_no_questions():
    assert answers(QUESTIONS, []).shape == (0, len(QUESTIONS))
    assert answers([], ["a", "b"]).shape == (2, 0)


def test_answers_are_different_and_lengths_ascend():
    assert len(BY_NAME) == len(QUESTIONS)
    for question in QUESTIONS:
        assert len(set(question.answers)) == len(question.answers) >= 2
    assert list(LENGTHS) == sorted(LENGTHS)


def test_each_question_has_a_weight_in_the_specification():
    spec = QuestionnaireSpec(labels=2, directions=3, count=4, **dict.fromkeys(BY_NAME, 5))
    assert spec.questions == QUESTIONS
    assert QuestionnaireSpec(labels=2, directions=3, count=4, ending=5).questions == (BY_NAME["ending"],)


@pytest.mark.parametrize(
    "wrong",
    [
        {"words": 0},
        {"words": -1},
        {"words": 1025},
        {"words": 0.5},
        {"words": True},
        {"first": 3},
        {"term": 3},
        {"first": 1025, "term": 1},
        {"first": 3, "term": 1025},
        {"labels": 0},
        {"directions": 0},
    ],
)
def test_a_questionnaire_that_asks_nothing_or_weighs_too_much_is_refused(wrong):
    with pytest.raises(ConfigError):
        QuestionnaireSpec(**{"labels": 2, "directions": 3, "count": 4, "words": 5} | wrong)
