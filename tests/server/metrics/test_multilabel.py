import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from common.errors import DataError
from server.metrics import multilabel

LABELS = ("a", "b", "c")
SETS = [("a",), ("a", "b"), ("b",), ("c", "a"), ("c",), ("b", "a")]
WORDS = {"a": "apple ash", "b": "berry bush", "c": "cedar cone"}


def texts(sets):
    return [f"{' '.join(WORDS[label] for label in mine)} tree {number}" for number, mine in enumerate(sets)]


def test_predict_is_the_one_vs_rest_classifier_of_scikit_learn():
    train, test, known = texts(SETS * 3), texts(SETS), multilabel.marks(SETS * 3, LABELS)
    answers = multilabel.predict(train, known, test)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(train)
    peer = OneVsRestClassifier(LogisticRegression(C=10.0, max_iter=2000))
    peer.fit(vectorizer.transform(train), known.astype(int))
    assert np.array_equal(answers, peer.predict(vectorizer.transform(test)).astype(bool))
    assert np.array_equal(answers, multilabel.marks(SETS, LABELS))


def test_predict_of_a_label_of_all_or_of_no_training_text_is_the_same_everywhere():
    known = np.array([[True, False, True], [True, False, False]])
    answers = multilabel.predict(["x cedar", "x"], known, ["y", "z cedar"])
    assert answers[:, :2].tolist() == [[True, False]] * 2
    for wrong in ((["?", "!"], ["y"]), ([], ["y"]), (["x", "y"], [])):
        with pytest.raises(DataError):
            multilabel.predict(wrong[0], known, wrong[1])


def test_f1_is_that_of_scikit_learn_macro_over_the_labels_of_the_test_texts():
    rng = np.random.default_rng(0)
    right, given = rng.random((2, 40, 3)) < 0.4
    assert multilabel.micro_f1(given, right) == pytest.approx(f1_score(right, given, average="micro"))
    assert multilabel.macro_f1(given, right) == pytest.approx(f1_score(right, given, average="macro"))
    right[:, 1] = False
    with_two = f1_score(right[:, ::2], given[:, ::2], average="macro")
    assert multilabel.macro_f1(given, right) == pytest.approx(with_two)
    assert multilabel.micro_f1(given & False, right & False) == 0


def test_best_constant_answer_is_the_best_of_all():
    right = np.random.default_rng(1).random((30, 3)) < (0.8, 0.5, 0.1)
    every = [np.array([at & 1, at & 2, at & 4], dtype=bool) for at in range(1, 8)]
    found = max(multilabel.micro_f1(np.broadcast_to(one, right.shape), right) for one in every)
    assert multilabel.best_constant(right) == pytest.approx(found)


def test_pair_distance_is_the_total_variation_of_pairs():
    assert multilabel.pair_distance(SETS, [*SETS[::-1], ("c",)]) == 0
    assert multilabel.pair_distance(SETS, [("a", "b")]) == pytest.approx(1 / 3)
    assert multilabel.distance_of_independent([("a", "b"), ("a", "c"), ("b", "c")]) == 0
    assert multilabel.distance_of_independent([("a", "b"), ("c", "d")]) == pytest.approx(2 / 3)
    with pytest.raises(DataError):
        multilabel.pair_distance([("a",)], SETS)
