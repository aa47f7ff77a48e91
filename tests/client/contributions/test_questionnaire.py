"""Answers and terms of records after their class sums."""

import numpy as np
import pytest

from client.contributions import class_sums
from client.contributions.contribute import contribution
from common.queries.questions import QUESTIONS
from tests.support import asking
from tests.support.asking import chosen, embedded, random_basis, random_records, random_units

TEXTS = ["I have chest pain and a cough, fever, pain.", "Fever?", "No fever. No cough. No pain. BP 120 over 80:"]


def query(rng, **spec):
    return asking.questionnaire(random_basis(rng, 5, 24), random_units(rng, 3, 24) / 2, 0.3, **spec)


def parts(answer, spec):
    """The answer's parts: class sums, a list for each question, terms."""
    ends = np.cumsum([spec.labels * (spec.directions + 1), *(len(question.answers) for question in spec.questions)])
    return [part.tolist() for part in np.split(answer, ends)]


def test_known_answers_and_terms():
    rng = np.random.default_rng(1)
    asked = query(rng, words=3, person=0, sentences=5, first=2, term=7)
    records = embedded(TEXTS, [0, 1, 2], random_units(rng, 3, 24))
    sums, words, sentences, *others, terms = parts(contribution(asked, records), asked.spec)
    assert sums == class_sums.contribution(asked, records).tolist()
    assert words == [3, 3, 3, 0, 0, 0, 0, 0, 0]
    assert sentences == [10, 0, 5, 0, 0]
    assert others == [[40, 20, 0], [40, 20, 0], [20, 0, 20, 20, 0]]
    # "chest pain" and "cough", not "fever" and "pain"; "fever" and "cough".
    assert terms == [2 * 7, 7, 0, 2 * 7, 0]


@pytest.mark.parametrize("terms", [(), asking.TERMS])
def test_a_record_of_another_label_adds_nothing_and_any_other_one_answer_to_each_question(terms):
    rng = np.random.default_rng(2)
    asked = query(rng, terms=terms)
    records = random_records(rng, 40, 24, labels=4)
    for place in range(40):
        answer = contribution(asked, chosen(records, [place]))
        assert answer.dtype == np.int64
        if records.labels[place] == 3:
            assert not answer.any()
            continue
        _, *of_questions, of_terms = parts(answer, asked.spec)
        assert [sorted(counts)[-2:] for counts in of_questions] == [[0, 20]] * len(QUESTIONS)
        assert sum(of_terms) <= 20
        assert set(of_terms) <= {0, 10}
    alone = [contribution(asked, chosen(records, [place])) for place in range(40)]
    assert np.array_equal(contribution(asked, records), np.sum(alone, axis=0))
