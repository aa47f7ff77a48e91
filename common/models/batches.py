"""Batches of texts of similar or equal length: each batch is padded to its longest text, which costs computation."""

from collections.abc import Sequence
from itertools import groupby


def batches_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return batches of text indices, longest texts first, so that insufficient memory shows in the first batch.

    Args:
        lengths: Number of tokens of each text.
        budget: Maximum number of tokens in a batch, including padding; a longer text gets a batch of its own.
    """
    batches: list[list[int]] = []
    width = 0
    for place in _longest_first(lengths):
        if not batches or (len(batches[-1]) + 1) * width > budget:
            batches.append([])
            width = max(1, lengths[place])
        batches[-1].append(place)
    return batches


def batches_of_equal_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return batches as `batches_by_tokens` does, but only of texts of equal length, which need no padding."""
    batches = []
    for length, places in groupby(_longest_first(lengths), key=lengths.__getitem__):
        texts = list(places)
        size = max(1, budget // max(1, length))
        batches += [texts[start : start + size] for start in range(0, len(texts), size)]
    return batches


def _longest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda place: -lengths[place])


def encodable(text: str) -> str:
    """Replace each lone half of a surrogate pair, which tokenizers reject, by a question mark."""
    return text.encode("utf-8", "replace").decode()
