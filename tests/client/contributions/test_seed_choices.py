import numpy as np
import pytest

from client.contributions import seed_choices
from common.privacy.mechanisms import UNIT
from common.queries import seed_choice
from common.queries.seed_choice import SeedChoiceSpec
from tests.support.asking import chosen, embedded, random_units, unit

KEY = bytes(range(32))


def _query(choices, vectors, labels=None, nearest=0):
    labels = np.zeros(len(vectors), np.int32) if labels is None else np.array(labels, np.int32)
    return seed_choice.SeedChoice(spec=SeedChoiceSpec(choices=choices, nearest=nearest), vectors=vectors, labels=labels)


def _records(count, dim=3):
    return embedded([f"text {i}" for i in range(count)], vectors=random_units(np.random.default_rng(count), count, dim))


def _rows(query, records, key=KEY):
    return [tuple(row.tolist()) for row in seed_choices.utilities(query, records, key)]


def test_utilities_are_half_of_one_plus_the_cosine():
    vectors = unit([[1, 0], [0, 1], [-1, 0], [3, 4]])
    (row,) = seed_choices.utilities(_query(1, vectors), embedded(["a"], vectors=[[1, 0]]), KEY)
    np.testing.assert_allclose(row / UNIT, [1, 0.5, 0, 0.8], atol=2e-6)
    assert row.dtype == np.int64
    assert row.max() <= UNIT


def test_candidates_of_other_labels_are_of_no_use():
    vectors = unit([[1, 0], [0, 1], [-1, 0], [3, 4]])
    (row,) = seed_choices.utilities(_query(1, vectors, [0, 1, 0, 1]), embedded(["a"], vectors=[[1, 0]]), KEY)
    np.testing.assert_allclose(row / UNIT, [1, 0, 0, 0], atol=2e-6)


@pytest.mark.parametrize(
    ("nearest", "labels", "best"),
    [
        (1, [0, 0, 0, 0], {0}),
        (2, [0, 0, 0, 0], {0, 3}),
        (2, [1, 0, 0, 1], {1, 2}),
        (2, [1, 1, 0, 1], {2, 0}),  # too few of its label: the nearest of others
        (2, [1, 1, 1, 1], {0, 3}),  # none of its label
        (9, [0, 1, 0, 1], {0, 1, 2, 3}),
    ],
)
def test_so_many_are_of_use_the_nearest_of_the_record_s_label_first(nearest, labels, best):
    vectors = unit([[1, 0], [0, 1], [-1, 0], [3, 4]])
    (row,) = seed_choices.utilities(_query(1, vectors, labels, nearest), embedded(["a"], vectors=[[1, 0]]), KEY)
    assert row.tolist() == [UNIT * (place in best) for place in range(4)]


def test_of_equally_near_candidates_the_first_are_of_use():
    (row,) = seed_choices.utilities(_query(1, unit([[0, 1]] * 5), nearest=2), embedded(["a"], vectors=[[1, 0]]), KEY)
    assert row.tolist() == [UNIT, UNIT, 0, 0, 0]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 40])
def test_there_are_as_many_choosers_as_planned_whatever_the_number_of_records(count):
    query = _query(5, random_units(np.random.default_rng(1), 7, 3))
    rows = _rows(query, _records(count))
    assert len(rows) == 5
    assert rows.count((UNIT // 2,) * 7) == max(0, 5 - count)
    assert len(seed_choices.choose_seeds(query, _records(count), 1.0, KEY, replacement=False)) == 5


def test_every_record_is_as_likely_to_choose():
    # 20 records, 5 choices, 2,000 keys: each is drawn 500 times, standard deviation 19.4. Keys are fixed.
    vectors = random_units(np.random.default_rng(1), 1, 3)
    records = _records(20)
    of_record = {_rows(_query(1, vectors), chosen(records, [i]))[0]: i for i in range(20)}
    assert len(of_record) == 20
    drawn = np.zeros(20)
    for key in range(2000):
        for row in _rows(_query(5, vectors), records, key.to_bytes(32, "big")):
            drawn[of_record[row]] += 1
    assert np.abs(drawn - 500).max() < 5 * 19.4


@pytest.mark.parametrize("replacement", [False, True])
def test_with_almost_no_noise_each_record_chooses_the_nearest_candidate(replacement, monkeypatch):
    monkeypatch.setattr(seed_choices, "_CHUNK_BYTES", 1)
    vectors = random_units(np.random.default_rng(1), 30, 3)
    records = _records(12)
    nearest = sorted((records.vectors @ vectors.T).argmax(axis=1))
    got = seed_choices.choose_seeds(_query(12, vectors), records, 1e-4, KEY, replacement=replacement)
    assert got.tolist() == nearest
    assert got.dtype == np.int64


def test_the_scale_is_in_utilities_and_every_choice_has_a_key_of_its_own(monkeypatch):
    calls = []
    monkeypatch.setattr(
        seed_choices.mechanisms,
        "noisy_max",
        lambda row, scale, key, **more: calls.append((scale, key, more)) or 3 - len(calls),
    )
    query = _query(4, random_units(np.random.default_rng(1), 7, 3))
    got = seed_choices.choose_seeds(query, _records(3), 0.5, KEY, replacement=True)
    assert got.tolist() == [-1, 0, 1, 2]
    assert {scale for scale, _, _ in calls} == {0.5 * UNIT}
    assert len({key for _, key, _ in calls}) == 4
    assert all(len(key) == 32 and more == {"replacement": True} for _, key, more in calls)
