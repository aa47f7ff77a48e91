from collections import Counter

import numpy as np
import pytest

from common.queries.histograms import VocabularySpec
from common.queries.terms import decode_terms
from server.methods.aug_pe import VOCABULARY, VOTES, AugPe
from tests.support.method_contract import TASK, World, plan_of, run, steps


def rising(name, nth, query):
    """The later a candidate stands, the more votes it has."""
    return np.arange(1, query.length + 1)


def test_one_in_l_survives_the_most_voted_first_and_the_rest_are_their_variations():
    method = AugPe(samples=24, rounds=2, expansion=3)
    world = World(method, answers=rising)
    before, after = steps(method, world)
    kept = [candidate for candidate in after.candidates if candidate in before.candidates]
    best = {label: [c for c in before.candidates if c.label == label][-4:] for label in TASK.labels}
    assert {c.text for c in kept} == {c.text for group in best.values() for c in group}
    varied = [request for request in world.requests if request.source][-16:]
    sources = Counter(request.source[0] for request in world.requests if request.source)
    assert len(varied) == 16
    assert all(sources[c.text] == 2 for c in kept)
    assert Counter(c.label for c in after.candidates) == {"a": 12, "b": 12}


@pytest.fixture
def plus(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("\n".join([*(f"term{i}" for i in range(20)), "term3", ""]))
    return lambda **changes: AugPe(
        **{"samples": 24, "rounds": 2, "vocabulary": str(file), "kept_terms": 5, "terms": 3} | changes
    )


def test_plus_asks_for_the_vocabulary_first_and_shares_epsilon(plus):
    method = plus(first_terms=4, vocabulary_share=0.3)
    terms, votes = plan_of(method, 2)
    assert (terms.spec, terms.mechanism, terms.times) == (VocabularySpec(first=4, max_records=2), "laplace", 1)
    assert (terms.share, votes.share, votes.mechanism, votes.times) == (0.3, 0.7, "gaussian", 2)
    world = World(method)
    run(method, world)
    assert [name for name, _, _ in world.asked] == [VOCABULARY, VOTES, VOTES]
    assert decode_terms(world.asked[0][2].terms) == tuple(f"term{i}" for i in range(20))


def test_plus_writes_first_texts_around_the_most_counted_terms_and_never_names_a_class(plus):
    method = plus()
    world = World(method, answers=lambda name, nth, query: rising(name, nth, query) if name == VOCABULARY else None)
    state = run(method, world)
    first = [request for request in world.requests if not request.source]
    assert {len(request.must) for request in first} == {3}
    assert {term for request in first for term in request.must} == {f"term{i}" for i in range(15, 20)}
    assert all(request.label is None and request.attribute is None for request in world.requests)
    assert Counter(candidate.label for candidate in state.candidates) == {"a": 12, "b": 12}
