"""The encoder without weights: hashed n-grams and a random table made from a public seed.

A text is cut into words, word pairs and the runs of 3 to 5 characters inside each word; each of these n-grams is
hashed to a row of a table of random signs (feature hashing: Weinberger et al. 2009; signs as a projection: Achlioptas
2003), and the text's vector is the sum of its rows. Nothing is fitted and nothing is downloaded, so all parties that
agree on three integers have the same encoder.

Every entry of the table is +1 or -1, so every sum is a whole number far below 2^24 and exact in float32: the same on
every machine, with any number of threads, and in any batch. So the table is stored as bits, one for each sign, and only
the rows of a few texts at a time are expanded to numbers.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from common.validate import at_least, in_range

CHARACTER_RUNS = (3, 4, 5)
"""Lengths of the character n-grams. Each word is padded with one space on either side, so that " a " is an n-gram."""

_WORDS = re.compile(r"\w+")
_SPACE = 32
_BASE = np.uint64(0x9E3779B97F4A7C15)
_WORD, _PAIR = 1, 2
_BLOCK = 64
"""Number of texts whose rows are expanded to numbers at a time."""
_ROWS = 4096
"""Number of rows that are expanded to numbers at a time for the digest."""


class HashedNgrams:
    """A model without weights; it computes the same bits in every batch and process and on every machine.

    It is a `common.models.windows.EmbeddingModel`.

    Args:
        dimensions: Number of dimensions of a vector, at least 32.
        bits: Base-2 logarithm of the number of rows of the table, 8 to 22.
        public_seed: Seed of the table.

    Raises:
        ConfigError: A value is out of range.
    """

    def __init__(self, dimensions: int, bits: int, public_seed: int) -> None:
        at_least(32, dimensions=dimensions)
        in_range(8, 22, bits=bits)
        self._numbers = (dimensions, bits, public_seed)

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""
        return self._numbers[0]

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the three parameters and the table."""
        return _digest(*self._numbers)

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield, for each batch, the indices of its texts and their vectors.

        A vector is the sum of its text's rows of the table: a (texts, dimensions) array of whole numbers.
        """
        table = _table(*self._numbers)
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            yield list(range(start, start + len(block))), _sums(block, table, *self._numbers[:2])


def _sums(texts: Sequence[str], table: NDArray[np.uint8], dimensions: int, bits: int) -> NDArray[np.float32]:
    """Return the sums of a few texts, computed from a matrix that counts how often each row occurs in each text."""
    rows, offsets = hashed_rows(texts, bits)
    present = np.zeros(1 << bits, np.bool_)
    present[rows] = True
    used = np.flatnonzero(present)
    column = (np.cumsum(present) - 1)[rows]
    sizes = np.diff(np.append(offsets, len(rows)))
    text = np.repeat(np.arange(len(texts)), sizes)
    counts = np.bincount(text * len(used) + column, minlength=len(texts) * len(used)).reshape(len(texts), len(used))
    positive = counts.astype(np.float32) @ np.unpackbits(table[used], axis=1, count=dimensions).astype(np.float32)
    added: NDArray[np.float32] = 2 * positive - sizes[:, None].astype(np.float32)
    return added


def hashed_rows(texts: Sequence[str], bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hash every n-gram of every text, all texts at once.

    Args:
        texts: At least one text. For a text without letters or digits the symbols are hashed, and for an empty text one
            fixed word.
        bits: Hashes lie in [0, 2^bits).

    Returns:
        Hashes, text after text, and the index at which each text's hashes begin; each text has at least one hash.
    """
    lines = [_line(text) for text in texts]
    sizes = np.array([len(line) for line in lines])
    ends = np.cumsum(sizes)
    joined = "".join(lines).encode("utf-32-le", "surrogatepass")
    characters = np.frombuffer(joined, np.uint32).astype(np.uint64)
    text_ends = np.repeat(ends, sizes)

    columns = [*_character_runs(characters, text_ends), *_words(characters, text_ends)]
    present = np.stack([valid for _, valid in columns], axis=1)
    hashes = _mixed(np.stack([value for value, _ in columns], axis=1)[present])
    starts = np.cumsum(np.add.reduceat(present.sum(axis=1), ends - sizes))
    offsets = np.concatenate([[0], starts[:-1]])
    return (hashes >> np.uint64(64 - bits)).astype(np.int64), offsets


_Column = tuple[NDArray[np.uint64], NDArray[np.bool_]]
"""Hash of the n-gram that begins at each character of the joined lines, and whether an n-gram begins there."""


def _line(text: str) -> str:
    lowered = unicodedata.normalize("NFKC", text).lower()
    words = _WORDS.findall(lowered) or lowered.split() or ["\0"]
    return f" {' '.join(words)} "


def _character_runs(characters: NDArray[np.uint64], text_ends: NDArray[np.int64]) -> list[_Column]:
    size = len(characters)
    position = np.arange(size)
    beyond = np.zeros(max(CHARACTER_RUNS), np.uint64)
    padded = np.concatenate([characters, beyond])
    spaces_before = np.cumsum(np.concatenate([beyond[:1], padded == _SPACE]))
    columns = []
    rolling = characters
    for length in range(2, max(CHARACTER_RUNS) + 1):
        last = position + length - 1
        rolling = rolling * _BASE + padded[last]
        if length in CHARACTER_RUNS:
            within_word = spaces_before[last] == spaces_before[position + 1]
            columns.append((_of_kind(length, rolling), within_word & (last < text_ends)))
    return columns


def _words(characters: NDArray[np.uint64], text_ends: NDArray[np.int64]) -> list[_Column]:
    size = len(characters)
    is_space = characters == _SPACE
    starts = np.flatnonzero(~is_space[1:] & is_space[:-1]) + 1
    lengths = np.diff(np.append(starts, size))
    letters = np.where(is_space, np.uint64(0), characters)[starts[0] :]
    place = np.arange(starts[0], size) - np.repeat(starts, lengths)
    powers = np.cumprod(np.concatenate([[np.uint64(1)], np.full(place.max(), _BASE)]), dtype=np.uint64)
    word = np.add.reduceat(letters * powers[place], starts - starts[0])
    same_text = text_ends[starts[:-1]] == text_ends[starts[1:]]
    pair = _mixed(word[:-1]) + word[1:]
    return [
        _column(size, starts, _of_kind(_WORD, word)),
        _column(size, starts[:-1][same_text], _of_kind(_PAIR, pair[same_text])),
    ]


def _column(size: int, at: NDArray[np.int64], values: NDArray[np.uint64]) -> _Column:
    column, present = np.zeros(size, np.uint64), np.zeros(size, np.bool_)
    column[at], present[at] = values, True
    return column, present


def _of_kind(kind: int, value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # A small salt would be cancelled by the difference of two characters; this one is as wide as the hash.
    return value ^ np.uint64(kind * 0xD1342543DE82EF95 % 2**64)


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of splitmix64 (Steele, Lea and Flood 2014): each bit of the input affects all others."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _numbers(table: NDArray[np.uint8], dimensions: int) -> NDArray[np.float32]:
    """Convert rows of bits to (rows, dimensions) numbers +1 and -1."""
    numbers = np.unpackbits(table, axis=1, count=dimensions).astype(np.float32)
    numbers *= 2
    numbers -= 1
    return numbers


@lru_cache(maxsize=1)
def _table(dimensions: int, bits: int, public_seed: int) -> NDArray[np.uint8]:
    """Return the table's signs as bits from SHAKE-256, (2^bits, dimensions / 8) uint8; a 1 bit stands for +1."""
    name = f"caucus hashed n-grams 1: {dimensions} {bits} {public_seed}"
    count = dimensions << bits
    stream = np.frombuffer(hashlib.shake_256(name.encode()).digest(-(-count // 8)), np.uint8)
    if dimensions % 8 == 0:
        return stream.reshape(1 << bits, dimensions // 8)
    return np.packbits(np.unpackbits(stream, count=count).reshape(1 << bits, dimensions), axis=1)


@lru_cache
def _digest(dimensions: int, bits: int, public_seed: int) -> str:
    """Return `Encoder.digest` of the encoder with this table, in hexadecimal."""
    config = {"dimensions": dimensions, "bits": bits, "public_seed": public_seed}
    described = json.dumps(["HashedNgrams", config], sort_keys=True)
    weights = f"table.weight torch.float32 {(1 << bits, dimensions)}"
    hashed = hashlib.sha256(f"{described}{weights}".encode())
    table = _table(dimensions, bits, public_seed)
    for start in range(0, len(table), _ROWS):
        hashed.update(_numbers(table[start : start + _ROWS], dimensions).data)
    return hashed.hexdigest()
