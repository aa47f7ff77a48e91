"""What DP-KPS asks, and what it makes of the answers."""

import math
from collections import Counter

import numpy as np
import pytest

from common.errors import ConfigError, DataError
from common.queries import histograms
from common.queries.histograms import VocabularySpec
from common.queries.terms import decode_terms
from server.methods.dp_kps import RAW, VOCABULARY, DpKps
from tests.support.method_contract import SPANNED, TASK, World, plan_of, run

TERMS = ("Fever", "chest pain", "rash", "itch", "cough", "nobody has this", "stroke", "aspirin")


@pytest.fixture
def terms(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("\n".join((*TERMS, "FEVER", "Chest-Pain", "--")))
    return str(file)


def method(terms, **changes):
    small = {"samples": 20, "vocabulary": terms, "kept_terms": 4, "length": 3, "features": 60}
    return DpKps(**small | changes)


def counted(*counts):
    """Answers with these counts for terms, and densities of noise."""
    return lambda name, nth, query: counts if name == VOCABULARY else None


@pytest.mark.parametrize(
    ("changes", "prefixes"),
    [
        ({}, [0]),
        ({"sequence": "iterative", "length": 4}, [2, 4]),
        ({"sequence": "iterative", "length": 3}, [2, 4]),
        ({"sequence": "iterative", "ensemble": "linear"}, [1, 2, 3]),
        ({"sequence": "iterative", "length": 1}, [1]),
    ],
)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_plans_the_histogram_and_a_sketch_for_each_density(terms, changes, prefixes, mechanism):
    first, *rest = plan_of(method(terms, mechanism=mechanism, vocabulary_share=0.25, **changes))
    assert (first.name, first.spec, first.mechanism) == (VOCABULARY, VocabularySpec(first=10), "laplace")
    assert [query.spec.prefix for query in rest] == prefixes
    assert len({query.name for query in rest}) == len(rest)
    for query in rest:
        assert query.mechanism == mechanism
        assert query.share == pytest.approx(0.75 / len(prefixes))
        assert (query.spec.labels, query.spec.features) == (2, 60)
        assert query.spec.paired == (mechanism == "gaussian")
        assert query.spec.first >= max(10, query.spec.prefix)
    assert {query.pure for query in (first, *rest)} == {mechanism == "laplace"}


def test_the_grid_is_as_fine_as_the_table_of_laplace_noise_allows(terms):
    def grid(*, epsilon=6.0, **changes):
        return plan_of(method(terms, vocabulary_share=1 / 6, **changes), epsilon=epsilon)[1].spec.grid

    assert grid() == 256
    assert grid(features=1000) == 70
    assert math.sqrt(2) * 1000 * 70 / 5 <= 2e4 < math.sqrt(2) * 1000 * 71 / 5
    assert grid(features=1000, mechanism="gaussian") == grid(features=1000, epsilon=math.inf) == 256
    assert grid(features=1000, grid=9) == 9
    linear = {"features": 2000, "sequence": "iterative", "ensemble": "linear", "length": 4}
    with pytest.raises(ConfigError, match=r"^method\.features; .*4419"):
        grid(**linear | {"features": 5000})
    assert grid(**linear) == 8


def test_asks_for_sketches_of_the_terms_with_the_highest_noised_counts(terms):
    world = World(method(terms), answers=counted(5, 1, 9, -3, 7, 2, 1.5, 0))
    run(method(terms), world)
    (_, _, vocabulary), (_, _, sketch) = world.asked
    assert decode_terms(vocabulary.terms) == TERMS
    assert decode_terms(sketch.terms) == ("rash", "cough", "Fever", "nobody has this")


def answer_of(query, phrases):
    """The answer of records that hold one phrase each, without noise."""
    from common.queries.sketch import features

    answer = np.zeros((query.spec.labels, query.spec.features))
    for label, phrase in enumerate(phrases):
        answer[label] = 50 * features(query.vectors[[phrase]].astype(float) @ query.frequencies.T, query.phases)[0]
    return answer.ravel()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_phrases_follow_the_density_of_their_label_and_the_prompt_never_names_it(terms, mechanism):
    def answers(name, nth, query):
        return (9, 8, 7, 6, 0, 0, 0, 0) if name == VOCABULARY else answer_of(query, (0, 2))

    settings = method(terms, samples=200, mechanism=mechanism, features=2000, bandwidth=0.4)
    world = World(settings, answers=answers)
    state = run(settings, world)
    assert all(request.label is None and request.n == 1 and request.attribute is None for request in world.requests)
    assert len(world.requests) == len(state.candidates) == 200
    keywords = {
        f"{model.name} wrote {request.seed} number 0": request
        for model in world.providers.values()
        for request in model.requests
    }
    for label, phrase in (("a", "Fever"), ("b", "rash")):
        seeds = [keywords[candidate.text].must for candidate in state.candidates if candidate.label == label]
        counts = Counter(term for must in seeds for term in must)
        # Other phrases have a kernel of about e^-12 and what 2,000 features are off: hardly any.
        assert all(phrase in must for must in seeds)
        assert counts[phrase] == 100
        assert counts.total() < 150


def test_without_a_language_model_the_sequences_are_released(terms):
    settings = method(terms, ablation="no_llm")
    with pytest.raises(ConfigError, match="no_llm;"):
        plan_of(settings, task=SPANNED)
    world = World(settings, answers=counted(9, 8, 7, 6, 0, 0, 0, 0))
    state = run(settings, world)
    assert not world.requests
    assert settings.max_texts(TASK, ("m", "k")) == 0
    assert {candidate.model for candidate in state.candidates} == {RAW}
    assert all(
        len(phrases := candidate.text.split("; ")) == 3 and set(phrases) <= set(TERMS[:4])
        for candidate in state.candidates
    )


def test_with_only_a_language_model_the_label_is_in_the_prompt_and_nothing_is_asked(terms):
    settings = method(terms, ablation="only_llm", vocabulary="")
    assert plan_of(settings) == ()
    world = World(settings)
    run(settings, world)
    assert not world.asked
    assert {request.label for request in world.requests} == {"a", "b"}
    assert not any(request.must for request in world.requests)


def test_each_prompt_shows_the_recipient_examples_with_their_own_phrases(terms, tmp_path):
    examples = tmp_path / "examples.txt"
    examples.write_text("Itch, then a RASH and chest pain; fever too.\nAspirin.\n")
    settings = method(terms, few_shot=str(examples))
    world = World(settings)
    run(settings, world)
    assert not any(request.may_be_shown for request in world.requests)
    for request in world.requests:
        assert request.good == ("Itch, then a RASH and chest pain; fever too.", "Aspirin.")
        assert request.good_must == (("itch", "rash", "chest pain"), ("aspirin",))
    examples.write_text("Aspirin.\nNothing known.\n")
    with pytest.raises(DataError, match="vocabulary") as caught:
        run(method(terms, few_shot=str(examples)), World(method(terms)))
    assert "Nothing known" not in str(caught.value)


@pytest.mark.parametrize("sequence", ["independent", "iterative"])
def test_densities_that_are_all_below_zero_are_drawn_from_uniformly_and_stated(terms, sequence):
    def answers(name, nth, query):
        if isinstance(query, histograms.Vocabulary):
            return (9, 8, 7, 6, 0, 0, 0, 0)
        return np.zeros(query.length)

    settings = method(terms, sequence=sequence)
    state = run(settings, World(settings, answers=answers))
    notes = state.rounds[-1].notes
    assert [(note[:2], "30 of 30" in note) for note in notes] == [("a:", True), ("b:", True)]


def test_a_vocabulary_that_cannot_serve_is_refused_before_anything_is_asked(terms, tmp_path):
    with pytest.raises(ConfigError, match="kept_terms"):
        plan_of(method(terms, kept_terms=9))
    with pytest.raises(ConfigError, match=r"method\.length"):
        method(terms, length=5)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    with pytest.raises(DataError):
        plan_of(method(str(empty)))
    with pytest.raises(DataError, match=r"none\.txt"):
        plan_of(method(str(tmp_path / "none.txt")))
