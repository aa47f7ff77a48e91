"""The picture of signal against noise is the one in the page of the census, and has its reference figures."""

import math
from pathlib import Path

import pytest

import server.methods
from simulations.laboratory.benchmarks.signal import ANSWERS, RECORDS, drawn, estimates, main

PAGE = Path(server.methods.__file__).parent / "CENSUS.md"


def test_the_page_shows_what_the_module_prints(capsys):
    main([])
    assert f"```\n{capsys.readouterr().out}```\n" in PAGE.read_text("utf-8")


@pytest.mark.parametrize(("epsilon", "noise"), [(1, 12.2), (4, 3.5)])
def test_votes_for_6000_texts_drown(epsilon, noise):
    """At M = 100 two hundred votes, by weight, among the 4,800 texts of the last question: .033 for one of 6,000."""
    expected = estimates(epsilon, *ANSWERS["V"])[100].expected
    assert round(expected.noise, 1) == noise
    assert expected.signal * 4800 / 6000 == pytest.approx(0.033, abs=5e-4)


@pytest.mark.parametrize(("epsilon", "ratio"), [(1, 1.1), (4, 3.7)])
def test_class_sums_do_not(epsilon, ratio):
    signals = estimates(epsilon, *ANSWERS["C"])
    # Without the quarter of a radius that a record adds to its label's count.
    assert round(signals[100].ratio * math.sqrt(1 + 0.25**2), 1) == ratio
    assert [signals[records].ratio / signals[100].ratio for records in RECORDS] == pytest.approx([1, 3, 10])


def test_marks_stand_at_their_ratios_within_the_scale():
    line = drawn({"a": 0.001, "b": 0.1, "c": 1.0, "d": 1e9, "e": 1e-9})
    assert [line.index(mark) for mark in "ebcd"] == [0, 20, 30, 49]
    assert (line.count("."), line.count("-"), len(line)) == (24, 7, 50)
