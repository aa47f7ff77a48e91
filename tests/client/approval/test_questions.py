"""Each query that a plan may have is said in words, with its own numbers, in each language."""

import pytest

from client.approval.questions import NUMBERS, question_in_words
from common.page.words import CODES, catalogue
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import KINDS
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import QUESTIONS
from tests.support.federations import each_kind


@pytest.mark.parametrize("code", CODES)
def test_each_kind_and_each_question_has_its_sentence(code):
    say = catalogue("client.approval", code)
    assert vars(say.asks).keys() == set(KINDS)
    assert vars(say.questions).keys() == {"form", "terms", "further", *(question.name for question in QUESTIONS)}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("kind", sorted(each_kind()))
def test_a_query_is_said_with_its_numbers(kind, code):
    spec = each_kind()[kind].spec
    sentence = question_in_words(spec, code)
    assert "{" not in sentence
    for name in NUMBERS.get(kind, ()):
        assert str(getattr(spec, name)) in sentence


def test_a_questionnaire_says_each_question_that_it_asks():
    sums = {"labels": 2, "directions": 3, "count": 20, "grid": 40}
    bare = question_in_words(ClassSumsSpec(**sums))
    assert bare.startswith("8 numbers")
    both = question_in_words(QuestionnaireSpec(**sums, words=20, ending=10, first=2, term=5))
    assert "how many words it has; with which mark it ends. And for each term" in both
    assert "among the first 2" in both
    assert "by fixed rules" not in question_in_words(QuestionnaireSpec(**sums, first=2, term=5))
    assert "coordinator chooses" not in question_in_words(QuestionnaireSpec(**sums, words=20))
