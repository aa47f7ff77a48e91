from collections import Counter

import numpy as np
import pytest

from server.domain import Task
from server.methods.pre_text import VOTES, PreText
from tests.support.method_contract import World, steps

SMALL = {"samples": 30, "seeds": 12, "rounds": 3, "look_ahead": 2, "shots": 2}


def favourite(name, nth, query):
    """All votes are for the first candidate of each label."""
    votes = np.zeros(query.length)
    for label in range(2):
        votes[np.flatnonzero(query.labels == label)[0]] = 4.0
    return votes


@pytest.mark.parametrize(
    ("samples", "labels", "seeds"), [(2000, 10, 400), (6000, 10, 400), (1000, 10, 200), (100, 10, 40), (24, 10, 24)]
)
def test_the_population_follows_the_number_of_texts(samples, labels, seeds):
    task = Task(name="t", kind="note", labels={f"label {number}": "" for number in range(labels)})
    method = PreText(samples=samples, rounds=2, look_ahead=1)
    assert method.population(task) == method.compared(task)[VOTES] == seeds
    assert method.max_texts(task, ["m"]) == 4 * seeds + samples
    assert PreText(samples=samples, seeds=77).population(task) == 77


def test_the_next_population_is_made_of_variations_of_the_survivors():
    method = PreText(**SMALL)
    world = World(method, answers=favourite)
    first, second, _ = steps(method, world)
    assert len(first.candidates) == len(second.candidates) == 12
    assert not {c.text for c in first.candidates} & {c.text for c in second.candidates}
    assert [c.round for c in second.candidates] == [2] * 12
    varied = Counter(request.source[0] for request in world.requests if request.source)
    # The favourite of each label has the look-ahead's two and all six of the next population, in both rounds.
    assert sorted(varied.values())[-4:] == [8] * 4


def test_at_last_seeds_of_the_label_are_shown_and_n_texts_are_written():
    method = PreText(**SMALL)
    world = World(method, answers=lambda name, nth, query: np.arange(query.length) + 1.0)
    *_, before, last = steps(method, world)
    labels = {candidate.text: candidate.label for candidate in before.candidates}
    prompts = [request for request in world.requests if request.good]
    assert len(last.candidates) == len(prompts) == 30
    for request in prompts:
        assert 1 <= len(request.good) <= 2
        assert {labels[text] for text in request.good} == {request.label}
        assert not request.bad
    assert {candidate.round for candidate in last.candidates} == {3}


def test_a_parent_stays_where_its_variations_are_lost():
    method = PreText(**SMALL)
    world = World(method)
    first, *_ = steps(method, world)
    world = World(method, silent=("m", "k"), most_lost=1)
    after = method.step(first, world)
    assert {candidate.text for candidate in after.candidates} <= {candidate.text for candidate in first.candidates}
    assert {candidate.label for candidate in after.candidates} == {"a", "b"}
    assert sum(after.rounds[-1].lost.values()) == 12
