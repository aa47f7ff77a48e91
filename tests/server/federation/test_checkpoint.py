import json
from dataclasses import replace

import numpy as np
import pytest

from common.errors import CheckpointError
from common.queries.closed_set import digest
from common.queries.votes import Votes, VotesSpec
from server.federation.checkpoint import Checkpoint


def query(seed=0):
    vectors = np.random.default_rng(seed).normal(size=(5, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Votes(spec=VotesSpec(top=3), vectors=vectors, labels=np.arange(5, dtype=np.int32))


def test_state_comes_back(tmp_path):
    assert Checkpoint(tmp_path / "state").load() is None
    Checkpoint(tmp_path / "state").save({"round": 2, "text": "é"})
    assert Checkpoint(tmp_path / "state").load() == {"round": 2, "text": "é"}


def test_a_reserved_query_is_asked_again_with_the_same_bytes(tmp_path):
    first = query(0)
    assert Checkpoint(tmp_path).reserve(3, first) is first
    rounded = replace(first, vectors=np.nextafter(first.vectors, 1))
    assert digest(rounded) != digest(first)
    assert digest(Checkpoint(tmp_path).reserve(3, rounded)) == digest(first)


@pytest.mark.parametrize(
    "other",
    [
        query(1),
        replace(query(), labels=np.array([1, 1, 2, 3, 4], dtype=np.int32)),
        replace(query(), spec=VotesSpec(top=4)),
        Votes(spec=VotesSpec(top=3), vectors=query().vectors[:4], labels=query().labels[:4]),
    ],
    ids=["texts", "labels", "spec", "number"],
)
def test_neither_a_stored_query_nor_its_answer_is_used_for_another_query(other, tmp_path):
    Checkpoint(tmp_path).reserve(3, query())
    with pytest.raises(CheckpointError, match="another"):
        Checkpoint(tmp_path).reserve(3, other)


def test_an_answer_comes_back_beside_its_query(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.answer(0) is None
    checkpoint.reserve(0, query())
    checkpoint.commit(0, np.array([-5, 2**40], dtype=np.int64))
    assert Checkpoint(tmp_path).answer(0).tolist() == [-5, 2**40]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer-000.npy", "query-000.npz"]


def test_a_damaged_state_is_named(tmp_path):
    Checkpoint(tmp_path).save({"round": 1})
    (tmp_path / "state.json").write_text(json.dumps({"round": 1})[:-2])
    with pytest.raises(CheckpointError, match=r"state\.json"):
        Checkpoint(tmp_path).load()
