"""The synthetic texts that are nearest to the most held-out texts."""

from dataclasses import replace

import numpy as np

from common.domain import Record
from server.domain import Candidate
from server.evaluation.figures import Measured
from server.evaluation.nearest_texts import NAME, nearest_texts
from tests.support.measured_texts import measured_parts


def test_each_held_out_text_votes_for_its_nearest_one_and_no_votes_are_not_listed():
    texts = [Candidate(text=text, label="a", model="m", round=0) for text in ("far", "near", "between", "")]
    vectors = {"far": (10.0, 0.0), "near": (0.0, 0.5), "between": (1.0, 1.0), "": (0.0, 0.0)}
    vectors |= {"one": (0.0, 1.0), "two": (0.1, 3.0), "three": (1.0, 0.9)}
    test = [Record(text, "a") for text in ("one", "two", "three")]

    def embed(wanted):
        return np.array([vectors[text] for text in wanted], dtype=np.float32)

    measured = Measured(**measured_parts(candidates=texts, test=test, embed=embed))
    assert nearest_texts(measured) == {NAME: [[1, 2], [2, 1]]}
    assert nearest_texts(replace(measured, test=[])) == {}
    assert nearest_texts(replace(measured, candidates=[])) == {}
    assert nearest_texts(replace(measured, released=["one text of four sections"])) == {}
