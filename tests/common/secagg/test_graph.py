import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.errors import ConfigError, InternalError, PlanError
from common.secagg import graph
from common.secagg.graph import neighbours, parameters
from common.secagg.messages import signers

SEED = bytes(range(32))
USUAL = {"corrupt": 0.3, "dropped": 0.1, "security_bits": 40, "correctness_bits": 30, "malicious": False}


def seed(number):
    return number.to_bytes(32, "big")


@pytest.mark.parametrize(("count", "degree"), [(3, 1), (5, 2), (6, 3), (7, 4), (7, 5), (12, 6), (101, 54)])
def test_every_party_has_as_many_neighbours_as_asked_rounded_up_to_even(count, degree):
    peers_of_parties = neighbours(range(count), degree, SEED)
    assert {len(peers) for peers in peers_of_parties.values()} == {degree + degree % 2}
    assert all(
        party in peers_of_parties[peer] and peer != party for party, peers in peers_of_parties.items() for peer in peers
    )


@pytest.mark.parametrize("degree", [5, 6, 1000])
def test_with_all_others_as_neighbours_the_graph_is_full(degree):
    assert neighbours([3, 1, 4, 15, 9, 2], degree, SEED)[4] == {3, 1, 15, 9, 2}


def test_the_graph_depends_on_seed_and_parties_alone():
    parties = list(range(5, 40))
    peers_of_parties = neighbours(parties, 6, SEED)
    assert peers_of_parties == neighbours(tuple(reversed(parties)), 6, SEED)
    assert peers_of_parties != neighbours(parties, 6, seed(1))


def test_every_ring_is_as_likely_as_any_other():
    """Six parties of degree 2 form 60 rings. Chi-square over 6000 fixed seeds; over random ones, false alarm 1e-6."""
    graphs = [neighbours(range(6), 2, seed(number)) for number in range(6000)]
    rings = Counter(tuple(graph[party] for party in range(6)) for graph in graphs)
    assert len(rings) == 60
    assert stats.chisquare(list(rings.values())).pvalue > 1e-6


@pytest.mark.parametrize(
    ("parties", "degree", "seed"), [((0, 1, 1), 2, SEED), ((0, 1), 0, SEED), ((0, 1), 1, b""), ((0, 1), 1, bytes(33))]
)
def test_what_makes_no_graph_is_our_bug(parties, degree, seed):
    with pytest.raises(InternalError):
        neighbours(parties, degree, seed)


@pytest.mark.parametrize(
    ("count", "malicious", "expected"),
    [
        (100, False, (54, 31)),
        (1000, False, (102, 68)),
        # Dropouts at random, as below, would give 54/43 and 222/170.
        (100, True, (68, 58)),
        (1000, True, (250, 194)),
    ],
)
def test_published_sizes(count, malicious, expected):
    assert parameters(count, **{**USUAL, "malicious": malicious}) == expected


@pytest.mark.parametrize(
    ("count", "own_shares", "expected"),
    [(100, 0, (54, 43)), (1000, 0, (220, 168)), (1000, 1, (222, 170))],
)
def test_a_malicious_coordinator_that_cannot_choose_who_drops_would_need_less(monkeypatch, count, own_shares, expected):
    """The conditions of Bell et al. alone: no place is chosen for a cut, and (own = 0) no party keeps a share."""

    def breach(parties, bad, degree):
        threshold = np.arange(2, degree + 1)
        needed = np.maximum(2 * threshold - degree - own_shares, 0)
        apart = parties * graph._tails(parties, bad + round(0.1 * parties), degree // 2)[degree // 2]
        return parties * graph._tails(parties - 1, bad, degree)[needed] + apart

    monkeypatch.setattr(graph, "_cuttable", breach)
    assert parameters(count, **{**USUAL, "malicious": True}) == expected


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize(
    ("changed", "sparser"),
    [
        ({"security_bits": 60}, False),
        ({"correctness_bits": 60}, False),
        ({"corrupt": 0.4}, False),
        ({"dropped": 0.2}, False),
        ({"security_bits": 20}, True),
        ({"corrupt": 0.1}, True),
        ({"dropped": 0.0}, True),
    ],
)
def test_more_is_asked_of_a_graph_that_must_stand_more(changed, sparser, malicious):
    usual = parameters(1000, **{**USUAL, "malicious": malicious})
    other = parameters(1000, **{**USUAL, "malicious": malicious, **changed})
    assert other[0] < usual[0] if sparser else other[0] > usual[0]


@pytest.mark.parametrize(
    ("count", "malicious", "expected"),
    [(2, False, (1, 2)), (3, True, (2, 2)), (5, False, (4, 3)), (10, True, (9, 7))],
)
def test_small_groups_need_the_full_graph(count, malicious, expected):
    corrupt = 0.0 if count < 4 else 0.3
    dropped = 0.0 if count < 4 else 0.1
    degree_and_threshold = parameters(
        count, **{**USUAL, "corrupt": corrupt, "dropped": dropped, "malicious": malicious}
    )
    assert degree_and_threshold == expected


def test_a_graph_whose_survivors_could_not_sign_is_passed_over():
    # Of a ring of 98 neighbours with threshold 68, 86 would have to sign, and 70 survive.
    settings = {"corrupt": 0.2, "dropped": 0.3, "malicious": True, "security_bits": 10, "correctness_bits": 10}
    degree, threshold = parameters(100, **settings)
    assert signers(100, corrupt=20, degree=98, threshold=68, survivors=70) == 86
    assert signers(100, corrupt=20, degree=degree, threshold=threshold, survivors=70) <= 70


def test_fractions_are_rounded_up_to_parties():
    assert graph.rounded_up(0.201, 10) == 3
    assert graph.rounded_up(0.07, 100) == 7


@pytest.mark.parametrize(
    ("count", "changed", "message"),
    [
        (10, {"corrupt": 0.5, "dropped": 0.4}, "at least 7 survivors of 10 parties, as 5 may be corrupt; got 6"),
        (10, {"corrupt": 0.5, "dropped": 0.3, "malicious": True}, "at least 8 survivors of 10 .*; got 7"),
        (1000, {"corrupt": 1.0}, "at least 1002 survivors of 1000"),
        (2, {"corrupt": 0.5, "dropped": 0.0}, "at least 3 survivors of 2"),
    ],
)
def test_impossible_combinations_are_refused_with_the_numbers(count, changed, message):
    with pytest.raises(PlanError, match=message):
        parameters(count, **{**USUAL, **changed})


@pytest.mark.parametrize(
    "changed",
    [{"parties": 1}, {"corrupt": -0.1}, {"dropped": 1.1}, {"security_bits": 0}, {"correctness_bits": math.inf}],
)
def test_numbers_out_of_range_are_refused(changed):
    with pytest.raises(ConfigError):
        parameters(**{"parties": 100, **USUAL, **changed})


@pytest.mark.parametrize(("population", "marked", "draws"), [(99, 30, 54), (1000, 400, 51), (9, 8, 4), (5, 0, 3)])
def test_tails_agree_with_whole_numbers(population, marked, draws):
    tails = graph._tails(population, marked, draws)
    assert len(tails) == draws + 2
    for least, tail in enumerate(tails):
        assert tail == pytest.approx(at_least(least, population, marked, draws), rel=1e-9)


def at_least(least, population, marked, draws):
    """The chance of `least` marked ones or more among the draws, by whole numbers."""
    ways = sum(
        math.comb(marked, x) * math.comb(population - marked, draws - x) for x in range(max(0, least), draws + 1)
    )
    return float(Fraction(ways, math.comb(population, draws)))


@pytest.mark.parametrize(("count", "bad", "gone", "degree"), [(100, 30, 10, 54), (40, 12, 4, 26), (12, 3, 1, 6)])
def test_the_chance_of_a_breach_is_that_of_the_events_as_they_are_written(count, bad, gone, degree):
    half, chance = degree // 2, functools.partial(graph.breach, count, corrupt=bad / count, dropped=gone / count)
    for threshold in range(2, degree + 1):
        learnt = count * at_least(threshold, count - 1, bad, degree)
        apart = count * at_least(half, count, bad + gone, half)
        both = count * at_least(2 * threshold - degree - 1, count - 1, bad, degree)
        cut = count**2 / 2 * at_least(threshold - half - 1, count, bad, half) ** 2
        trusting = chance(degree=degree, threshold=threshold, malicious=False)
        assert trusting == pytest.approx(min(1, learnt + apart), rel=1e-9)
        assert chance(degree=degree, threshold=threshold, malicious=True) == pytest.approx(min(1, both + cut), rel=1e-9)


def test_bounds_hold_and_are_not_idle_where_chance_can_be_seen():
    """Graphs for 2^-4 and 2^-3, 1000 of them drawn: events must be at most as frequent as their bound, and occur.

    False-alarm rate below 1e-6 (binomial, one-sided).
    """
    count, bad, gone, draws = 120, 36, 12, 1000
    degree, threshold = parameters(
        count, corrupt=0.3, dropped=0.1, security_bits=4, correctness_bits=3, malicious=False
    )
    rng = np.random.default_rng(5)
    steps = np.r_[-(degree // 2) : 0, 1 : degree // 2 + 1]
    breaches = failures = 0
    for _ in range(draws):
        places = rng.permutation(count)
        marked = np.zeros((2, count), dtype=int)
        marked[0, places[:bad]] = 1
        marked[1, places[bad : bad + gone]] = 1
        around = sum(np.roll(marked, step, axis=1) for step in steps)
        breaches += bool(np.any(around[0] >= threshold) or len(_parts(marked.sum(axis=0) == 0, degree)) > 1)
        failures += bool(np.any(degree - around[1] < threshold))
    assert 0 < breaches <= stats.binom.isf(1e-7, draws, 2**-4)
    assert 0 < failures <= stats.binom.isf(1e-7, draws, 2**-3)


def test_no_part_of_a_small_ring_can_be_unmasked_without_the_places_that_are_counted():
    """All coordinators against all corrupt parties on a ring of 9 with degree 4.

    Each honest party has either dropped, or survived without being asked to unmask, or unmasks. The seed of a survivor
    comes out if t holders unmask or are corrupt. A part is unmasked if all its seeds come out and no mask leaves it.
    Of corrupt places that a turn of the ring takes to one another, one choice stands for all.
    """
    count, degree = 9, 4
    attacks = harmless = 0
    coalitions = {
        min(tuple(sorted((place + turn) % count for place in chosen)) for turn in range(count))
        for chosen in itertools.combinations(range(count), 3)
    }
    assert len(coalitions) == 10
    for threshold, corrupt in itertools.product((3, 4, 5), sorted(coalitions)):
        honest = [place for place in range(count) if place not in corrupt]
        needed = threshold - degree // 2 - 1
        runs = [
            {(start + step) % count for step in range(degree // 2)}
            for start in range(count)
            if sum((start + step) % count in corrupt for step in range(degree // 2)) >= needed
        ]
        counted = any(not one & other for one, other in itertools.combinations(runs, 2)) or any(
            degree + 1 + len(_around(place, degree, count) & set(corrupt)) >= 2 * threshold for place in honest
        )
        possible = any(
            _unmasks_a_part(dict(zip(honest, roles, strict=True)), set(corrupt), degree, count, threshold)
            for roles in itertools.product((0, 1, 2), repeat=len(honest))
        )
        assert counted or not possible
        attacks += possible
        harmless += not counted
    assert attacks
    assert harmless


def _unmasks_a_part(roles, corrupt, degree, count, threshold):
    """Roles: 0 dropped, 1 survived, 2 unmasks."""
    opens = {place for place, role in roles.items() if role == 2}
    survived = np.array([roles.get(place, 0) > 0 for place in range(count)])
    if not opens:
        return False
    seeds = {
        place: len(((_around(place, degree, count) | {place}) & opens) | (_around(place, degree, count) & corrupt))
        >= threshold
        for place in np.flatnonzero(survived)
    }
    parts = _parts(survived, degree)
    return len(parts) > 1 and any(all(seeds[place] for place in part) for part in parts)


@functools.cache
def _around(place, degree, count):
    return {(place + step) % count for step in range(-(degree // 2), degree // 2 + 1)} - {place}


def _parts(present, degree):
    """Connected parts of a ring from which the places that are not present are taken out."""
    places = set(np.flatnonzero(present).tolist())
    parts = []
    while places:
        part, edge = set(), {places.pop()}
        while edge:
            part |= edge
            edge = set().union(*(_around(place, degree, len(present)) for place in edge)) & places
            places -= edge
        parts.append(part)
    return parts


def test_a_threshold_out_of_range_is_no_security():
    numbers = {"corrupt": 0.3, "dropped": 0.1, "degree": 54, "malicious": False}
    assert graph.breach(100, threshold=55, **numbers) == 1.0
    assert graph.breach(100, threshold=1, **numbers) == 1.0
    assert graph.breach(100, threshold=31, **numbers) <= 2**-40


@pytest.mark.parametrize("parties", range(2, 20))
def test_above_the_lowest_threshold_of_the_full_graph_no_fewer_need_to_sign(parties):
    for corrupt in range(parties - 1):
        lowest = graph.threshold_of_full_graph(parties, corrupt, malicious=True)
        assert graph.threshold_of_full_graph(parties, corrupt, malicious=False) == max(2, corrupt + 1) <= lowest
        needed = [
            signers(parties, corrupt=corrupt, degree=parties - 1, threshold=threshold, survivors=parties)
            for threshold in range(lowest, parties + 1)
        ]
        assert set(needed) == {(parties + corrupt) // 2 + 1}


def test_a_coalition_is_of_other_parties():
    assert [graph.coalition(fraction, 4) for fraction in (0, 0.25, 0.26, 0.75, 1)] == [0, 1, 2, 3, 3]
