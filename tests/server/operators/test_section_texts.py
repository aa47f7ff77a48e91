"""Orders of sections from noised numbers, and what becomes of the replies of models."""

import numpy as np
import pytest

from common.queries.section_order import SectionOrderSpec
from common.rng import experiment
from server.operators.section_texts import Chain, so_far

SPEC = SectionOrderSpec(labels=3, labels_per_record=3)


def answer(*sequences):
    """Count sequences as hospitals do."""
    counted = np.zeros((4, 4))
    for sequence in sequences:
        for before, after in zip([3, *sequence], [*sequence, 3], strict=True):
            counted[before, after] += 1
    return counted[~np.eye(4, dtype=bool)]


def drawn(*sequences, noise=0.0, count=400, spec=SPEC):
    answered = answer(*sequences) + noise * experiment(3).normal(size=12)
    return Chain.of_answer(answered, spec, noise).draw(count, experiment(7))


def test_without_noise_orders_and_shares_of_headings_are_those_of_the_records():
    texts = drawn(*[(2, 0, 1)] * 60, *[(2, 1)] * 40)
    assert set(texts) == {(2, 0, 1), (2, 1)}
    assert texts.count((2, 0, 1)) / 400 == pytest.approx(0.6, abs=0.08)


def test_an_order_that_no_chain_could_end_is_still_whole():
    """Half of the records end with B and half with A: a chain would end half of the texts after two sections."""
    texts = drawn(*[(2, 0, 1)] * 50, *[(1, 2, 0)] * 50)
    assert set(map(len, texts)) == {3}
    assert sum(text in {(2, 0, 1), (1, 2, 0)} for text in texts) > 300


def test_in_noise_larger_than_the_numbers_no_order_is_seen_and_texts_have_sections():
    texts = drawn((0, 1, 2), noise=50.0)
    assert all(1 <= len(set(text)) == len(text) <= 3 for text in texts)
    assert all(drawn(noise=50.0, count=20))
    two = SectionOrderSpec(labels=3, labels_per_record=2)
    assert set(map(len, drawn((0, 1, 2), spec=two, count=50))) == {2}


def test_the_text_so_far_is_bounded_however_many_sections_it_has():
    parts = [("A", "one two three four"), ("B", "five six")]
    assert so_far(parts, 4) == "A: one two\nB: five six"
    assert so_far(parts, 1) == so_far([], 5) == so_far(parts, 0) == ""
    assert len(so_far([("A", "word " * 500)] * 64, 200).split()) <= 200 + 64
