import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from scipy import stats

from common.errors import InternalError
from common.secagg import masks

KEY = bytes(range(32))


def oracle(key, length):
    """The same mask by another road: plain counter mode from block 2, in one piece."""
    stream = Cipher(AES(key), CTR(bytes(15) + b"\x02")).encryptor().update(bytes(8 * length))
    return np.array([int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(length)], dtype=np.uint64)


@pytest.mark.parametrize("length", [1, 7, 2**15 - 1, 2**15, 2**15 + 1, 3 * 2**15 + 5])
def test_mask_is_the_keystream_whatever_the_pieces(length):
    vector = np.zeros(length, dtype=np.uint64)
    masks.add_masks(vector, [(KEY, 1)])
    assert np.array_equal(vector, oracle(KEY, length))


def test_adding_then_subtracting_leaves_the_vector():
    vector = np.arange(70_000, dtype=np.uint64) * np.uint64(2**50)
    changed = vector.copy()
    masks.add_masks(changed, [(KEY, 1)])
    assert not np.array_equal(changed, vector)
    masks.add_masks(changed, [(KEY, -1)])
    assert np.array_equal(changed, vector)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 130])
def test_masks_added_together_are_those_added_one_by_one(count):
    keys = [hashlib.sha256(bytes([number])).digest() for number in range(count)]
    signs = [1 if number % 3 else -1 for number in range(count)]
    one_by_one = np.arange(2**15 + 3, dtype=np.uint64)
    together = one_by_one.copy()
    for key, sign in zip(keys, signs, strict=True):
        masks.add_masks(one_by_one, [(key, sign)])
    masks.add_masks(together, zip(keys, signs, strict=True))
    assert np.array_equal(together, one_by_one)


def test_keystream_is_what_is_added():
    vector = np.zeros(4, dtype=np.uint64)
    masks.add_masks(vector, [(KEY, 1)])
    assert masks.keystream(KEY, 32) == vector.astype("<u8").tobytes()


def test_an_empty_vector_stays_empty():
    masks.add_masks(np.zeros(0, dtype=np.uint64), [(KEY, 1)])


@pytest.mark.parametrize(
    "vector", [np.zeros(4, np.int64), np.zeros((2, 2), np.uint64), np.zeros(8, np.uint64)[::2]], ids=str
)
def test_other_arrays_are_refused(vector):
    with pytest.raises(InternalError):
        masks.add_masks(vector, [(KEY, 1)])


def test_all_bytes_of_a_masked_vector_are_uniform():
    """Chi-square over 256 values at each of the 8 byte positions; with fixed keys this cannot flicker.

    False-alarm rate 1e-6 in total (Bonferroni over 8), had the key been drawn at random.
    """
    vector = np.full(100_000, 12345, dtype=np.uint64)
    masks.add_masks(vector, [(hashlib.sha256(b"uniform").digest(), 1)])
    for position in vector.view(np.uint8).reshape(-1, 8).T:
        counts = np.bincount(position, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6 / 8


def test_the_whole_ring_is_used():
    """The top 2^-10 of the ring must be hit: 100 000 draws miss it with probability e^-97."""
    vector = np.zeros(100_000, dtype=np.uint64)
    masks.add_masks(vector, [(KEY, 1)])
    assert vector.max() >= 2**64 - 2**54
    assert np.unique(vector).size == vector.size
