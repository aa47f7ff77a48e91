from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from common.queries.label_sets import LabelSetsSpec
from server.domain import Candidate, Task
from server.metrics import multilabel
from server.operators import label_sets
from server.operators.label_sets import Distribution

LABELS = ("a", "b", "c", "d")
TASK = Task(name="t", kind="note", labels={label: f"about {label}" for label in LABELS}, labels_per_text=3)
SPEC = LabelSetsSpec(labels=4, labels_per_record=3)
TOOLS = SimpleNamespace(task=TASK, models=("m", "k"), experiment_seed=3)


def records(count=3000, seed=0):
    """Label sets in which a and b, and c and d, are nearly always together."""
    rng = np.random.default_rng(seed)
    pairs = [(0, 1), (2, 3), (0, 2), (1, 3)]
    sets = [pairs[at] for at in rng.choice(4, count, p=[0.45, 0.45, 0.05, 0.05])]
    return [mine if rng.random() < 0.7 else mine[:1] for mine in sets]


def answer(sets):
    sizes, labels = Counter(map(len, sets)), Counter(label for mine in sets for label in mine)
    pairs = Counter(mine for mine in sets if len(mine) == 2)
    upper = zip(*np.triu_indices(4, 1), strict=True)
    return np.array(
        [*(sizes[k] for k in (1, 2, 3)), *(labels[c] for c in range(4)), *(pairs[(int(a), int(b))] for a, b in upper)],
        dtype=float,
    )


def named(sets):
    return [tuple(LABELS[label] for label in mine) for mine in sets]


def drawn(distribution, count=3000):
    return distribution.draw(count, np.random.default_rng(1))


def test_drawn_sets_have_the_sizes_labels_and_pairs_of_the_records():
    real = records()
    sets = drawn(Distribution.of_answer(answer(real), SPEC, noise=0.0))
    assert all(list(mine) == sorted(set(mine)) for mine in sets)
    assert Counter(map(len, sets))[1] / 3000 == pytest.approx(Counter(map(len, real))[1] / 3000, abs=0.03)
    assert multilabel.pair_distance(named(sets), named(real)) < 0.06
    assert multilabel.distance_of_independent(named(real)) > 0.5


def test_noise_leaves_independent_labels_and_no_label_disappears():
    rng = np.random.default_rng(0)
    noisy = [answer(records(40, seed)) + rng.normal(0, 300, 13) for seed in range(20)]
    known = [Distribution.of_answer(one, SPEC, noise=300.0) for one in noisy]
    lifts = np.array([np.array(one.lifts)[np.triu_indices(4, 1)] for one in known])
    assert np.median(np.abs(lifts - 1).max(axis=1)) < 0.8
    assert all(min(one.labels) > 0 and min(one.sizes) >= 0 < sum(one.sizes) for one in known)
    assert all(len(drawn(one, 20)) == 20 for one in known)


def test_later_rounds_make_up_for_the_first_ones_sets():
    first = label_sets.orders(np.array([60, 40]), {}, (), TOOLS, total=400)
    assert [sum(one.count for one in first if one.model == model) for model in TOOLS.models] == [60, 40]
    written = [
        Candidate(text=f"{one.named} {at}", label=one.label, more=one.more, model=one.model, round=0)
        for one in first
        for at in range(one.count)
    ]
    known = {"sizes": [0, 1, 0], "labels": [1, 1, 1, 1], "lifts": (np.eye(4)[[1, 0, 3, 2]]).tolist()}
    later = label_sets.orders(np.array([300, 0]), known, written, TOOLS, total=400)
    sets = Counter([text.labels for text in written])
    for one in later:
        assert one.labels in {("a", "b"), ("c", "d")}
        sets[one.labels] += one.count
    assert abs(sets["a", "b"] - sets["c", "d"]) < 60
    assert sum(one.count for one in later) == 300


def test_rows_and_pools():
    texts = [
        Candidate(text="1", label="a", more=("b",), model="m", round=0),
        Candidate(text="2", label="c", more=(), model="m", round=0),
        Candidate(text="3", label="b", more=("c", "a"), model="m", round=0),
    ]
    places, labels = label_sets.label_rows(texts, TASK)
    assert (places.tolist(), labels.tolist()) == ([0, 0, 1, 2, 2, 2], [0, 1, 2, 1, 2, 0])
    pools = {"a": [2, 0], "b": [0, 2], "c": [1, 2]}
    assert label_sets.pool_for_set(pools, ("a", "b"), texts) == [0, 2]
    assert label_sets.pool_for_set(pools, ("c",), texts) == [1, 2]
    assert label_sets.pool_for_set(pools, ("d",), texts) == ()
    single = [Candidate(text="1", label="a", model="m", round=0)] * 3
    assert label_sets.pool_for_set({"a": [2, 0, 1]}, ("a",), single) == [2, 0, 1]
