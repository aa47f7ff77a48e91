"""What the audit lets a lying hospital do is what it says."""

import pytest

from common.domain import Record
from simulations.laboratory.audit import liar


def test_each_label_becomes_the_one_after_it():
    records = [Record(text=str(number), label=label) for number, label in enumerate("abca")]
    changed = [(record.text, record.label) for record in liar.mislabel_records(records)]
    assert changed == [("0", "b"), ("1", "c"), ("2", "a"), ("3", "b")]


def test_a_liar_takes_exemplars_that_it_would_have_by_chance():
    shares = [liar.liars_share(100, 4.0, times, trials=100) for times in (0, 1, 10)]
    # Of eight drawn from thirty; the mean of 100 trials is within five of its standard deviations, 0.014.
    assert shares[0] == pytest.approx(8 / 30, abs=0.07)
    assert shares == sorted(shares)
    assert shares[2] > 0.9


def test_a_liar_moves_its_label_and_nothing_moves_it_without_one():
    (none, share), (once, more), (ten, most) = (liar.mean(1000, 4.0, times, trials=5) for times in (0, 1, 10))
    assert none == 0
    assert share == pytest.approx(0.1, abs=0.05)
    assert 0.2 < once < ten
    assert share < more < most
