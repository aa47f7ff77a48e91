"""Brute force over neighbouring hospitals for plans in which a record counts under several of its labels.

Label sets of the hospital's file, some of them longer than the plan allows, go through `PartyRecords.for_plan` and
`EmbeddedRecords.limited` as in a run.
"""

import itertools
import math

import numpy as np
import pytest

from client.contributions.contribute import contribution
from client.records import PartyRecords
from common.domain import Record
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.queries import votes
from common.queries.histograms import LabelHistogram, LabelHistogramSpec
from common.queries.label_sets import LabelSets, LabelSetsSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.votes import VotesSpec
from tests.support import asking
from tests.support.bounds import assert_reached, norms
from tests.support.lanes import slow_but

LABELS = ("a", "b", "c", "d")
DIRECTIONS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], dtype=np.float32)
SETS = [
    labels
    for size in (1, 2, 3, 4)
    for labels in itertools.permutations((*LABELS, "unknown"), size)
    if size < 3 or labels[0] in "ac"[: 5 - size]
]
KINDS = list(itertools.product(range(4), SETS))
ENCODER = Encoder.hashed_ngrams(dimensions=32, bits=10)
"""It embeds nothing here: vectors are given."""


def _votes(m, most, *, furthest):
    spec = VotesSpec(top=2, furthest=furthest, max_records=m, labels_per_record=most)
    labels = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0], np.int32)  # two texts of several labels, each under each of them
    return votes.Votes(spec=spec, vectors=DIRECTIONS[[0, 0, 0, 0, 3, 3, 3, 3, 2]], labels=labels)


def _sums(m, most):
    centres = [[-0.75, 0]] * len(LABELS)
    return asking.sums([[1, 0]], centres, grid=999, count=500, max_records=m, labels_per_record=most)


def _sets(m, most):
    return LabelSets(spec=LabelSetsSpec(labels=len(LABELS), labels_per_record=most, max_records=m))


QUERIES = {
    "nearest votes": lambda m, most: _votes(m, most, furthest=False),
    "nearest and furthest votes": lambda m, most: _votes(m, most, furthest=True),
    "class sums": _sums,
    "label sets": _sets,
}


def answer(query, records, owners=None, *, most=3):
    """Answer a query of a plan with up to `most` labels a record about records (direction, labels of the file)."""
    users = [None] * len(records) if owners is None else owners
    private = tuple(
        Record("note", first, user, tuple(more)) for (_, (first, *more)), user in zip(records, users, strict=True)
    )
    vectors = DIRECTIONS[[kind for kind, _ in records]].reshape(-1, 2)
    mine = PartyRecords(records=private, vectors=vectors, encoder=ENCODER)
    unit = "sample" if owners is None else "user"
    embedded = mine.for_plan(LABELS, unit=unit, labels_per_record=most)
    return contribution(query, embedded.limited(query.spec.max_records, query.spec.labels_per_record))


@pytest.mark.parametrize("most", slow_but({1, 3}, range(1, 4)))
@pytest.mark.parametrize("name", QUERIES)
def test_one_record_reaches_the_bounds_of_so_many_labels_and_never_exceeds_them(name, most):
    query, found = QUERIES[name](1, most), []
    for data in ([], [KINDS[40], KINDS[7]]):
        before = answer(query, data)
        found += [norms(answer(query, [*data, record]) - before, query.spec) for record in KINDS]
    assert_reached(found, query.spec)


@pytest.mark.parametrize("name", QUERIES)
def test_one_user_with_records_of_several_labels_keeps_to_m_times_the_bounds(name):
    query, (others, owners) = QUERIES[name](2, 2), ([(0, ("a", "b")), (2, ("c",))], ["x", "y"])
    before, found = answer(query, others, owners), []
    for size in (1, 2, 3):
        for user in itertools.product(KINDS[:: 7 * size**2], repeat=size):
            data, whose = [*user[:1], *others, *user[1:]], ["u", *owners, *["u"] * (size - 1)]
            found.append(norms(answer(query, data, whose) - before, query.spec))
    assert_reached(found, query.spec)


def test_the_first_labels_that_the_plan_knows_count_each_once_and_a_record_without_any_takes_no_part():
    count = _sums(1, 3)
    rows = answer(count, [(0, ("unknown", "d", "a", "d", "b", "c")), (1, ("unknown",))]).reshape(len(LABELS), -1)
    assert (rows[:, -1] // count.spec.count).tolist() == [1, 1, 0, 1]


def test_a_query_without_a_number_of_labels_counts_a_record_once_under_its_first():
    histogram = LabelHistogram(spec=LabelHistogramSpec(labels=4))
    assert answer(histogram, [(0, ("b", "a")), (0, ("unknown", "c"))]).tolist() == [0, 1, 1, 0]
    assert answer(histogram, [(0, ("b", "a")), (0, ("unknown", "c"))], most=1).tolist() == [0, 1, 0, 0]


def test_sets_are_counted_by_size_label_and_pair():
    counted = answer(_sets(1, 3), [(0, ("b", "a")), (0, ("a", "b", "d")), (0, ("c",))]) / LabelSetsSpec.grid
    assert counted.tolist() == [1, 1, 1, 2, 2, 1, 1, 2, 0, 1, 0, 1, 0]


def test_noise_grows_with_the_root_of_the_number_of_labels_and_a_questionnaire_has_one():
    for spec in (VotesSpec, lambda **known: asking.sums(np.eye(2), [[0, 0]], grid=64, count=16, **known).spec):
        several = spec(labels_per_record=3, **({"top": 8} if spec is VotesSpec else {})).sensitivity
        one = spec(**({"top": 8} if spec is VotesSpec else {})).sensitivity
        assert several.l2 == pytest.approx(math.sqrt(3) * one.l2)
        assert several.l1 == 3 * one.l1
    with pytest.raises(ConfigError, match="labels_per_record"):
        QuestionnaireSpec(labels=2, directions=2, count=1, words=1, labels_per_record=2)
