"""The order of sections in texts, as counts of steps from each section (or the beginning) to the next (or the end)."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def steps(sequences: Iterable[Sequence[str]], headings: Sequence[str]) -> Floats:
    """Return how often each step between sections occurs in each text, (texts, C + 1, C + 1) for C headings.

    The row is the section before the step (the last row is the beginning of the text), and the column is the section
    after it (the last column is the end).
    """
    place = {heading: number for number, heading in enumerate(headings)}
    counted = []
    for sequence in sequences:
        of_text, before = np.zeros((len(headings) + 1, len(headings) + 1)), len(headings)
        for at in [*(place[heading] for heading in sequence), len(headings)]:
            of_text[before, at] += 1
            before = at
        counted.append(of_text)
    return np.array(counted)


def independent_steps(counted: Floats) -> Floats:
    """Return the step counts expected if each section were independent of the section before it.

    Their row and column sums are about the same as those of `counted`.
    """
    rows, columns = (np.maximum(counted.sum(axis=axis), 0) for axis in (1, 0))
    expected = np.outer(rows, columns) * ~np.eye(len(counted), dtype=np.bool_)
    return np.asarray(expected * (rows.sum() / max(float(expected.sum()), 1e-12)))


def distance(counted: Floats, others: Floats) -> float:
    """Return the total variation distance, 0 to 1, between two distributions of steps."""
    ours, theirs = (numbers / max(float(numbers.sum()), 1e-12) for numbers in (counted, others))
    return float(np.abs(ours - theirs).sum() / 2)
