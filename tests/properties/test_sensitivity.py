"""Brute force over all neighbouring data sets of small instances, through the real contribution.

For every data set of up to two records and every unit that can be added to it, the change of the answer must lie within
the declared sensitivities, and the largest change over all of them must reach them: a declared value that is too small
leaks, one that is too large wastes noise.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.contributions import counts, seed_choices
from client.contributions.contribute import contribution
from client.records import EmbeddedRecords
from common.privacy.mechanisms import UNIT
from common.queries import correct_count, seed_choice, self_similarity, terms, votes
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import (
    LabelHistogram,
    LabelHistogramSpec,
    LengthHistogram,
    LengthHistogramSpec,
    Vocabulary,
    VocabularySpec,
)
from common.queries.questions import QUESTIONS
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.votes import VotesSpec
from tests.support import asking

_DIRECTIONS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], dtype=np.float32)
_TEXTS = ("", "fever", "cough and chest pain", "fever fever cough pain relief drug")
_RECORDS = list(itertools.product(range(4), range(2)))
"""Direction and text by the first number, label by the second."""


def _embedded(records, owners=None):
    kinds = [kind for kind, _ in records]
    return EmbeddedRecords(
        vectors=_DIRECTIONS[kinds].reshape(-1, 2),
        labels=np.array([label for _, label in records], dtype=np.int32),
        texts=tuple(_TEXTS[kind] for kind in kinds),
        owners=None if owners is None else tuple(owners),
    )


def _answer(query, records, owners=None):
    return contribution(query, _embedded(records, owners).limited(query.spec.max_records))


def _data_sets(largest):
    return itertools.chain.from_iterable(
        itertools.combinations_with_replacement(_RECORDS, size) for size in range(largest + 1)
    )


def _users():
    """Users of up to one record more than the two that are kept: any two in every order, and a third of two kinds."""
    yield from ((record,) for record in _RECORDS)
    yield from itertools.product(_RECORDS, repeat=2)
    yield from itertools.product(_RECORDS, _RECORDS, [(1, 0), (3, 1)])


def _votes(candidates, **spec):
    # Candidates 0 and 2 (if there) are equal, and one candidate has the other label.
    vectors = _DIRECTIONS[[0, 3, 0, 2, 1, 1][: candidates + 1]]
    labels = np.array([0] * candidates + [1], dtype=np.int32)
    return votes.Votes(spec=VotesSpec(**spec), vectors=vectors, labels=labels)


def _vocabulary(first, **spec):
    return Vocabulary(spec=VocabularySpec(first=first, **spec), terms=terms.encode_terms(asking.TERMS))


def _classifier(**spec):
    return correct_count.CorrectCount(
        spec=CorrectCountSpec(**spec), weights=np.eye(2, dtype=np.float32), intercepts=np.zeros(2, np.float32)
    )


def _lengths(**spec):
    return LengthHistogram(spec=LengthHistogramSpec(bins=3, **spec), edges=np.array([1, 5], np.int32))


def _flat(rows, **spec):
    """Frequencies and phases of zero: every cosine is 1, every single feature sqrt(2)."""
    phases = None if spec.pop("paired", True) else np.zeros(rows)
    return asking.sketch(np.zeros((rows, 2 * max(1, spec.get("prefix", 0)))), phases, **spec)


def _class_sums(axes, grid, count, **spec):
    """Directions along the axes, about (-0.75, 0): the third record is at (0.75, 1), which is shortened to 0.6, 0.8."""
    return asking.sums(np.eye(2)[:axes], [[-0.75, 0]] * 2, grid=grid, count=count, **spec)


def _questionnaire(axes, grid, count, **spec):
    """The same directions, and questions of different weights."""
    weights = {question.name: 1 + place % grid for place, question in enumerate(QUESTIONS)} | {"sentences": 0}
    weights["term"] = min(4, grid) * bool(spec.get("terms", asking.TERMS))
    space = np.eye(2)[:axes], [[-0.75, 0]] * 2
    return asking.questionnaire(*space, **weights, grid=grid, count=count, **spec)


# Queries whose bounds are reached, as functions of m.
_REACHED = {
    "labels": lambda m: LabelHistogram(spec=LabelHistogramSpec(labels=2, max_records=m)),
    "lengths": lambda m: _lengths(max_records=m),
    "one term": lambda m: _vocabulary(1, max_records=m),
    "two terms": lambda m: _vocabulary(2, max_records=m),
    "three terms": lambda m: _vocabulary(3, max_records=m),
    "single features": lambda m: _flat(3, paired=False, max_records=m),
    "single features of prefixes": lambda m: _flat(3, paired=False, prefix=2, max_records=m),
    "sums along one direction": lambda m: _class_sums(1, 999, 500, max_records=m),
    "sums along two directions": lambda m: _class_sums(2, 5, 5, max_records=m),
    # The third text has two terms, and the fourth four: of either, two count.
    "questionnaire": lambda m: _questionnaire(2, 5, 5, max_records=m),
    "questionnaire without terms": lambda m: _questionnaire(1, 999, 500, terms=(), max_records=m),
    "one bucket": lambda m: self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(buckets=1, grid=999, max_records=m)),
    "correct": lambda m: _classifier(max_records=m),
}


def _within(change, spec):
    """A record's, or unit's, change keeps to all that is declared; returns its norms."""
    change = np.abs(change)
    touched = sorted(change[change > 0].tolist(), reverse=True)
    assert len(touched) <= spec.sensitivity.touched
    # Sorted, each coordinate within its declared shift: then every monotone function of them is too.
    if spec.sensitivity.shifts:
        assert all(got <= most for got, most in zip(touched, reversed(spec.sensitivity.shifts), strict=False))
    assert change.max(initial=0) <= spec.max_records * spec.largest
    assert change.sum() <= spec.sensitivity.l1
    assert (change**2).sum() <= spec.sensitivity.l2_squared
    return change.sum(), (change**2).sum()


@pytest.mark.parametrize("name", _REACHED)
def test_one_record_reaches_the_bounds_and_never_exceeds_them(name):
    query = _REACHED[name](1)
    norms = []
    for data in _data_sets(2):
        before = _answer(query, data)
        norms += [_within(_answer(query, [*data, record]) - before, query.spec) for record in _RECORDS]
    sensitivity = query.spec.sensitivity
    # The pair of equal directions has a cosine that float32 leaves just below 1.
    slack = 1 if name == "one bucket" else 0
    assert max(l1 for l1, _ in norms) >= sensitivity.l1 - slack
    assert max(l2 for _, l2 in norms) >= sensitivity.l2_squared - slack * 2 * 999


@pytest.mark.parametrize("name", _REACHED)
def test_one_user_reaches_the_bounds_and_never_exceeds_them(name):
    query = _REACHED[name](2)
    norms = []
    # Each user's records are spread among those of other users.
    for others in ([], [(0, 0), (2, 1), (3, 0)]):
        owners = ["a", "b", "a"][: len(others)]
        before = _answer(query, others, owners)
        for user in _users():
            data, whose = [*user[:1], *others, *user[1:]], ["u", *owners, *["u"] * (len(user) - 1)]
            norms.append(_within(_answer(query, data, whose) - before, query.spec))
    sensitivity = query.spec.sensitivity
    if name == "one bucket":
        # Two records more in one bucket make one pair, or undo one: never both, and never two.
        assert sensitivity.l1 / 2 - 1 <= max(l1 for l1, _ in norms) <= sensitivity.l1 / 2
    else:
        assert max(l1 for l1, _ in norms) == sensitivity.l1
        # Both records of a user to the same coordinates.
        assert max(l2 for _, l2 in norms) == sensitivity.l2_squared


def test_two_buckets_at_user_level():
    """With several buckets, two records of a user move two of them: the l1 bound is reached, to rounding."""
    query = self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(buckets=7, grid=999, max_records=2))
    l1 = 0
    for others in itertools.combinations_with_replacement(_RECORDS, 2):
        before = _answer(query, others, ["a", "a"])
        for user in itertools.product(_RECORDS, repeat=2):
            l1 = max(l1, _within(_answer(query, [*others, *user], ["a", "a", "u", "u"]) - before, query.spec)[0])
    assert l1 >= query.spec.sensitivity.l1 - 2


@pytest.mark.parametrize("furthest", [True, False])
@pytest.mark.parametrize("fine", [1, 3])
@pytest.mark.parametrize(
    ("top", "candidates"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 4), (3, 2), (3, 3), (3, 5), (4, 3)]
)
def test_votes_of_one_record(top, candidates, fine, furthest):
    query = _votes(candidates, top=top, furthest=furthest, fine=fine)
    shifts = sorted(query.spec.sensitivity.shifts, reverse=True)
    l1, l2, reached = 0, 0, set()
    for data in _data_sets(1):
        before = _answer(query, data)
        for record in _RECORDS:
            change = _answer(query, [*data, record]) - before
            norms = _within(change, query.spec)
            l1, l2 = max(l1, norms[0]), max(l2, norms[1])
            reached.add(tuple(sorted(change[change > 0].tolist(), reverse=True)))
    ranks, halves = min(top, candidates), 2 if furthest else 1
    assert l1 == fine * halves * (2**top - 2 ** (top - ranks))
    assert 3 * l2 == fine**2 * halves * (4**top - 4 ** (top - ranks))
    if candidates >= top:
        assert tuple(shifts) in reached
        assert l1 == query.spec.sensitivity.l1
        assert l2 == query.spec.sensitivity.l2_squared


@pytest.mark.parametrize(("top", "candidates", "furthest"), [(1, 3, True), (2, 1, True), (2, 3, False), (3, 4, True)])
def test_votes_of_one_user(top, candidates, furthest):
    query = _votes(candidates, top=top, furthest=furthest, max_records=2)
    others = [(0, 0), (2, 1), (3, 0)]
    before = _answer(query, others, owners=["a", "b", "a"])
    l1 = l2 = 0
    for user in _users():
        data, owners = [*user[:1], *others, *user[1:]], ["u", "a", "b", "a", *["u"] * (len(user) - 1)]
        norms = _within(_answer(query, data, owners) - before, query.spec)
        l1, l2 = max(l1, norms[0]), max(l2, norms[1])
    if candidates >= top:
        assert l1 == query.spec.sensitivity.l1
        assert l2 == query.spec.sensitivity.l2_squared


def test_the_halves_in_one_histogram_would_exceed_the_bound():
    query = _votes(2, top=8)
    nearest, furthest = _answer(query, [(0, 0)]).reshape(2, -1)
    common = nearest + furthest
    assert np.sqrt((common**2).sum()) / query.spec.grid == pytest.approx(2.121, abs=1e-3)
    assert np.sqrt((common**2).sum()) > query.spec.sensitivity.l2


@pytest.mark.parametrize("name", ["labels", "lengths", "one term"])
def test_a_replaced_record_exceeds_the_bound_of_an_added_one_and_needs_it_twice(name):
    query = _REACHED[name](1)
    changes = [
        np.abs(_answer(query, [old]) - _answer(query, [new])) for old, new in itertools.product(_RECORDS, repeat=2)
    ]
    assert query.spec.sensitivity.l1 == 1
    assert max(change.sum() for change in changes) == 2 * query.spec.sensitivity.l1
    assert max((change**2).sum() for change in changes) == 2 > query.spec.sensitivity.l2_squared


_SCALES = st.sampled_from([0.0, 1e-3, 0.7, 1.0, 30.0, 1e6])
_WORDS = st.lists(st.sampled_from(["fever", "chest", "pain", "relief", "drug", "cough", "and"]), max_size=12)


@given(
    st.lists(_WORDS.map(" ".join), max_size=3),
    _WORDS.map(" ".join),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(1, 6),
    st.booleans(),
    st.lists(_SCALES, min_size=6, max_size=6),
    st.sampled_from([1, 64, 65, 2**20]),
    st.integers(0, 2**32),
)
def test_sketches_never_exceed_their_bounds(  # noqa: PLR0917
    data, text, first, prefix, rows, paired, scales, grid, random_seed
):
    rng = np.random.default_rng(random_seed)
    prefix = min(prefix, first)
    query = asking.sketch(
        np.clip(rng.standard_normal((rows, max(1, prefix) * 3)) * np.array(scales)[:rows, None], -1e6, 1e6),
        None if paired else rng.uniform(-1, 1, rows) * max(scales),
        vectors=asking.random_units(rng, 5, 3),
        first=first,
        prefix=prefix,
        grid=grid,
    )
    before = contribution(query, asking.embedded(data, np.arange(len(data)) % 2))
    part = contribution(query, asking.embedded([text], [1]))
    after = contribution(query, asking.embedded([*data, text], [*(np.arange(len(data)) % 2), 1]))
    # What a record adds is its own, to the last bit, and to its own label.
    assert np.array_equal(after - before, part)
    assert not part[: query.spec.features].any()
    _within(part, query.spec)
    if paired:
        # Whatever floating point does, integers of each pair keep to the circle.
        cosines, sines = part[query.spec.features :].reshape(2, rows)
        assert (cosines**2 + sines**2).max() <= grid**2


@pytest.mark.parametrize("prefix", [0, 1, 3])
@pytest.mark.parametrize("rows", [4, 7, 50])
def test_paired_sketches_reach_their_bounds_to_one_percent(rows, prefix):
    flat = _flat(rows, prefix=prefix)
    sensitivity = flat.spec.sensitivity
    assert sensitivity.shifts == ()
    got = _within(_answer(flat, [(1, 0)]), flat.spec)[1]
    assert got == rows * 64**2
    assert 0.99 * sensitivity.l2_squared <= got
    # All angles at 45 degrees.
    frequencies = np.zeros((rows, 2 * max(1, prefix)))
    frequencies[:, 0] = math.pi / 4 / math.sqrt(2)
    diagonal = asking.sketch(frequencies, prefix=prefix)
    assert _within(_answer(diagonal, [(1, 0)]), diagonal.spec)[0] >= 0.99 * diagonal.spec.sensitivity.l1
    # A user of two equal records.
    of_users = _flat(rows, prefix=prefix, max_records=2)
    two = _answer(of_users, [(1, 0)] * 3, ["u"] * 3)
    assert _within(two, of_users.spec)[1] == 4 * got >= 0.99 * of_users.spec.sensitivity.l2_squared


def test_rounding_to_nearest_would_exceed_the_bound_of_paired_sketches():
    frequencies = np.full((50, 2), 0.9 / math.sqrt(2))
    query = asking.sketch(frequencies, grid=1)
    nearest = 50 * (round(math.cos(0.9)) ** 2 + round(math.sin(0.9)) ** 2)
    assert nearest > query.spec.sensitivity.l2_squared
    assert _within(_answer(query, [(1, 0)]), query.spec) == (0, 0)


def test_a_record_moves_each_count_of_a_length_range_by_at_most_one():
    for data in _data_sets(2):
        for record in _RECORDS:
            before, after = (counts.lengths(_embedded(records)) for records in (data, [*data, record]))
            for x in range(8):
                for count in (lambda lengths, x=x: (lengths > x).sum(), lambda lengths, x=x: (lengths < x).sum()):
                    assert count(after) - count(before) in (0, 1)


def _seed_choice(labels, **spec):
    return seed_choice.SeedChoice(
        spec=SeedChoiceSpec(**spec), vectors=_DIRECTIONS, labels=np.array(labels, dtype=np.int32)
    )


@pytest.mark.parametrize("scale", [0.2, 1.0])
@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 1, 1], [1, 0, 1, 0], [2, 2, 2, 2]])
@pytest.mark.parametrize("nearest", [0, 1, 2, 3, 4, 7])
def test_a_choice_by_the_exponential_mechanism_costs_what_is_declared(nearest, labels, scale):
    """Exact probabilities, of any record, another in its place, or none."""
    query = _seed_choice(labels, choices=1, nearest=nearest)
    logs = []
    for data in [[], *([record] for record in _RECORDS)]:
        (row,) = seed_choices.utilities(query, _embedded(data), bytes(32))
        weights = row / UNIT / scale
        logs.append(weights - np.log(np.exp(weights).sum()))
    worst = max(np.abs(one - other).max() for one, other in itertools.combinations(logs, 2))
    assert worst <= query.spec.sensitivity.l1 / scale + 1e-9
    if nearest in {1, 2}:
        assert worst == pytest.approx(1 / scale)  # and no less


@pytest.mark.parametrize("nearest", [0, 2])
@pytest.mark.parametrize("choices", [1, 2, 3, 5])
def test_a_record_changes_the_utilities_of_one_chooser(choices, nearest):
    query = _seed_choice([0, 1, 0, 1], choices=choices, nearest=nearest)
    changed = set()
    for data in _data_sets(3):
        for record in [(1, 0), (3, 1)]:
            before, after = (
                [tuple(row.tolist()) for row in seed_choices.utilities(query, _embedded(records), bytes(32))]
                for records in (data, [*data, record])
            )
            assert len(before) == len(after) == choices
            assert all(0 <= utility <= UNIT for row in after for utility in row)
            gone = list(before)
            for row in after:
                if row in gone:
                    gone.remove(row)
            changed.add(len(gone))
    # A record more takes the place of one chooser, or of none.
    assert changed == {0, 1} or (choices == 5 and changed == {1})
