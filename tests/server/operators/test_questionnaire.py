"""Shares from noised answers, and texts that come near them."""

import numpy as np
import pytest

from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import QUESTIONS, answers
from server.documents.class_sums import ClassSumsNumbers, QuestionnaireNumbers
from server.operators.questionnaire import (
    aims_of,
    common_words,
    length,
    nearest,
    nearest_by_label,
    released_answers,
)

PATIENT = "The patient denies chest pain. No fever."
CUSTOMER = "Where is my card?"
WEIGHTS = {question.name: 256 for question in QUESTIONS}


def released(texts, counts=(50.0, 50.0), noise=0.0, terms=("card", "fever")):
    """Class sums of these texts, without noise but said to have it."""
    columns = answers(QUESTIONS, texts).T
    by_answer = {
        question.name: dict(
            zip(question.answers, np.bincount(c, minlength=len(question.answers)).tolist(), strict=True)
        )
        for question, c in zip(QUESTIONS, columns, strict=True)
    }
    listed = {term: float(sum(term in text for text in texts)) for term in terms}
    numbers = QuestionnaireNumbers(answers=by_answer, noise=noise, listed=listed, term_noise=2 * noise, first=4)
    space = {"sums": (), "noise": noise, "softness": 1.0, "radius": 1.0, "basis": "", "centres": ""}
    return ClassSumsNumbers(labels=("a", "b"), counts=counts, count_noise=noise, questionnaire=numbers, **space)


@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_shares_of_exact_answers_are_those_of_the_records(noise):
    aimed = aims_of(released([PATIENT] * 75 + [CUSTOMER] * 25, noise=noise))
    assert aimed.records == pytest.approx(100)
    shares = {(question, answer): share for question, answer, share, _ in aimed.rows()}
    assert shares["person", "I or we"] == pytest.approx(0.25)
    assert shares["ending", "."] == pytest.approx(0.75)
    assert shares["", "fever"] == pytest.approx(0.75)
    assert {round(band, 9) for _, _, _, band in aimed.rows()} == {
        round(1.96 * noise / 100 * times, 9) for times in (1, 2)
    }
    features = aimed.features([PATIENT, CUSTOMER])
    assert np.allclose(0.75 * features[0] + 0.25 * features[1], aimed.shares)


def test_noised_answers_become_a_distribution_and_the_number_of_records_an_average():
    numbers = released([PATIENT] * 60 + [CUSTOMER] * 40, counts=(80.0, 60.0), noise=5.0, terms=())
    numbers.questionnaire.answers["person"]["you"] = -20.0
    aimed = aims_of(numbers)
    cells = np.array([2, *(len(question.answers) for question in QUESTIONS)])
    totals = np.array([140, 100, 100, 80, 100, 100, 100])
    assert aimed.records == pytest.approx((totals / cells).sum() / (1 / cells).sum())
    start = sum(len(question.answers) for question in QUESTIONS[:2])
    person = aimed.shares[start : start + 4]
    assert person.sum() == pytest.approx(1)
    assert person[1] == 0
    assert person[0] - person[3] == pytest.approx((40 - 60) / aimed.records)
    none = aims_of(released([], counts=(-5.0, -5.0), noise=5.0))
    assert none.records == 1
    assert none.shares.min() >= 0


def test_the_nearest_rows_meet_the_shares_and_what_noise_leaves_open_does_not_count():
    features = np.array([[1, 0]] * 6 + [[0, 1]] * 6, dtype=np.float64)
    assert nearest(features, np.array([0.25, 0.75]), np.full(2, 0.01), 8) == [4, 5, 6, 7, 8, 9, 10, 11]
    uncertain = np.concatenate([features, np.eye(12)], axis=1)
    shares, variances = np.concatenate([[0.25, 0.75], np.full(12, 0.9)]), np.concatenate([[0.01] * 2, [1e9] * 12])
    assert sum(place < 6 for place in nearest(uncertain, shares, variances, 8)) == 2
    assert nearest(features, np.array([0.25, 0.75]), np.full(2, 0.01), 20) == list(range(12))


def test_the_nearest_rows_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    features, shares = rng.integers(0, 2, size=(40, 5)).astype(np.float64), rng.random(5)
    variances, kept = rng.random(5) + 0.1, list(range(40))
    while len(kept) > 10:
        without = [features[[other for other in kept if other != place]].mean(axis=0) for place in kept]
        del kept[int(np.argmin([((mean - shares) ** 2 / variances).sum().round(12) for mean in without]))]
    assert nearest(features, shares, variances, 10) == kept


def test_labels_keep_their_shares():
    texts = [PATIENT, CUSTOMER] * 20
    labels = np.repeat([0, 2], [30, 10])
    aimed = aims_of(released([CUSTOMER] * 90 + [PATIENT] * 10, noise=2.0))
    kept = nearest_by_label(aimed, texts, labels, 20)
    assert kept == sorted(set(kept))
    assert np.bincount(labels[kept]).tolist() == [15, 0, 5]
    assert sum(texts[place] == CUSTOMER for place in kept) >= 15


def test_lengths_are_drawn_from_the_shares():
    aimed = aims_of(released(["w " * 7] * 50 + ["w " * 200] * 50))
    drawn = [length(aimed, np.random.default_rng(seed)) for seed in range(400)]
    short = [words for words in drawn if words < 10]
    assert set(short) == {5, 6, 7, 8, 9}
    assert 150 < len(short) < 250
    assert {words for words in drawn if words >= 10} <= set(range(120, 240))


@pytest.mark.parametrize(("noise", "drawn"), [(11.0, True), (12.0, False)])
def test_lengths_are_not_drawn_from_noise(noise, drawn):
    """Of 100 records 11 have each of nine lengths, if these are equally frequent."""
    aimed = aims_of(released([PATIENT] * 100, noise=noise, counts=(100.0, 0.0)))
    assert (length(aimed, np.random.default_rng(0)) is not None) == drawn


def test_common_words_are_those_of_most_texts():
    assert common_words(["a b", "b c b", "C d"], 2) == ("b", "c")
    assert common_words(["語" * 32, "..."], 3) == ("the",)


@pytest.mark.parametrize("first", [4, 0])
def test_an_answer_in_radii_becomes_numbers_of_records(first):
    spec = QuestionnaireSpec(labels=2, directions=3, count=256, first=first, term=32 * first, **WEIGHTS)
    answers_of = sum(len(question.answers) for question in QUESTIONS)
    coordinates = np.arange(answers_of + 2 * bool(first)) / 4
    numbers = released_answers(coordinates, spec, ("card", "fever"), 0.5)
    assert list(numbers.answers["words"].values()) == list(range(9))
    assert list(numbers.answers["ending"].values()) == list(range(answers_of - 5, answers_of))
    assert numbers.noise == 2.0
    assert numbers.listed == ({"card": 2 * answers_of, "fever": 2 * (answers_of + 1)} if first else {})
    assert (numbers.term_noise, numbers.first) == ((4.0, 4) if first else (0.0, 0))
