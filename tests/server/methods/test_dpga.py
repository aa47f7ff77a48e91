from collections import Counter

import numpy as np
import pytest

from common.errors import ConfigError, ProviderError
from common.privacy import accountant
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.votes import VotesSpec
from server.methods.dpga import KEYWORDS, LABELS, LENGTH_RANGE, LENGTHS, SIMILARITY, VOTES, Dpga
from tests.support.method_contract import TASK, World, agreed_plan, plan_of, run, steps


def dpga(**changes):
    return Dpga(**{"samples": 20, "rounds": 3, "keywords": 4, "longest": 60, "bins": 10, "tau": None} | changes)


def answers(**replies):
    """Parties without noise: as many records of each label, of 10 to 20 words, whose pairs are alike by 0.3."""
    fixed = {
        LABELS: lambda query: [50.0, 50.0],
        LENGTH_RANGE: lambda query: [[10.0, 20.0]] * 3,
        LENGTHS: lambda query: [0.0] * (query.length - 8) + [5.0] + [0.0] * 7,
        SIMILARITY: lambda query: [6.0, 20.0],
    } | replies
    return lambda name, nth, query: fixed[name](query) if name in fixed else None


def test_half_of_epsilon_for_metadata_and_the_mean_similarity_paid_by_the_votes():
    planned = {query.name: query for query in plan_of(dpga(), 2)}
    assert {name: (query.spec, query.mechanism, query.times) for name, query in planned.items()} == {
        LABELS: (LabelHistogramSpec(labels=2, max_records=2), "laplace", 1),
        LENGTH_RANGE: (LengthRangeSpec(cap=60, max_records=2), "sparse vector", 1),
        LENGTHS: (LengthHistogramSpec(bins=10, max_records=2), "laplace", 1),
        KEYWORDS: (VotesSpec(top=1, furthest=False, max_records=2), "laplace", 1),
        SIMILARITY: (SelfSimilaritySpec(buckets=300, max_records=2), "laplace", 1),
        VOTES: (VotesSpec(top=1, furthest=False, fine=128, max_records=2), "gaussian", 3),
    }
    shares = {name: query.share for name, query in planned.items()}
    assert sum(shares[name] for name in (LABELS, LENGTH_RANGE, LENGTHS, KEYWORDS)) == pytest.approx(0.5)
    assert shares[LENGTH_RANGE] == 0.2
    assert (shares[SIMILARITY], shares[VOTES]) == (0.05, pytest.approx(0.45))
    assert (planned[VOTES].rate, planned[VOTES].redraw) == (0.8, False)


ABLATIONS = {
    "without length": ({"length": False}, {LENGTH_RANGE, LENGTHS}, 0.75),
    "without keywords": ({"keywords": 0}, {KEYWORDS}, 0.55),
    "without suppression": ({"suppression": False}, {SIMILARITY}, 0.5),
    "tau fixed": ({"tau": 0.3}, {SIMILARITY}, 0.5),
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_asks_less_and_leaves_its_share_to_the_votes(name):
    changes, gone, votes = ABLATIONS[name]
    method = dpga(**changes)
    planned = {query.name: query for query in plan_of(method)}
    assert planned.keys() == {LABELS, LENGTH_RANGE, LENGTHS, KEYWORDS, SIMILARITY, VOTES} - gone
    assert planned[VOTES].share == pytest.approx(votes)
    world = World(method, answers=answers())
    assert len(run(method, world).candidates) == method.samples
    assert {asked for asked, _, _ in world.asked} == planned.keys()
    fresh = [request for request in world.requests if not request.source and not request.phrases]
    if name == "without length":
        assert {request.words for request in fresh} == {None}
    if name == "without keywords":
        assert {request.attribute for request in fresh} == {None}
        assert not any(request.phrases for request in world.requests)


def test_the_whole_plan_costs_epsilon_and_the_noise_of_metadata_is_laplace_of_its_share_or_less():
    agreed = agreed_plan(dpga(), task=TASK, epsilon=4.0, parties=1)
    assert 3.99 < accountant.epsilon(agreed.releases(), agreed.delta) <= 4
    scale = {query.name: query.scale / query.spec.grid for query in agreed.queries}
    # Alone at its share a histogram has scale 1 / 0.4, the range's threshold 4 / 0.8, the pairs 2 / 0.2.
    assert scale[LABELS] == scale[LENGTHS] == scale[KEYWORDS] <= 2.5
    assert scale[LENGTH_RANGE] == pytest.approx(2 * scale[LABELS], rel=1e-3)
    assert scale[SIMILARITY] == pytest.approx(4 * scale[LABELS], rel=1e-3)


def test_one_subsample_for_all_votes_saves_noise_and_one_for_each_is_counted_as_such():
    one, separate, joint = (
        agreed_plan(dpga(**changes), task=TASK, epsilon=1.0, parties=1)
        for changes in ({}, {"redraw": True}, {"subsample": 1.0})
    )
    votes = [agreed.queries[-1] for agreed in (one, separate, joint)]
    assert [(query.rate, query.redraw) for query in votes] == [(0.8, False), (0.8, True), (1.0, False)]
    assert votes[0].scale < votes[2].scale
    draws = [{agreed.draw(agreed.index(VOTES, nth)) for nth in range(3)} for agreed in (one, separate, joint)]
    assert [len(names) for names in draws] == [1, 3, 1]


def test_a_population_is_elites_and_their_offspring_in_the_paper_proportions():
    method = dpga(samples=20, rounds=2)
    world = World(method, answers=answers())
    first, second = steps(method, world)
    assert [line.figures["population"] for line in second.rounds] == [100, 100]
    assert len(first.candidates) == len(second.candidates) == 20
    texts = {candidate.text: candidate for candidate in first.candidates}
    later = [request for model in world.providers.values() for request in model.requests[2 + 50 :]]
    kinds = Counter((len(request.source), request.blanks) for request in later)
    assert kinds == {(1, 0.0): 20, (1, 0.5): 20, (2, 0.0): 20, (0, 0.0): 20}
    for request in later:
        assert all(texts[parent].label == request.label for parent in request.source)
        assert len(set(request.source)) == len(request.source)
        if request.source:
            lengths = [len(parent.split()) for parent in request.source]
            assert request.words == round(sum(lengths) / len(lengths))
    for blanks in (0.0, 0.5):
        varied = [request.source[0] for request in later if len(request.source) == 1 and request.blanks == blanks]
        assert sorted(varied) == sorted(texts), "each elite once"


def test_a_label_that_no_record_has_gets_no_text_and_is_named():
    method = dpga(samples=10, rounds=2)
    world = World(method, answers=answers(**{LABELS: lambda query: [60.0, -1.5]}))
    state = run(method, world)
    assert {candidate.label for candidate in state.candidates} == {"a"}
    assert any(note.startswith("b: noised count") for note in state.rounds[0].notes)
    assert {request.label for request in world.requests if not request.phrases} == {"a"}
    assert all(query.labels.max() == 0 for name, _, query in world.asked if name == KEYWORDS)


def same(texts):
    return np.tile(np.array([[0.6, 0.8]], dtype=np.float32), (len(texts), 1))


@pytest.mark.parametrize(
    ("step", "left", "note"), [(0.01, 10, "tau reached 1"), (0.0, 1, "1 elites of 10: 50 texts, tau at 0.30")]
)
def test_texts_that_are_all_alike_are_stated(step, left, note):
    method = dpga(samples=10, rounds=1, tau=0.3, tau_step=step)
    world = World(method, answers=answers())
    world.embed = same
    state = run(method, world)
    assert len(state.candidates) == left
    assert any(note in line for line in state.rounds[0].notes)


def test_models_without_keywords_stop_the_run_before_anything_is_asked():
    method = dpga(samples=10, rounds=2)
    world = World(method, answers=answers(), most_lost=1)
    for model in world.providers.values():
        model.silent = lambda request: request.phrases
    with pytest.raises(ProviderError, match=r"of a; .*method\.keywords"):
        run(method, world)
    assert world.asked == []


def test_elites_without_a_mate_are_not_crossed():
    method = dpga(samples=2, rounds=2, rewritten=0.0, filled=0.0, fresh=0.0)
    votes = {VOTES: lambda query: [2.0 if i in {0, query.length - 1} else 0.0 for i in range(query.length)]}
    world = World(method, answers=answers(**votes))
    states = list(steps(method, world))
    assert {candidate.label for candidate in states[0].candidates} == {"a", "b"}
    assert states[1].rounds[1].figures["population"] == 2


def test_shares_that_leave_nothing_for_the_votes_are_refused():
    with pytest.raises(ConfigError, match="votes"):
        plan_of(dpga(length_range_share=0.65))
