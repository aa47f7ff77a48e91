from types import SimpleNamespace

import numpy as np
import pytest

from common.errors import ConfigError
from common.queries.votes import VotesSpec
from server.domain import Task
from server.llm.base import Reply
from server.llm.generate import generate, write
from server.method import State
from server.methods.wasp import VOTES, Wasp, WaspMemory
from tests.support.method_contract import plan_of

TASK = Task(name="t", kind="note", labels={"a": "A", "b": "B"})


class Echo:
    """Remembers its requests and writes distinct texts."""

    remote = False

    def __init__(self):
        self.requests = []

    def generate(self, requests, *, arrived):
        self.requests += requests
        return [
            Reply(texts=tuple(f"{r.label} {r.seed} {i}" for i in range(r.n)), input_tokens=1, output_tokens=1)
            for r in requests
        ]


def world(votes, models=("m", "k"), seed=0):
    """Tools with fake models and a fake `ask`: `votes(nth, candidates)` gives nearest and furthest votes."""
    providers = {name: Echo() for name in models}
    questions = []

    def ask(name, nth, *, vectors, labels):
        assert name == VOTES
        assert (len(vectors), labels.dtype) == (len(labels), np.int32)
        questions.append((nth, len(labels)))
        return np.concatenate(votes(nth, len(labels)))

    def order(orders, writer, *, round_number):
        return generate(providers, orders, writer, round_number=round_number, texts_per_request=3, experiment_seed=seed)

    tools = SimpleNamespace(
        task=TASK,
        models=tuple(models),
        experiment_seed=seed,
        generate=order,
        write=lambda requests: write(providers, requests),
        embed=lambda texts: np.ones((len(texts), 2), dtype=np.float32),
        ask=ask,
    )
    return tools, providers, questions


def flat(_, n):
    return np.arange(n, dtype=float), np.arange(n, dtype=float)[::-1]


def weighted(weights):
    """A state before the first round."""
    return State(memory=WaspMemory(weights=weights))


def run(method, tools):
    state = method.start(tools)
    while state.round < method.rounds:
        state = method.step(state, tools)
    return state


def test_n_texts_after_t_rounds_and_t_minus_1_queries_on_all_of_d():
    method = Wasp(samples=64, rounds=4, shots=4)
    tools, _, questions = world(flat)
    state = run(method, tools)
    assert len(state.candidates) == 64
    assert questions == [(0, 16), (1, 32), (2, 48)]
    (planned,) = plan_of(method, 2)
    assert (planned.name, planned.times, planned.spec) == (VOTES, 3, VotesSpec(top=8, max_records=2))


def test_first_round_is_zero_shot_and_later_ones_contrast_good_with_bad():
    tools, providers, _ = world(flat)
    method = Wasp(samples=60, rounds=2, shots=4, texts_per_request=3)
    state = run(method, tools)
    requests = [request for provider in providers.values() for request in provider.requests]
    first = [request for request in requests if not request.good]
    later = [request for request in requests if request.good]
    assert first
    assert not any(request.bad for request in first)
    by_text = {candidate.text: i for i, candidate in enumerate(state.candidates)}
    for request in later:
        assert len(request.good) == 2
        assert len(request.bad) == 2
        # Highest nearest votes are the last texts of a label in round 0, highest furthest votes the first.
        assert min(by_text[text] for text in request.good) > max(by_text[text] for text in request.bad)
        assert {state.candidates[by_text[text]].label for text in (*request.good, *request.bad)} == {request.label}


def test_without_contrast_nearest_votes_alone_are_asked_for_and_good_exemplars_shown():
    tools, providers, _ = world(lambda nth, n: flat(nth, n)[:1])
    method = Wasp(samples=60, rounds=2, shots=4, contrast=False)
    run(method, tools)
    assert plan_of(method, 2)[0].spec == VotesSpec(top=8, furthest=False, max_records=2)
    later = [request for provider in providers.values() for request in provider.requests if request.good]
    assert later
    assert not any(request.bad for request in later)


def by_model(nearest_of_k):
    def votes(_, n):
        nearest = np.zeros(n)
        # Orders are filled model by model: in round 0 the first half of D is m's, the second k's.
        nearest[n // 2 :] = nearest_of_k
        nearest[: n // 2] = 1.0
        return nearest, np.zeros(n)

    return votes


def test_a_model_with_three_times_the_votes_gets_three_quarters_of_the_next_round():
    tools, _, _ = world(by_model(3.0))
    state = Wasp(samples=80, rounds=2).step(weighted({"m": 0.5, "k": 0.5}), tools)
    assert state.memory.weights == pytest.approx({"m": 0.25, "k": 0.75})
    state = Wasp(samples=80, rounds=2).step(state, tools)
    assert [candidate.model for candidate in state.candidates[40:]].count("k") == 30


def test_without_weighting_models_stay_equal():
    tools, _, _ = world(by_model(3.0))
    state = run(Wasp(samples=80, rounds=2, weighting=False), tools)
    assert state.memory.weights == {"m": 0.5, "k": 0.5}


def test_no_votes_above_zero_fall_back_to_equal_weights_and_say_so():
    tools, _, _ = world(lambda _, n: (np.full(n, -1.0), np.zeros(n)))
    state = Wasp(samples=80, rounds=2).step(weighted({"m": 0.9, "k": 0.1}), tools)
    assert state.memory.weights == {"m": 0.5, "k": 0.5}
    assert "equal weights" in state.rounds[-1].notes[-1]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16, 40])
def test_no_prompt_shows_a_text_as_good_and_as_bad_however_few_there_are(size):
    method = Wasp(samples=4 * size, rounds=2)
    tools, providers, _ = world(lambda _, n: (np.ones(n), np.ones(n)))
    run(method, tools)
    requests = [request for provider in providers.values() for request in provider.requests]
    later = [request for request in requests if request.good]
    assert later
    for request in later:
        assert not set(request.good) & set(request.bad)
        assert len(request.bad) == min(4, size // 2)
        assert len(request.good) == max(1, len(request.bad))


def test_labels_with_fewer_candidates_than_twice_q_or_s_are_stated():
    tools, _, _ = world(flat)
    method = Wasp(samples=8, rounds=2, top=8)
    state = method.step(weighted({"m": 0.5, "k": 0.5}), tools)
    (note,) = state.rounds[-1].notes
    assert all(part in note for part in ("fewer than 16", "a has 2", "b has 2", "method.samples", "the next 1/2"))
    assert method.step(state, tools).rounds[-1].notes == ()  # nothing is asked after the last round
    tools, _, _ = world(flat)
    assert Wasp(samples=64, rounds=2).step(weighted({"m": 0.5, "k": 0.5}), tools).rounds[-1].notes == ()


def test_state_survives_json():
    tools, _, _ = world(flat)
    state = Wasp(samples=60, rounds=2, shots=4).step(weighted({"m": 0.5, "k": 0.5}), tools)
    assert State.from_dict(state.to_dict(), WaspMemory) == state


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"rounds": 1}, "rounds"), ({"samples": 0}, "samples"), ({"top": 0}, "top"), ({"shots": 1}, "shots")],
)
def test_settings_that_make_no_run(settings, word):
    with pytest.raises(ConfigError, match=word):
        Wasp(**settings)


def test_too_few_samples_for_each_label_in_each_round():
    with pytest.raises(ConfigError, match="samples"):
        plan_of(Wasp(samples=9, rounds=5))
