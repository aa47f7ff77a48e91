import numpy as np
import pytest

from common.queries.votes import VotesSpec
from server.method import State
from server.methods.wasp import VOTES, Wasp, WaspMemory
from tests.support.method_contract import World, plan_of, run


def voted(nearest, furthest=np.zeros):
    """Answers of nearest votes, and furthest ones if the query is about both, as functions of the number of texts."""

    def answer(name, nth, query):
        n = len(query.labels)
        return np.concatenate([nearest(n), *([furthest(n)] if query.spec.furthest else [])])

    return answer


FLAT = voted(np.arange, lambda n: np.arange(n)[::-1])


def of_k(votes):
    """So many votes for each text of model k, and one for each of m: orders are filled model by model."""
    return voted(lambda n: np.where(np.arange(n) < n // 2, 1.0, votes))


def first_step(method, world, **weights):
    return method.step(State(memory=WaspMemory(weights=weights or {"m": 0.5, "k": 0.5})), world)


def test_n_texts_after_t_rounds_and_t_minus_1_queries_on_all_of_d():
    method = Wasp(samples=64, rounds=4, shots=4)
    world = World(method, answers=FLAT)
    assert len(run(method, world).candidates) == 64
    assert [(nth, len(query.labels)) for _, nth, query in world.asked] == [(0, 16), (1, 32), (2, 48)]
    (planned,) = plan_of(method, 2)
    assert (planned.name, planned.times, planned.spec) == (VOTES, 3, VotesSpec(top=8, max_records=2))


def test_first_round_is_zero_shot_and_later_ones_contrast_good_with_bad():
    method = Wasp(samples=60, rounds=2, shots=4, texts_per_request=3)
    world = World(method, answers=FLAT)
    state = run(method, world)
    first = [request for request in world.requests if not request.good]
    assert first
    assert not any(request.bad for request in first)
    by_text = {candidate.text: i for i, candidate in enumerate(state.candidates)}
    for request in (request for request in world.requests if request.good):
        assert (len(request.good), len(request.bad)) == (2, 2)
        # Highest nearest votes are the last texts of a label in round 0, highest furthest votes the first.
        assert min(by_text[text] for text in request.good) > max(by_text[text] for text in request.bad)
        assert {state.candidates[by_text[text]].label for text in (*request.good, *request.bad)} == {request.label}


def test_without_contrast_nearest_votes_alone_are_asked_for_and_good_exemplars_shown():
    method = Wasp(samples=60, rounds=2, shots=4, contrast=False)
    world = World(method, answers=FLAT)
    run(method, world)
    assert plan_of(method, 2)[0].spec == VotesSpec(top=8, furthest=False, max_records=2)
    assert any(request.good for request in world.requests)
    assert not any(request.bad for request in world.requests)


def test_a_model_with_three_times_the_votes_gets_three_quarters_of_the_next_round():
    method = Wasp(samples=80, rounds=2)
    world = World(method, answers=of_k(3.0))
    state = first_step(method, world)
    assert state.memory.weights == pytest.approx({"m": 0.25, "k": 0.75})
    state = method.step(state, world)
    assert [candidate.model for candidate in state.candidates[40:]].count("k") == 30


def test_without_weighting_models_stay_equal():
    method = Wasp(samples=80, rounds=2, weighting=False)
    assert run(method, World(method, answers=of_k(3.0))).memory.weights == {"m": 0.5, "k": 0.5}


def test_no_votes_above_zero_fall_back_to_equal_weights_and_say_so():
    method = Wasp(samples=80, rounds=2)
    state = first_step(method, World(method, answers=voted(lambda n: np.full(n, -1.0))), m=0.9, k=0.1)
    assert state.memory.weights == {"m": 0.5, "k": 0.5}
    assert "equal weights" in state.rounds[-1].notes[-1]


def test_labels_with_fewer_candidates_than_twice_q_or_s_are_stated():
    method = Wasp(samples=8, rounds=2, top=8)
    world = World(method, answers=FLAT)
    state = first_step(method, world)
    (note,) = state.rounds[-1].notes
    assert all(part in note for part in ("fewer than 16", "a has 2", "b has 2", "method.samples", "the next 1/2"))
    assert method.step(state, world).rounds[-1].notes == ()  # nothing is asked after the last round
    enough = Wasp(samples=64, rounds=2)
    assert first_step(enough, World(enough, answers=FLAT)).rounds[-1].notes == ()
