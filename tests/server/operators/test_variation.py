import numpy as np
import pytest

from server.domain import Candidate
from server.methods.aug_pe import AugPe
from server.operators.variation import SHORTEST, look_ahead, make_children, vary, voting_vectors
from server.settings.voting import Variation
from tests.support.method_contract import World, embed

LONG = "one two three four five six seven eight nine ten"


def candidate(text, *, label="a", model="m", round_number=0):
    return Candidate(text=text, label=label, model=model, round=round_number)


@pytest.fixture
def world():
    return World(AugPe(samples=8))


def test_each_parents_own_model_writes_in_the_order_of_the_parents(world):
    parents = [(candidate("from k", model="k"), 1), (candidate("from m"), 2), (candidate("none"), 0)]
    written = vary(Variation(), parents, world, "x")
    assert [len(texts) for texts in written.texts] == [1, 2, 0]
    assert written.texts[0][0].startswith("k wrote")
    assert all(text.startswith("m wrote") for text in written.texts[1])
    assert [request.source for request in world.providers["k"].requests] == [("from k",)]
    assert written.use.calls == 3
    assert [(c.label, c.model, c.round) for c in make_children(parents, written, 4)] == [
        ("a", "k", 4),
        *[("a", "m", 4)] * 2,
    ]


def test_a_fill_in_masks_a_share_of_the_words_and_a_paraphrase_none(world):
    for kind, mask, blanks in (("fill_in", 0.3, 0.3), ("paraphrase", 0.3, 0.0)):
        vary(Variation(kind=kind, mask=mask), [(candidate("x y"), 1)], world, kind)
        assert world.requests[-1].blanks == blanks


def test_lengths_are_drawn_around_the_parents_and_never_too_short(world):
    vary(Variation(length_spread=0.2), [(candidate(LONG), 400)], world, "x")
    words = np.array([request.words for request in world.requests])
    # Mean 10, standard deviation 2: of 400 draws the mean has 0.1. The seed is fixed, so is the outcome.
    assert abs(words.mean() - 10) < 0.5
    assert 1.7 < words.std() < 2.3
    vary(Variation(length_spread=1.0), [(candidate("one two"), 50)], world, "y")
    assert min(request.words for request in world.requests[400:]) == SHORTEST
    vary(Variation(length_spread=0.0), [(candidate(LONG), 2)], world, "z")
    assert [request.words for request in world.requests[450:]] == [10, 10]
    vary(Variation(length_spread=None), [(candidate(LONG), 1)], world, "z")
    assert world.requests[-1].words is None


def test_the_same_purpose_draws_the_same_and_another_another(world):
    parents = [(candidate(LONG), 2)]
    first, again, other = (vary(Variation(), parents, world, "x", number).texts for number in (1, 1, 2))
    assert first == again
    assert first != other


def test_looking_ahead_varies_what_is_new_once_and_forgets_what_is_gone(world):
    old, new, twin = candidate("old"), candidate("new"), candidate("new", model="k")
    known = {"old": ["kept"], "gone": ["lost"]}
    ahead, written = look_ahead([old, new, twin], world, degree=3, known=known, variation=Variation(), round_number=0)
    assert ahead["old"] == ["kept"]
    assert len(ahead["new"]) == 3
    assert list(ahead) == ["old", "new"]
    assert written.use.calls == 3


def test_without_looking_ahead_nothing_is_written_and_candidates_speak_for_themselves(world):
    parents = [candidate("x"), candidate("y")]
    ahead, written = look_ahead(parents, world, degree=0, known={}, variation=Variation(), round_number=0)
    assert (ahead, written.use.calls, world.requests) == ({}, 0, [])
    assert np.array_equal(voting_vectors(parents, world, ahead), embed(["x", "y"]))


def test_candidates_are_seen_at_the_unit_mean_of_their_variations_or_where_they_are(world):
    parents = [candidate("x"), candidate("y")]
    seen = voting_vectors(parents, world, {"x": ["p", "q"], "y": []})
    mean = embed(["p", "q"]).sum(axis=0)
    assert seen.dtype == np.float32
    assert seen[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert seen[1] == pytest.approx(embed(["y"])[0])
