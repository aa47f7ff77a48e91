"""Batches of texts of similar length: a batch is padded to its longest text, and padding costs computation."""

from collections.abc import Sequence


def by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of texts by batch, the longest texts first, so that lack of memory shows at once.

    Args:
        lengths: Number of tokens of each text.
        budget: Maximum number of tokens of a batch, padding included; a longer text forms a batch alone.
    """
    batches: list[list[int]] = []
    width = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not batches or (len(batches[-1]) + 1) * width > budget:
            batches.append([])
            width = max(1, lengths[place])
        batches[-1].append(place)
    return batches
