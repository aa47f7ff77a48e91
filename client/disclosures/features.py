"""Which records the synthetic texts disclose, by five features of each record that need neither the model nor canaries.

The records of the training set and of a control set form one pool. This module has no access to the set that a record
belongs to, so no feature can prefer one set. `learning.py` counts afterwards how many disclosed records each set has.

    personal information     a synthetic text has a name, date or number that the patterns of `common/redaction.py` find
                             and whose words occur only in this record of the pool
    rare word sequences      a synthetic text has five words in a row that occur only in this record of the pool
    longest verbatim spans   the record is among the `MOST` that share the most consecutive words with a text
    one near text            the record is among the `MOST` whose nearest text, by the encoder, is nearest in comparison
                             with their second nearest text, which reveals a copy with changed words among many texts
    nearest texts            the record is among the tenth of the pool that is nearest to a text, by the encoder

The first two features require an occurrence. The others rank the pool, so that a large number of texts does not
disclose all records; records tied with the last rank count as disclosed too. Case and punctuation are ignored.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from common.redaction import default

FEATURES = ("personal information", "rare word sequences", "longest verbatim spans", "one near text", "nearest texts")
RARE = 5
"""Number of words in a rare sequence."""
MOST = 12
"""Number of records that stand out in a pool. If half of the pool is from training, 11 training
records among these 12 are significant."""
NEAREST = 0.1
"""Fraction of the pool that counts as near to the texts."""

_WORD = re.compile(r"\w+")
_BLOCK = 1024
Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """Return the words of a text, in one case and without punctuation."""
    return tuple(_WORD.findall(text.casefold()))


def personal_values(text: str) -> set[Words]:
    """Return the words of each piece of personal information that the patterns find in a text (`common/redaction.py`).

    Raises:
        MissingPackageError: The package with the patterns is not installed.
    """
    return {words_of(text[start:end]) for start, end, _ in default().spans(text)} - {()}


def flag_disclosed(
    records: Sequence[str],
    texts: Sequence[str],
    *,
    personal: Callable[[str], Iterable[Words]] | None,
    nearness: NDArray[np.float32],
) -> dict[str, NDArray[np.bool_]]:
    """Flag the records that the texts disclose: (records,) bool for each tested one of `FEATURES`, in that order.

    Args:
        records: Texts of the records of the pool.
        texts: The synthetic texts.
        personal: Function that returns the personal information in a record; None leaves this feature out.
        nearness: (records, 2) similarity of each record to the two texts nearest to it (`nearest`).
    """
    pool, released = [words_of(record) for record in records], [words_of(text) for text in texts]
    of_values = {} if personal is None else {FEATURES[0]: _personal(pool, released, [*map(personal, records)])}
    rare, spans = _sequences(pool, released)
    return of_values | {
        FEATURES[1]: rare,
        FEATURES[2]: _highest(spans, MOST) & (spans > 0),
        FEATURES[3]: _highest(nearness[:, 0] - nearness[:, 1], MOST),
        FEATURES[4]: _highest(nearness[:, 0], max(1, round(NEAREST * len(nearness)))),
    }


def _personal(pool: Sequence[Words], released: Sequence[Words], values: Sequence[Iterable[Words]]) -> NDArray[np.bool_]:
    """Flag the records with a value that is in a text, and in no other record."""
    rare = _rare_values(pool, values)
    flags = np.zeros(len(pool), dtype=np.bool_)
    flags[[rare[value] for of_text in _occurring(set(rare), released) for value in of_text]] = True
    return flags


def _sequences(pool: Sequence[Words], released: Sequence[Words]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Flag the records with a rare sequence in a text, and count the words of each record's longest span in a text.

    Records and texts are each one stream of numbered words. Spans that occur in both are extended by one word at a time
    until no span is left, so after the first few words almost only copied passages are still examined.
    """
    numbers: dict[str, int] = {}
    # The two ends of a document differ, so that no common span crosses one.
    stream, record = _stream(pool, numbers, end=0)
    other, _ = _stream(released, numbers, end=1)
    base = len(numbers) + 2
    rare, longest = np.zeros(len(pool), dtype=np.bool_), np.zeros(len(pool), dtype=np.int64)
    start, start_other = np.arange(len(stream)), np.arange(len(other))
    span, span_other = stream, other
    length = 1
    while True:
        common, common_other = np.isin(span, span_other), np.isin(span_other, span)
        start, span = start[common], span[common]
        start_other, span_other = start_other[common_other], span_other[common_other]
        if not len(start):
            return rare, longest
        longest[record[start]] = length
        if length == RARE:
            holders = np.unique(np.stack([span, record[start]]), axis=1)
            _, first, counts = np.unique(holders[0], return_index=True, return_counts=True)
            rare[holders[1][first[counts == 1]]] = True
        longer = np.concatenate([span * base + stream[start + length], span_other * base + other[start_other + length]])
        _, numbered = np.unique(longer, return_inverse=True)
        span, span_other = numbered[: len(span)], numbered[len(span) :]
        length += 1


def nearest(records: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the (records, 2) cosines between each record and the two texts nearest to it, the nearest first.

    Args:
        records: (records, d) vectors of unit norm.
        texts: (texts, d) vectors of unit norm, at least one; with a single text the second cosine is -1.
    """
    texts = texts if len(texts) > 1 else np.concatenate([texts, np.full_like(texts, np.nan)])
    highest = np.empty((len(records), 2), dtype=np.float32)
    for start in range(0, len(records), _BLOCK):
        cosines = np.nan_to_num(records[start : start + _BLOCK] @ texts.T, nan=-1.0)
        highest[start : start + _BLOCK] = np.partition(cosines, -2, axis=1)[:, :-3:-1]
    return highest


def _highest(scores: NDArray[np.generic], most: int) -> NDArray[np.bool_]:
    """Flag the `most` highest scores, and all scores that are equal to the lowest of them."""
    return np.asarray(scores >= np.sort(scores)[-min(most, len(scores))])


def _rare_values(pool: Sequence[Words], values: Sequence[Iterable[Words]]) -> dict[Words, int]:
    """Return the values that occur in exactly one record of the pool, each with the index of that record."""
    holders: dict[Words, list[int]] = {}
    for position, of_text in enumerate(_occurring({value for of_record in values for value in of_record}, pool)):
        for value in of_text:
            holders.setdefault(value, []).append(position)
    return {value: positions[0] for value, positions in holders.items() if len(positions) == 1}


def _occurring(wanted: set[Words], texts: Sequence[Words]) -> Iterator[set[Words]]:
    """Yield, for each text, the wanted values that occur in it."""
    lengths: dict[str, set[int]] = {}
    for value in wanted:
        lengths.setdefault(value[0], set()).add(len(value))
    for text in texts:
        pieces = (text[start : start + length] for start, word in enumerate(text) for length in lengths.get(word, ()))
        yield {piece for piece in pieces if piece in wanted}


def _stream(documents: Sequence[Words], numbers: dict[str, int], *, end: int) -> tuple[NDArray[np.int64], ...]:
    """Return all documents' words as integer IDs, each document followed by `end`, and the document index of each ID.

    New words are added to `numbers`, which maps each word to its ID.
    """
    stream: list[int] = []
    for words in documents:
        stream += [numbers.setdefault(word, len(numbers) + 2) for word in words]
        stream.append(end)
    lengths = [len(words) + 1 for words in documents]
    return np.array(stream, dtype=np.int64), np.repeat(np.arange(len(documents)), lengths)
