"""Brute force over neighbouring hospitals for a plan without labels: one population, C = 1.

The records have labels of their own, as a hospital's file may, and go through `PartyRecords.for_plan` as in a run.
"""

import itertools

import numpy as np
import pytest

from client.contributions.contribute import contribution
from client.records import PartyRecords
from common.domain import UNLABELLED, Record
from common.models.encoder import Encoder
from common.queries import votes
from common.queries.histograms import LabelHistogram, LabelHistogramSpec
from common.queries.self_similarity import SelfSimilarity, SelfSimilaritySpec
from common.queries.votes import VotesSpec
from tests.support import asking
from tests.support.bounds import assert_reached, norms

DIRECTIONS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], dtype=np.float32)
TEXTS = ("", "fever", "cough and chest pain", "fever fever cough pain relief drug")
OWN = ("flu", "cold", UNLABELLED)
"""Labels of the hospital's file; the last one stands for a file without labels."""
KINDS = list(itertools.product(range(4), OWN))
"""Direction and text by the first number, and the label in the hospital's file."""
ENCODER = Encoder.hashed_ngrams(dimensions=32, bits=10)
"""It embeds nothing here: vectors are given."""


def _votes(m, *, furthest):
    spec = VotesSpec(top=3, furthest=furthest, max_records=m)
    return votes.Votes(spec=spec, vectors=DIRECTIONS[[0, 3, 0, 2]], labels=np.zeros(4, np.int32))


QUERIES = {
    "nearest votes": lambda m: _votes(m, furthest=False),
    "nearest and furthest votes": lambda m: _votes(m, furthest=True),
    "class sums along one direction": lambda m: asking.sums([[1, 0]], [[-0.75, 0]], grid=999, count=500, max_records=m),
    "class sums along two": lambda m: asking.sums(np.eye(2), [[-0.75, 0]], grid=5, count=5, max_records=m),
    "density sketch": lambda m: asking.sketch(np.zeros((3, 2)), np.zeros(3), labels=1, max_records=m),
    "label histogram": lambda m: LabelHistogram(spec=LabelHistogramSpec(labels=1, max_records=m)),
}


def answer(query, records, owners=None):
    """Answer a query of a plan without labels about records (kind, label of the file)."""
    users = [None] * len(records) if owners is None else owners
    private = tuple(Record(TEXTS[kind], label, user) for (kind, label), user in zip(records, users, strict=True))
    vectors = DIRECTIONS[[kind for kind, _ in records]].reshape(-1, 2)
    mine = PartyRecords(records=private, vectors=vectors, encoder=ENCODER)
    embedded = mine.for_plan((UNLABELLED,), unit="sample" if owners is None else "user")
    assert len(embedded.labels) == len(records)  # every record takes part
    return contribution(query, embedded.limited(query.spec.max_records))


@pytest.mark.parametrize("name", QUERIES)
def test_one_record_reaches_the_bounds_of_one_label_and_never_exceeds_them(name):
    query = QUERIES[name](1)
    found = []
    for data in itertools.chain([()], ((one,) for one in KINDS), itertools.combinations(KINDS[::5], 2)):
        before = answer(query, data)
        found += [norms(answer(query, [*data, record]) - before, query.spec) for record in KINDS]
    assert_reached(found, query.spec)


@pytest.mark.parametrize("name", QUERIES)
def test_one_user_with_records_of_several_labels_keeps_to_m_times_the_bounds(name):
    query = QUERIES[name](2)
    others, owners = [(0, "flu"), (2, "cold")], ["a", "b"]
    before, found = answer(query, others, owners), []
    for size in (1, 2, 3):
        for user in itertools.product(KINDS[::2], repeat=size):
            data, whose = [*user[:1], *others, *user[1:]], ["u", *owners, *["u"] * (size - 1)]
            found.append(norms(answer(query, data, whose) - before, query.spec))
    assert_reached(found, query.spec)


@pytest.mark.parametrize(
    "query",
    [
        *(make(1) for make in QUERIES.values()),
        asking.questionnaire(np.eye(2), [[-0.75, 0]]),
        SelfSimilarity(spec=SelfSimilaritySpec(buckets=1, grid=999)),
    ],
    ids=lambda query: query.spec.kind,
)
def test_no_answer_depends_on_a_label(query):
    """Not even the choice of buckets, whose keyed digests are of label and text: the label is the same for all."""
    given = answer(query, [(0, "flu"), (2, "cold"), (3, "cold")])
    for labels in itertools.product(OWN, repeat=3):
        assert np.array_equal(answer(query, list(zip((0, 2, 3), labels, strict=True))), given)


def test_the_noise_of_one_population_is_that_of_any_number_of_labels():
    """Votes and sums do not depend on C: a record has one label, and adds nothing to any other."""
    for labels in (1, 2, 77):
        spec = asking.sums(np.eye(2), [[0, 0]] * labels, grid=1024, count=256).spec
        assert (spec.sensitivity.l1, spec.sensitivity.l2_squared) == (1448 + 256, 1024**2 + 256**2)
    assert VotesSpec(top=8).sensitivity.l2_squared == 43690
