"""The vectorised hashing against a plain loop over n-grams."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.models.encoder import Encoder
from common.models.hashed_ngrams import CHARACTER_RUNS, _numbers, _table, hashed_rows

BITS = 40
"""So many that two of a test's few hundred n-grams share a hash with probability below 1e-7."""


@given(st.lists(st.text(alphabet="abC é!\n", max_size=12), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_equal_ngrams_have_equal_hashes_and_others_do_not(texts):
    rows, offsets = hashed_rows(texts, BITS)
    bags = [bag.tolist() for bag in np.split(rows, offsets[1:])]
    wanted = [plain_ngrams(text) for text in texts]
    assert [len(bag) for bag in bags] == [len(ngrams) for ngrams in wanted]
    for one, first in zip(bags, wanted, strict=True):
        for other, second in zip(bags, wanted, strict=True):
            assert shared(one, other) == shared(first, second)


def shared(one, other):
    return sum((Counter(one) & Counter(other)).values())


def plain_ngrams(text):
    lowered = text.lower()
    words = re.findall(r"\w+", lowered) or lowered.split() or ["\0"]
    ngrams = [("word", word) for word in words]
    ngrams += [("pair", *pair) for pair in pairwise(words)]
    # The space that ends a word begins the next, so the runs of each framed word are counted once.
    framed = [f" {word} " for word in words]
    ngrams += [("run", word[i : i + n]) for word in framed for n in CHARACTER_RUNS for i in range(len(word) - n + 1)]
    return ngrams


def signs(dimensions, bits, public_seed):
    """The whole table as (2^bits, dimensions) numbers +1 and -1."""
    return _numbers(_table(dimensions, bits, public_seed), dimensions)


def test_the_table_holds_signs_in_equal_share():
    table = signs(64, 10, 3)
    assert table.shape == (1024, 64)
    assert set(np.unique(table)) == {-1.0, 1.0}
    assert abs(table.mean()) < 5 / np.sqrt(table.size)  # 5 standard deviations; the seed is fixed
    gram = table.T @ table / 1024
    assert np.abs(gram - np.eye(64)).max() < 6 / np.sqrt(1024)


def test_a_vector_is_the_sum_of_its_rows_of_the_table():
    texts = ["a text", "", "another one, " * 300] * 100
    rows, offsets = hashed_rows(texts, 9)
    sums = np.stack([signs(32, 9, 2)[bag].sum(axis=0) for bag in np.split(rows, offsets[1:])])
    unit = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    vectors = Encoder.hashed_ngrams(dimensions=32, bits=9, public_seed=2).encode(texts)
    np.testing.assert_allclose(vectors, unit, atol=1e-6)
