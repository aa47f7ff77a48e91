"""A contract that every query of the closed set keeps, with every mechanism, through the whole pipeline.

One party alone, three parties without masks, behind masks, and behind masks with a coordinator that is trusted with
nothing. Parties are real services on real ledgers behind Flower's messages.
"""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest

from client import answer
from client.contributions.counts import lengths
from client.records import embed_records
from client.writers.base import SECTIONS
from common import messages as m
from common import wire
from common.errors import DropoutError
from common.parcels import parcel_of
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.closed_set import KINDS, digest, inputs, make_query
from common.queries.histograms import LengthHistogramSpec, VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.sketch import SketchSpec
from common.queries.terms import encode_terms
from tests.support.federations import ENCODER, LABELS, each_kind, records, true_counts
from tests.support.lanes import slow
from tests.support.modes import MODES, World

EVERY = each_kind()
CASES = [(kind, mechanism) for kind, query in EVERY.items() for mechanism in query.spec.mechanisms]
SUMS = [(kind, mechanism) for kind, mechanism in CASES if mechanism in ("gaussian", "laplace")]
OWN = [case for case in CASES if case not in SUMS]
FIRST = [(kind, query.spec.mechanisms[0]) for kind, query in EVERY.items()]
"""One case of each kind: but for the noise a sum is the same, whatever its mechanism."""
EACH = 4
"""Records of each party: as many as choices, so that without noise these are what the records prefer."""
INFINITE = float("inf")


def world_of(folder, mode, *planned, each=EACH, epsilon=1.0, **changes):
    """Each party has that many records."""
    return World(folder, mode, *planned, private=lambda party: records(party, each), epsilon=epsilon, **changes)


def computed(world, query):
    """What the parties compute: the sum, or a row for each."""
    if isinstance(query.spec, LengthRangeSpec | SeedChoiceSpec):
        return np.array([preferred(query, mine) for mine in world.private])
    return sum(true_counts(query, mine) for mine in world.private)


def preferred(query, private):
    mine = embed_records(private, ENCODER).for_plan(LABELS)
    if isinstance(query.spec, SeedChoiceSpec):
        cosines = np.where(mine.labels[:, None] == query.labels, mine.vectors @ query.vectors.T, -2)
        return sorted(cosines.argmax(axis=1))
    return [lengths(mine).min(), min(lengths(mine).max(), query.spec.cap)]


def one(kind, mechanism, **changes):
    return PlannedQuery(name="one", spec=EVERY[kind].spec, mechanism=mechanism, **changes)


def test_the_suite_holds_every_kind():
    # Those that answer with texts: test_text_queries.
    assert set(EVERY) == set(KINDS) - set(SECTIONS.values())
    assert len(CASES) == 11 * 2 + 1 + 2


# What a kind computes is the same in all modes, and what a mode does is the same for all sums.
QUICK = {"alone": OWN + FIRST[:1], "unmasked": OWN + FIRST[:1], "masked": CASES, "signed": FIRST}


@pytest.mark.parametrize(
    ("kind", "mechanism", "mode"),
    [(*case, mode) if case in QUICK[mode] else slow(*case, mode) for case in CASES for mode in MODES],
)
def test_without_noise_the_answer_is_what_the_parties_compute(kind, mechanism, mode, tmp_path):
    world = world_of(tmp_path, mode, one(kind, mechanism), epsilon=INFINITE)
    answered = world.coordinator().ask("one", 0, EVERY[kind])
    assert answered.survivors == world.count
    assert answered.values.dtype == np.int64
    assert np.array_equal(answered.values, computed(world, EVERY[kind]))
    assert answered.values.any()


@pytest.mark.parametrize("mode", [slow("alone"), "masked"])
@pytest.mark.parametrize(("kind", "mechanism"), [case if case in FIRST else slow(*case) for case in CASES])
def test_every_ledger_is_charged_once_for_each_answer_and_what_was_asked_again_is_the_same(
    kind, mechanism, mode, tmp_path
):
    world = world_of(tmp_path, mode, one(kind, mechanism, times=2))
    first = world.coordinator().ask("one", 0, EVERY[kind])
    # The services die, and the coordinator forgets that it was answered.
    world.restart()
    again = world.coordinator(fresh=True)
    assert np.array_equal(again.ask("one", 0, EVERY[kind]).values, first.values)
    again.ask("one", 1, EVERY[kind])
    again.close()
    for entries in world.ledgers():
        assert [entry.index for entry in entries] == [0, 1]
        for entry in entries:
            assert entry.release == world.agreed.answer_release(entry.index)
            assert (entry.query_digest, entry.committed, entry.answer) == (digest(EVERY[kind]), True, None)


WIDE = ("votes", "length histogram", "vocabulary histogram", "density sketch")


def wide(kind):
    """The query with two thousand coordinates."""
    query = EVERY[kind]
    match query.spec:
        case LengthHistogramSpec():
            return make_query(replace(query.spec, bins=2000), {"edges": np.arange(1, 2000, dtype=np.int32)})
        case VocabularySpec():
            return make_query(query.spec, {"terms": encode_terms(tuple(f"w{i}" for i in range(2000)))})
        case SketchSpec():
            frequencies = np.zeros((1000, 32), dtype=np.float32)
            arrays = inputs(query) | {"frequencies": frequencies, "phases": np.zeros(1000, dtype=np.float32)}
            return make_query(replace(query.spec, features=1000), arrays)
    vectors = ENCODER.encode([f"candidate {i}" for i in range(1000)])
    return make_query(query.spec, {"vectors": vectors, "labels": np.arange(1000, dtype=np.int32) % 2})


@pytest.mark.parametrize("mode", [slow("alone"), "masked"])
@pytest.mark.parametrize(("kind", "mechanism"), [case for case in SUMS if case[0] in WIDE])
def test_the_noise_has_the_planned_variance(kind, mechanism, mode, tmp_path):
    # Of n coordinates the relative variance of the estimate is (kurtosis - 1) / n: 2 / n for a Gaussian, 5 / n for a
    # Laplace. Five standard deviations of 2000 are 16% and 25%, where one share of three that is missing makes 33%;
    # a false alarm has a probability of about 1e-6, for Laplace's tails below 1e-5.
    query = wide(kind)
    planned = PlannedQuery(name="one", spec=query.spec, mechanism=mechanism)
    world = world_of(tmp_path, mode, planned, epsilon=5.0 if kind == "density sketch" else 0.5, each=0)
    noise = world.coordinator().ask("one", 0, query).values
    assert len(noise) == 2000
    assert_variance(noise, world, mechanism)


def assert_variance(noise, world, mechanism):
    scale = world.agreed.queries[0].scale
    decay = np.exp(-1 / scale)
    planned_variance = scale**2 if mechanism == "gaussian" else 2 * decay / (1 - decay) ** 2
    tolerance = 5 * ((2 if mechanism == "gaussian" else 5) / len(noise)) ** 0.5
    assert (noise**2.0).mean() / planned_variance == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize("mode", [slow("alone"), "masked"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_noise_of_class_sums_has_the_planned_variance(mechanism, mode, tmp_path):
    # A record has no more than 32 directions here: 31 answers have 2046 coordinates. Alarms as above.
    basis = np.eye(32, dtype=np.float32)
    query = ClassSums(
        spec=ClassSumsSpec(labels=2, directions=32, count=20, grid=40),
        basis=basis,
        centres=basis[:2],
        radius=np.ones(1, dtype=np.float32),
    )
    planned = PlannedQuery(name="one", spec=query.spec, mechanism=mechanism, times=31)
    world = world_of(tmp_path, mode, planned, epsilon=5.0, each=0)
    coordinator = world.coordinator()
    noise = np.concatenate([coordinator.ask("one", nth, query).values for nth in range(31)])
    assert len(noise) == 2046
    assert_variance(noise, world, mechanism)


@pytest.mark.parametrize("parties", [1, 2, 5])
def test_class_sums_of_many_parties_are_those_of_one_and_cost_what_the_specification_says(parties, tmp_path):
    """Two private data sets: the same sum wherever the records are, and charges that do not depend on them."""
    query = EVERY["class sums"]
    results = []
    for folder, first in (("these", 0), ("others", 50)):
        (tmp_path / folder).mkdir()
        world = world_of(
            tmp_path / folder,
            "masked",
            one("class sums", "gaussian"),
            epsilon=INFINITE,
            parties=parties,
            secure=parties > 1,
        )
        whole = [record for party in range(10) for record in records(first + party, EACH)]
        world.private = [whole[party::parties] for party in range(parties)]
        world.restart()
        answered = world.coordinator().ask("one", 0, query)
        assert np.array_equal(answered.values, true_counts(query, whole))
        of_ledgers = [(entry.release, entry.query_digest) for entries in world.ledgers() for entry in entries]
        results.append((world.agreed.digest(), of_ledgers, answered.values))
    assert results[0][:2] == results[1][:2]
    assert len(results[0][1]) == parties
    assert not np.array_equal(results[0][2], results[1][2])


@pytest.mark.parametrize(("kind", "mechanism"), SUMS)
def test_each_party_draws_its_share_of_the_noise_for_every_coordinate(kind, mechanism, tmp_path, monkeypatch):
    drawn = []

    def spy(name):
        real = getattr(answer, name)

        def draw(scale, count, key, **shares):
            drawn.append((name, scale, count, shares, real(scale, count, key, **shares)))
            return drawn[-1][-1]

        monkeypatch.setattr(answer, name, draw)

    spy("discrete_gaussian")
    spy("discrete_laplace")
    world = world_of(tmp_path, "masked", one(kind, mechanism))
    noised = world.coordinator().ask("one", 0, EVERY[kind]).values
    scale, shares = (world.agreed.queries[0].scale, {"shares": 3})
    if mechanism == "gaussian":
        scale, shares = (scale / 3**0.5, {})
    assert [call[:4] for call in drawn] == [(f"discrete_{mechanism}", scale, EVERY[kind].length, shares)] * 3
    assert np.array_equal(noised, computed(world, EVERY[kind]) + sum(call[4] for call in drawn))


@pytest.mark.parametrize("mode", ["alone", "masked"])
@pytest.mark.parametrize(("kind", "mechanism"), OWN)
def test_answers_of_a_partys_own_are_noised_come_one_a_party_and_show_no_mask(kind, mechanism, mode, tmp_path):
    world = world_of(tmp_path, mode, one(kind, mechanism, times=6), epsilon=0.1)
    seen = []
    coordinator = world.coordinator(on_reply=lambda _, message: seen.append(answer_in(message)) or (message,))
    answers = [coordinator.ask("one", nth, EVERY[kind]).values for nth in range(6)]
    exact = computed(world, EVERY[kind])
    assert all(values.shape == (world.count, EVERY[kind].length) for values in answers)
    # A choice is the right one with probability about 1/6 and an end of a range with less than 1/2: all of 6 rows or
    # more, each of 2 to 4 numbers, with probability below 2^-12; of all 18 rows below 2^-36.
    assert any(not np.array_equal(values, exact) for values in answers)
    assert len({values.tobytes() for values in answers}) > 1
    top = EVERY[kind].spec.cap if kind == "length range" else 5
    assert all(values.min() >= 0 and values.max() <= top for values in answers)
    rows = [tuple(body.words.astype(np.int64)) for body in seen if isinstance(body, m.Answer)]
    assert sorted(rows) == sorted(tuple(row) for values in answers for row in values)
    assert not any(isinstance(body, m.UnmaskShares) for body in seen)


def answer_in(message):
    return wire.unpack(parcel_of(message.content)).body


def test_sums_and_answers_of_a_partys_own_follow_each_other_in_one_run(tmp_path):
    names = {"sum": "votes", "own": "seed choice", "more": "label histogram"}
    planned = [
        PlannedQuery(name=name, spec=EVERY[kind].spec, mechanism=EVERY[kind].spec.mechanisms[0])
        for name, kind in names.items()
    ]
    world = world_of(tmp_path, "signed", *planned, epsilon=INFINITE)
    coordinator = world.coordinator()
    for number, (name, kind) in enumerate(names.items()):
        answered = coordinator.ask(name, 0, EVERY[kind])
        assert answered.index == number
        assert np.array_equal(answered.values, computed(world, EVERY[kind]))


def spoilt():
    """Each query with another specification, and with arrays of another world where it has any."""
    wider = np.eye(6, 64, dtype=np.float32)
    for kind, query in EVERY.items():
        yield f"{kind}, specification", kind, make_query(replace(query.spec, max_records=2), inputs(query))
    votes, correct = EVERY["votes"], EVERY["correct count"]
    third = np.array([0, 1, 2, 0, 1, 2], dtype=np.int32)
    yield "votes, dimension", "votes", replace(votes, vectors=wider)
    yield "votes, labels", "votes", replace(votes, labels=third)
    yield "seed choice, dimension", "seed choice", replace(EVERY["seed choice"], vectors=wider)
    yield "correct count, dimension", "correct count", replace(correct, weights=wider[:2])
    three = {"weights": np.ones((3, 32), dtype=np.float32), "intercepts": np.zeros(3, dtype=np.float32)}
    yield "correct count, labels", "correct count", replace(correct, **three)
    sums = EVERY["class sums"]
    yield "class sums, dimension", "class sums", replace(sums, basis=wider[:3], centres=wider[:2])
    more = {"labels": 3, "directions": 2, "count": 20, "grid": 40}
    yield (
        "class sums, labels",
        "class sums",
        ClassSums(
            spec=ClassSumsSpec(**more),
            basis=sums.basis[:2],
            centres=np.eye(3, 32, dtype=np.float32),
            radius=sums.radius,
        ),
    )
    for kind, other in itertools.pairwise(EVERY):
        yield f"{kind}, {other}", kind, EVERY[other]


SPOILT = {name: (kind, query) for name, kind, query in spoilt()}


@pytest.mark.parametrize("name", SPOILT)
def test_a_query_that_is_not_the_planned_one_is_refused_and_costs_nothing(name, tmp_path):
    kind, query = SPOILT[name]
    world = world_of(tmp_path, "masked", one(kind, EVERY[kind].spec.mechanisms[0]))
    coordinator = world.coordinator()
    with pytest.raises(DropoutError, match="UNPLANNED"):
        coordinator.ask("one", 0, query)
    assert world.ledgers() == [()] * 3


def test_a_query_of_the_plan_at_another_place_is_refused(tmp_path):
    planned = [replace(one("votes", "gaussian"), name=name) for name in ("one", "two")]
    planned[1] = replace(planned[1], spec=EVERY["label histogram"].spec)
    world = world_of(tmp_path, "masked", *(replace(query, share=0.5) for query in planned))
    with pytest.raises(DropoutError, match="UNPLANNED"):
        world.coordinator().ask("two", 0, EVERY["votes"])


@pytest.mark.parametrize("mode", ["alone", "masked"])
def test_one_subsample_serves_all_answers_and_outlives_a_restart(mode, tmp_path):
    # 40 records a party: two subsamples, or a subsample and all, are the same with probability 2^-40.
    world = world_of(tmp_path, mode, one("votes", "gaussian", times=3, rate=0.5), epsilon=INFINITE, each=40)
    coordinator, answers = world.coordinator(), []
    answers += [coordinator.ask("one", nth, EVERY["votes"]).values for nth in range(2)]
    world.restart()
    answers.append(world.coordinator().ask("one", 2, EVERY["votes"]).values)
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])
    assert 0 < answers[0].sum() < computed(world, EVERY["votes"]).sum()


def test_a_subsample_drawn_anew_is_another_one_but_the_same_when_asked_again(tmp_path):
    world = world_of(
        tmp_path,
        "masked",
        one("votes", "gaussian", times=2, rate=0.5, redraw=True),
        epsilon=INFINITE,
        each=40,
    )
    coordinator = world.coordinator()
    first, second = (coordinator.ask("one", nth, EVERY["votes"]).values for nth in range(2))
    # Each of 120 records has 15 votes on a grid of 2 for either direction; equal only if all counts are.
    assert not np.array_equal(first, second)
    world.restart()
    assert np.array_equal(world.coordinator(fresh=True).ask("one", 1, EVERY["votes"]).values, second)


def test_after_the_run_its_subsamples_cannot_be_drawn_again(tmp_path):
    world = world_of(tmp_path, "masked", one("votes", "gaussian", times=2, rate=0.5), epsilon=INFINITE)
    coordinator = world.coordinator()
    coordinator.ask("one", 0, EVERY["votes"])
    coordinator.close()
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        world.coordinator(fresh=True).ask("one", 1, EVERY["votes"])


@pytest.mark.parametrize("kind", sorted(set(EVERY) - {"seed choice"}))
def test_at_user_level_a_party_answers_for_so_many_of_its_records(kind, tmp_path):
    query = each_kind(max_records=2)[kind]
    planned = PlannedQuery(name="one", spec=query.spec, mechanism=query.spec.mechanisms[0])
    world = world_of(tmp_path, "masked", planned, unit="user", epsilon=INFINITE, each=7)
    answered = world.coordinator().ask("one", 0, query).values
    world.private = [mine[:2] for mine in world.private]
    assert np.array_equal(answered, computed(world, query))


def test_at_user_level_a_subsample_is_of_users(tmp_path):
    # A user in this file is a party: all of its records take part, or none.
    query = each_kind(max_records=2)["label histogram"]
    planned = PlannedQuery(name="one", spec=query.spec, times=20, rate=0.5, redraw=True)
    world = world_of(tmp_path, "unmasked", planned, unit="user", epsilon=INFINITE)
    coordinator = world.coordinator()
    sums = {tuple(coordinator.ask("one", nth, query).values) for nth in range(20)}
    # Each party has one record of each label among its first two. Twenty equal draws have probability below 2^-19.
    assert sums <= {(count, count) for count in range(4)}
    assert len(sums) > 1


def test_what_is_asked_of_a_query_has_no_fields_but_arrays():
    for query in EVERY.values():
        assert {field.name for field in fields(query)} == {"spec", *inputs(query)}
