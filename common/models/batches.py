"""Texts of like length together: a batch is padded to its longest, and what is padded is computed for nothing."""

from collections.abc import Sequence


def by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions in batches, the longest texts first, so that what does not fit into memory fails at once.

    Args:
        lengths: Tokens of each text.
        budget: Tokens of a batch, padding included; a text that is longer is a batch of its own.
    """
    batches: list[list[int]] = []
    width = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not batches or (len(batches[-1]) + 1) * width > budget:
            batches.append([])
            width = max(1, lengths[place])
        batches[-1].append(place)
    return batches
