"""Texts that parties answer with become candidates: decoded, balanced or not, and drawn by the experiment seed."""

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from common.errors import ConfigError, ProtocolError
from common.queries import text_codec
from common.queries.texts import RewrittenSpec
from server.operators.party_texts import PartyTexts
from tests.support.method_contract import TASK

SPEC = RewrittenSpec(texts=4, longest=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts(PartyTexts):
    """A method whose parties write all texts; its plan is the test's own."""

    name: str = "here"
    query: ClassVar[str] = "texts"
    balanced: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced(Texts):
    balanced: ClassVar[bool] = True


def answer(*parties):
    return np.array([text_codec.encode(party, SPEC.texts, SPEC.longest) for party in parties], dtype=np.float64)


def state(answers, samples, *, balanced=False, seed=0):
    tools = SimpleNamespace(task=TASK, models=("m",), experiment_seed=seed)
    tools.spec, tools.ask = lambda name: SPEC, lambda name, nth: answers
    return (Balanced if balanced else Texts)(samples=samples).step(None, tools)


TWO = answer([(0, "a1"), (0, "a2"), (1, "b1")], [(0, "a3"), (1, "b2"), (1, "b3")])


def test_all_texts_of_all_parties_are_released_each_with_its_label():
    made = state(TWO, 6)
    assert {(candidate.label, candidate.text) for candidate in made.candidates} == {
        (name[0], name) for name in ("a1", "a2", "a3", "b1", "b2", "b3")
    }
    assert {(candidate.model, candidate.round, candidate.weight) for candidate in made.candidates} == {("here", 0, 1.0)}
    assert (made.round, made.rounds[0].candidates, made.rounds[0].notes) == (1, 6, ())


def test_labels_are_balanced_where_asked_for():
    many = answer([(0, "a1"), (0, "a2"), (0, "a3"), (1, "b1")])
    for samples, counts in ((2, {"a": 1, "b": 1}), (4, {"a": 2, "b": 1})):
        assert Counter(text.label for text in state(many, samples, balanced=True).candidates) == counts


def test_what_is_missing_is_said():
    made = state(answer([(0, "a1")]), 4)
    assert [note.partition(" texts")[0] for note in made.rounds[0].notes] == ["3 of 4", "b: no text"]
    assert state(answer([]), 4).candidates == ()


def test_an_answer_that_is_no_text_is_refused():
    with pytest.raises(ProtocolError, match="an answer"):
        state(TWO + 0.5, 6)


def test_fewer_texts_than_labels_are_refused():
    Texts(samples=2).check_task(TASK)
    with pytest.raises(ConfigError, match=r"method\.samples"):
        Texts(samples=1).check_task(TASK)
