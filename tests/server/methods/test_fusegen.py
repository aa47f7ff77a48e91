from collections import Counter

import numpy as np
import pytest

from server.methods.fusegen import Dynamics, FuseGen
from tests.support.method_contract import TASK, World, run, steps
from tests.support.runs import lines, read, tiny


def test_the_first_round_is_zero_shot_and_later_ones_show_s_texts_of_the_pool():
    method = FuseGen(samples=48, rounds=2, shots=3, pool=6, texts_per_request=5)
    world = World(method)
    first, _ = steps(method, world)
    pools = {label: {first.candidates[i].text for i in pool} for label, pool in first.memory.pool.items()}
    prompts = [request for request in world.requests if request.good]
    assert len(world.requests) - len(prompts) == 8
    assert {len(request.good) for request in prompts} == {3}
    assert sum(request.n for request in world.requests) == method.max_texts(TASK, world.models)
    assert all(set(request.good) <= pools[request.label] and not request.bad for request in prompts)
    # A pool is not one model's own: exemplars are picked across models.
    assert {candidate.model for candidate in first.candidates if candidate.text in pools["a"]} == {"m", "k"}


def test_each_label_pool_is_half_easy_and_half_ambiguous():
    learned = Dynamics(confidence=np.full(20, 0.5), variability=np.arange(20) / 20)
    labels = np.tile([0, 1], 10)
    pools = FuseGen(pool=5)._pool(learned, labels, TASK)
    assert pools == {"a": [0, 2, 14, 16, 18], "b": [1, 3, 15, 17, 19]}
    assert FuseGen(pool=40)._pool(learned, labels, TASK) == {"a": [*range(0, 20, 2)], "b": [*range(1, 20, 2)]}


def test_weights_come_with_the_last_round():
    first, last = steps(method := FuseGen(samples=24, rounds=2), World(method))
    assert {candidate.weight for candidate in first.candidates} == {1.0}
    weights = [candidate.weight for candidate in last.candidates]
    assert len(set(weights)) > 1
    assert np.mean(weights) == pytest.approx(1)
    equal = run(FuseGen(samples=24, rounds=2, boosts=0), World(method))
    assert {candidate.weight for candidate in equal.candidates} == {1.0}


def test_a_whole_run_costs_nothing_and_says_that_nobody_was_asked(tmp_path):
    folder = tiny(tmp_path / "run", "method=fusegen", "method.samples=24", "method.rounds=2", "method.shots=2")
    rows, privacy = lines(folder, "synthetic.jsonl"), read(folder, "privacy.json")
    assert set(Counter(row["label"] for row in rows).values()) == {6}
    assert sum(row["weight"] for row in rows) == pytest.approx(24)
    assert (privacy["epsilon"], privacy["released_epsilon"], privacy["spent"]["epsilon"]) == (0, 0, 0)
    assert privacy["queries"] == []
    assert read(folder, "metrics.json")["synthetic"]["records"] == 24
