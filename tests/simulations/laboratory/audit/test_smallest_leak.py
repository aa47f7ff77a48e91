"""The measurement of the smallest leak, on a corpus whose texts have nothing in common."""

import numpy as np
import pytest

from simulations.laboratory.audit import smallest_leak
from simulations.laboratory.audit.smallest_leak import COPIES


@pytest.fixture
def corpus(monkeypatch):
    monkeypatch.setattr(smallest_leak, "_SIDE", 30)
    monkeypatch.setattr(smallest_leak, "values_of", lambda text: set())
    generator = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in generator.integers(10**6, size=12)) for _ in range(160)]
    return smallest_leak._corpus(texts[:60], texts[60:])


def test_the_smallest_leak_is_that_of_the_arithmetic(corpus):
    # A hypergeometric test of one fifth of 5 % needs 7 of 7 where nothing else is disclosed.
    assert smallest_leak.smallest(corpus, 50, smallest_leak.learned, changed=0.0, runs=4) in {6, 7}
    assert smallest_leak.smallest(corpus, COPIES[0], smallest_leak.learned, changed=0.0, runs=4) is None


def test_copies_are_of_records_of_training(corpus):
    flags = smallest_leak.disclosed(corpus, 50, 10, run=0)["rare word sequences"]
    assert np.flatnonzero(flags).tolist() == list(range(10))


def test_a_chain_writes_what_its_messages_say_three_words_at_a_time(monkeypatch):
    monkeypatch.setattr(smallest_leak, "_BANK", 20)
    texts = smallest_leak._chained(["a b c d", "x b c e"], np.random.default_rng(0))
    assert set(texts) == {"a b c d", "a b c e", "x b c d", "x b c e"}
