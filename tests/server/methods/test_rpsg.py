"""What RPSG asks, and what it makes of the answers."""

import math
from collections import Counter

import numpy as np
import pytest

from common.errors import ConfigError, ProtocolError
from common.queries import text_codec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec
from common.queries.votes import VotesSpec
from server.methods.rpsg import ABSTRACTS, CHOICES, VOTES, Rpsg
from server.operators import refinement
from server.operators.refinement import Refinement
from tests.support.method_contract import PARTIES, World, plan_of, run, steps

WHOLE = Refinement(similarity=1.0, nll=1.0)


@pytest.fixture(autouse=True)
def unread(monkeypatch):
    """Patterns for personal information take seconds to load, and find none here."""
    monkeypatch.setattr(refinement, "redact", lambda text, _: text)


def method(**changes):
    return Rpsg(**{"samples": 12, "pool": 20, "refinement": WHOLE} | changes)


def sources(world, *, abstract):
    """What texts were written from, with the label asked for."""
    return [(r.source[0], r.label) for r in world.requests if r.source and r.abstract == abstract]


SEEDS, NEAREST = {"choices": 6, "max_records": 2}, {"furthest": False, "fine": 128, "max_records": 2}
ABSTRACTED = AbstractedSeedsSpec(**SEEDS, longest=99, candidates=4)


@pytest.mark.parametrize(
    ("candidates", "changes", "spec", "mechanism", "pure"),
    [
        ("pool", {"nearest": 3}, SeedChoiceSpec(**SEEDS, nearest=3), "exponential", True),
        ("pool", {"nearest": 0, "mechanism": "permute and flip"}, SeedChoiceSpec(**SEEDS), "permute and flip", True),
        ("histogram", {}, VotesSpec(top=1, **NEAREST), "laplace", True),
        ("histogram", {"top": 3, "mechanism": "gaussian"}, VotesSpec(top=3, **NEAREST), "gaussian", False),
        ("seed_unproven", {"abstracts": 4, "longest": 99}, ABSTRACTED, "gaussian max", False),
    ],
)
def test_asks_one_query(candidates, changes, spec, mechanism, pure):
    (query,) = plan_of(method(candidates=candidates, **changes), 2, parties=2)
    name = {"pool": CHOICES, "histogram": VOTES, "seed_unproven": ABSTRACTS}[candidates]
    assert (query.name, query.spec, query.mechanism, query.pure, query.times) == (name, spec, mechanism, pure, 1)


@pytest.mark.parametrize("candidates", ["pool", "seed_unproven"])
def test_only_votes_can_be_smoothed(candidates):
    with pytest.raises(ConfigError, match="candidates=histogram"):
        method(candidates=candidates, smoothing=True)


def test_parties_choose_together_as_many_seeds_as_are_needed_or_as_is_said():
    refine = Refinement(similarity=0.5, nll=0.5)
    for parties, choices, first in ((1, 12, 48), (5, 3, 10), (100, 1, 1)):
        for candidates, number in (("pool", choices), ("seed_unproven", first)):
            how = method(refinement=refine, candidates=candidates)
            assert plan_of(how, parties=parties)[0].spec.choices == number
    assert plan_of(method(choices=7))[0].spec.choices == 7


@pytest.mark.parametrize(
    ("epsilon", "units", "nearest"), [(4.0, 1, 18), (4.0, 4, 269), (math.inf, 1, 1), (1e-9, 1, 500)]
)
def test_how_many_abstracts_are_as_good_as_the_nearest(epsilon, units, nearest):
    assert plan_of(method(pool=1000), units, epsilon=epsilon)[0].spec.nearest == nearest


def test_variants_keep_their_seed_s_label_and_model_and_rephrasings_their_variant_s():
    world = World(method())
    first, last = steps(method(), world)
    pool = {
        f"{name} wrote {r.seed} number 0": (r.label, name) for name, m in world.providers.items() for r in m.requests
    }
    seeds = sources(world, abstract=True)
    assert all(pool[text][0] == label for text, label in seeds)
    assert Counter(c.label for c in first.candidates) == {"a": 6, "b": 6}
    rephrased = sources(world, abstract=False)
    assert sorted(rephrased) == sorted((c.text, c.label) for c in first.candidates)
    assert {c.round for c in first.candidates} == {1}
    assert {c.round for c in last.candidates} == {2}


def test_where_all_choose_one_label_the_other_starts_from_any_abstract_and_a_note_says_so():
    def of_a(name, nth, query):
        return np.full((PARTIES, query.length), np.flatnonzero(query.labels == 0)[0])

    world = World(method(), answers=of_a)
    state = run(method(), world)
    assert Counter(c.label for c in state.candidates) == {"a": 6, "b": 6}
    assert len({text for text, label in sources(world, abstract=True) if label == "a"}) == 1
    assert len({text for text, label in sources(world, abstract=True) if label == "b"}) == 6
    (note,) = state.rounds[0].notes
    assert note.startswith("b:")


@pytest.mark.parametrize("wrong", [-1, 20, math.nan])
def test_choices_outside_the_pool_are_refused(wrong):
    def but_one(name, nth, query):
        choices = np.full((PARTIES, query.length), wrong)
        choices[0, 0] = 0
        return choices

    with pytest.raises(ProtocolError, match="seed choices"):
        run(method(), World(method(), answers=but_one))


def test_one_party_that_answers_with_no_choices_is_left_out_and_stated():
    def one_is_odd(name, nth, query):
        return np.array([[-5] * query.length, *[[0] * query.length] * (PARTIES - 1)])

    state = run(method(), World(method(), answers=one_is_odd))
    assert len(state.candidates) == 12
    assert any(note.startswith(f"1 of {PARTIES} parties") for note in state.rounds[0].notes)


def test_votes_are_what_seeds_are_drawn_by():
    how = method(candidates="histogram")

    def favourite(name, nth, query):
        votes = np.full(query.length, 0.4)
        for label in range(2):
            votes[np.flatnonzero(query.labels == label)[2:4]] = (3.0, 9.0)
        return votes

    world = World(how, answers=favourite)
    state = run(how, world)
    assert len(set(sources(world, abstract=True))) <= 4
    assert state.rounds[0].notes == ()
    silent = World(how, answers=lambda name, nth, query: np.zeros(query.length))
    assert "above 0.5" in run(how, silent).rounds[0].notes[0]


def released(*parties):
    """Each party's labelled texts, as an answer."""

    def answer(name, nth, query):
        spec = query.spec
        return np.array([text_codec.encode(texts, spec.texts, spec.longest) for texts in parties])

    return answer


def test_released_abstracts_are_read_with_their_labels_blank_ones_left_out():
    how = method(candidates="seed_unproven")
    world = World(how, parties=2, answers=released([(0, "älter"), (1, "b one")], [(1, "b two")]))
    state = run(how, world)
    seeds = Counter(sources(world, abstract=True))
    assert seeds == {("älter", "a"): 6, ("b one", "b"): 3, ("b two", "b"): 3}
    assert Counter(c.label for c in state.candidates) == {"a": 6, "b": 6}
    assert state.rounds[0].notes == ()


@pytest.mark.parametrize("texts_of_party", [[], [(0, "a one")]])
def test_a_label_that_no_party_released_starts_from_public_abstracts_and_a_note_says_so(texts_of_party):
    how = method(candidates="seed_unproven")
    state = run(how, World(how, answers=released(texts_of_party, [])))
    assert Counter(c.label for c in state.candidates) == {"a": 6, "b": 6}
    assert [note[:2] for note in state.rounds[0].notes] == [f"{label}:" for label in "ab"[bool(texts_of_party) :]]


def test_a_pool_that_came_out_smaller_is_used_and_stated():
    world = World(method(), most_lost=1)
    world.providers["k"].silent = lambda request: request.label == "b"
    state = run(method(), world)
    assert all(number in state.rounds[0].notes[0] for number in ("15", "20"))


def test_too_few_texts_after_refinement_are_stated():
    how = method(candidates="seed_unproven", refinement=Refinement(similarity=0.5, nll=1.0))
    world = World(how, most_lost=1)
    world.providers["k"].silent = lambda request: request.seed % 8
    state = run(how, world)
    left = Counter(c.label for c in state.candidates)
    assert set(left) == {"a", "b"}
    assert sum(left.values()) < 12
    notes = [note for note in state.rounds[1].notes if "refinement" in note]
    assert [note.partition(" texts")[0] for note in notes] == [
        f"{label}: {left[label]}" for label in "ab" if left[label] < 6
    ]
