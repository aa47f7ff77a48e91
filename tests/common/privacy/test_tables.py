import numpy as np
import pytest

from common.privacy import tables
from common.privacy.keystream import Keystream
from common.privacy.samplers import _gaussian_table, _negative_binomial_table
from tests.support.lanes import slow

KEY = bytes(range(32))
TABLES = {
    "Gaussian 0.4": lambda: _gaussian_table(0.4),
    "Gaussian 30": lambda: _gaussian_table(30.0),
    "Laplace 3 of 1": lambda: _negative_binomial_table(3.0, 1),
    "Laplace 0.7 of 10": lambda: _negative_binomial_table(0.7, 10),
    "equal thresholds": lambda: tables.build(-1, [1, 0, 0, 5, 1 << 200, 0, 0]),
    "one value": lambda: tables.build(4, [3]),
}


def thresholds(table):
    return [int(high) << 64 | int(low) for high, low in zip(table.high_words, table.low_words, strict=True)]


def by_counting(table, first, second):
    u = int(first) << 64 | int(second)
    return table.low + sum(threshold <= u for threshold in thresholds(table))


@pytest.mark.parametrize("name", [slow(name) if name == "Gaussian 30" else name for name in list(TABLES)[:-1]])
def test_look_up_around_every_threshold(name):
    """The rare draws that the first word does not settle: one below, on, and one above each threshold."""
    table = TABLES[name]()
    around = [0, 2**128 - 1, 2**127]
    for threshold in thresholds(table):
        around += [threshold - 1, threshold, threshold + 1, threshold >> 64 << 64, threshold | 2**64 - 1]
    around = [u for u in around if 0 <= u < 2**128]
    first = np.array([u >> 64 for u in around], dtype=np.uint64)
    second = np.array([u & (2**64 - 1) for u in around], dtype=np.uint64)
    expected = [by_counting(table, a, b) for a, b in zip(first, second, strict=True)]
    assert tables._look_up(table, first, second).tolist() == expected
    assert max(expected) > min(expected)


@pytest.mark.parametrize("name", ["Gaussian 30", "Laplace 3 of 1", "Laplace 0.7 of 10"])
def test_guide_agrees_with_counting_on_random_words(name):
    table = TABLES[name]()
    first, second = np.random.default_rng(0).integers(0, 2**64, (2, 1000), dtype=np.uint64)
    expected = [by_counting(table, a, b) for a, b in zip(first, second, strict=True)]
    assert tables._look_up(table, first, second).tolist() == expected


def test_thresholds_are_rounded_down_and_below_the_whole():
    third = (1 << 128) // 3
    assert thresholds(tables.build(0, [1, 1, 1])) == [third, 2 * third]
    assert thresholds(tables.build(0, [0, 7, 0, 0])) == [0, 2**128 - 1, 2**128 - 1]


@pytest.mark.parametrize("chunk", [64, 1 << 16])
def test_a_draw_is_two_words_of_the_stream_whatever_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(tables, "_CHUNK", chunk)
    table = _gaussian_table(20.0)
    words = np.frombuffer(Keystream(KEY).read(16 * 300), dtype="<u8").reshape(-1, 2)
    draws = tables.draw(table, 300, Keystream(KEY))
    assert draws.dtype == np.int64
    assert draws.tolist() == [by_counting(table, *pair) for pair in words]


def test_rounding_is_of_two_units_a_threshold():
    assert tables.rounding(1) == pytest.approx(2 * 2.0**-128)
    assert tables.rounding(10) == 10 * tables.rounding(1)
