"""The order of the sections of texts: numbers of steps from one section, or the beginning, to the next, or the end."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def steps(sequences: Iterable[Sequence[str]], headings: Sequence[str]) -> Floats:
    """Return the number of steps of each kind in each text, (texts, C + 1, C + 1) for C headings.

    Rows are the section before the step, with the beginning last; columns are the section after it, with the end last.
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


def independent(counted: Floats) -> Floats:
    """Return the numbers of steps if each section were independent of the one before, with about the same sums."""
    rows, columns = (np.maximum(counted.sum(axis=axis), 0) for axis in (1, 0))
    expected = np.outer(rows, columns) * ~np.eye(len(counted), dtype=np.bool_)
    return np.asarray(expected * (rows.sum() / max(float(expected.sum()), 1e-12)))


def distance(counted: Floats, others: Floats) -> float:
    """Return the total variation distance, 0 to 1, between the two distributions of steps."""
    ours, theirs = (numbers / max(float(numbers.sum()), 1e-12) for numbers in (counted, others))
    return float(np.abs(ours - theirs).sum() / 2)
