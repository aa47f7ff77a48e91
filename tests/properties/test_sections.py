"""Brute force over neighbouring hospitals for plans that take records section by section.

Texts go through `embed_records` and `PartyRecords.for_plan` as in a run: sections in any order and number, with
headings that the plan or the hospital's file lacks, and each with a vector of its own.
"""

import itertools
import logging
import math

import numpy as np
import pytest

from client.contributions.contribute import contribution
from client.records import embed_records
from common.domain import Record
from common.errors import ConfigError
from common.queries.closed_set import spec_from_dict
from common.queries.section_order import SectionOrder, SectionOrderSpec
from common.queries.votes import Votes, VotesSpec
from tests.support import asking
from tests.support.bounds import assert_reached, norms
from tests.support.lanes import slow_but

PLAN = ("History", "Findings", "Plan")
FILE = ("findings", "HISTORY", "Plan", "Allergies")
DIRECTIONS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], dtype=np.float32)


class Directions:
    """An encoder that knows four words."""

    runs_here = True
    dimensions = 2
    digest = "0" * 64

    def encode(self, texts):
        places = ["abcd".index(text.strip()[-1]) for text in texts]
        return DIRECTIONS[places].reshape(-1, 2)


def _text(headings, words):
    parts = zip(headings, itertools.cycle(words), strict=False)
    return "".join(f"{heading}:\n{word}\n" for heading, word in parts) or "none a"


TEXTS = [
    _text(order, words)
    for size in range(5)
    for order in itertools.permutations(("history", "Findings", "Plan", "Allergies"), size)
    for words in ("aad", "db", "c")
    if size < 4 or words == "aad"
]


def _votes(m, most):
    labels = np.array([0, 1, 2, 0, 1, 2], np.int32)
    spec = VotesSpec(top=2, furthest=True, max_records=m, labels_per_record=most)
    return Votes(spec=spec, vectors=DIRECTIONS[[0, 0, 0, 3, 3, 3]], labels=labels)


def _sums(m, most):
    centres = [[-0.75, 0]] * len(PLAN)
    return asking.sums([[1, 0]], centres, grid=999, count=500, max_records=m, labels_per_record=most)


def _order(m, most):
    return SectionOrder(spec=SectionOrderSpec(labels=len(PLAN), labels_per_record=most, max_records=m))


QUERIES = {"votes": _votes, "class sums": _sums, "section order": _order}


def answer(query, texts, users=None, *, most=3):
    private = [Record(text, "any", user) for text, user in zip(texts, users or [None] * len(texts), strict=True)]
    mine = embed_records(private, Directions(), FILE)
    unit = "sample" if users is None else "user"
    rows = mine.for_plan(PLAN, unit=unit, labels_per_record=most, by_section=True)
    return contribution(query, rows.limited(query.spec.max_records, query.spec.labels_per_record))


@pytest.mark.parametrize("most", slow_but({1, 3}, range(1, 4)))
@pytest.mark.parametrize("name", QUERIES)
def test_one_record_reaches_the_bounds_of_so_many_sections_and_never_exceeds_them(name, most):
    query, found = QUERIES[name](1, most), []
    for data in ([], [TEXTS[20], TEXTS[-1]]):
        before = answer(query, data)
        found += [norms(answer(query, [*data, text]) - before, query.spec) for text in TEXTS]
    assert_reached(found, query.spec)


@pytest.mark.parametrize("name", ["class sums", "section order"])
def test_one_user_with_several_records_keeps_to_m_times_the_bounds(name):
    query, (others, owners) = QUERIES[name](2, 2), ([TEXTS[5], TEXTS[20]], ["x", "y"])
    before, found = answer(query, others, owners), []
    for size in (1, 2, 3):
        for user in itertools.product(TEXTS[1 :: 3 * size**2], repeat=size):
            data, whose = [*user[:1], *others, *user[1:]], ["u", *owners, *["u"] * (size - 1)]
            found.append(norms(answer(query, data, whose) - before, query.spec))
    assert_reached(found, query.spec)


def test_a_section_counts_with_its_own_vector_and_a_record_under_its_first_headings_that_the_plan_has():
    text = "a\nAllergies: b\nPlan: d\nfindings: a\nHistory: c\nplan: b"
    rows = embed_records([Record(text, "any")], Directions(), FILE).for_plan(PLAN, labels_per_record=2, by_section=True)
    assert [PLAN[label] for label in rows.labels] == ["Plan", "Findings"]
    assert rows.texts == ("d", "a")
    assert np.array_equal(rows.vectors, DIRECTIONS[[3, 0]])


def test_the_order_is_counted_from_the_beginning_to_the_end_without_what_no_text_reaches():
    counted = answer(_order(1, 3), ["History: a\nPlan: b", "Plan: a", "nothing a"]) / SectionOrderSpec.grid
    matrix = np.zeros((4, 4))
    matrix[~np.eye(4, dtype=bool)] = counted
    assert matrix.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 2], [1, 0, 1, 0]]


def test_a_hospital_without_the_headings_takes_no_part_and_is_told_so_without_a_word_of_its_texts(caplog):
    caplog.set_level(logging.WARNING)
    for headings in ((), ("Course",)):
        mine = embed_records([Record("History: zqx a", "any")], Directions(), headings)
        assert mine.for_plan(PLAN, labels_per_record=3, by_section=True).texts == ()
    assert len(caplog.messages) == 2
    assert all("do not take part" in message and "zqx" not in message for message in caplog.messages)


def test_noise_of_the_order_grows_with_the_root_of_the_bigrams_and_no_record_has_more_sections_than_headings():
    assert _order(1, 3).spec.sensitivity.l2 == pytest.approx(math.sqrt(4) * SectionOrderSpec.grid)
    with pytest.raises(ConfigError, match="labels_per_record"):
        spec_from_dict({"kind": "section order", "labels": 2, "labels_per_record": 3, "max_records": 1})
