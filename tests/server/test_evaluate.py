from dataclasses import replace

import numpy as np

from common.domain import Candidate, Record
from server.evaluate import fid_or_none, metrics, score

WORD = {"a": "apple", "b": "berry"}


def candidates(labels="ab"):
    return [
        Candidate(text=f"word {WORD[label]} {i}", label=label, model="m", round=0) for label in labels for i in range(8)
    ]


HELD_OUT = [Record(f"another {WORD[label]} here", label) for label in "abab"]


def test_a_model_trained_on_good_texts_is_right():
    found = metrics(candidates(), HELD_OUT)
    assert found["synthetic"] == {"records": 16, "accuracy": 1.0, "macro_f1": 1.0}
    assert (found["test_records"], found["real_private"]) == (4, None)
    assert "logistic regression" in found["definition"]


def test_texts_count_by_their_weights():
    wrong = [replace(candidate, label="ba"["ab".index(candidate.label)], weight=1e-6) for candidate in candidates()]
    assert metrics([*candidates(), *wrong, *wrong], HELD_OUT)["synthetic"]["accuracy"] == 1.0
    heavy = [replace(candidate, weight=1.0) for candidate in wrong]
    assert metrics([*candidates(), *heavy, *heavy], HELD_OUT)["synthetic"]["accuracy"] == 0.0


def test_without_held_out_texts_nothing_is_claimed():
    assert metrics(candidates(), []) == {}


def test_texts_of_one_class_alone_are_scored_by_that_class():
    found = score([Record("word apple", "a")] * 3, HELD_OUT)
    assert found["accuracy"] == 0.5


def test_distance_is_zero_for_the_same_and_none_without_real_texts(caplog):
    caplog.set_level("INFO")
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 4)).astype(np.float32)
    assert abs(fid_or_none(vectors, vectors)) < 1e-5
    assert fid_or_none(vectors, vectors + 1) > 1
    assert fid_or_none(vectors, np.zeros((0, 4), np.float32)) is None
    assert "no FID" in caplog.text
