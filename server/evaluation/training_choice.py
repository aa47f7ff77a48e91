"""Variance of what a model learns that is due to the choice of its training texts.

Two sets of texts from one source teach more or less by chance. A difference between them is a difference between the
sources only if it exceeds this chance too, beside the choice of the test texts. For some hundred training texts or
fewer it is the larger of the two.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from server.metrics.intervals import Variance, jackknife

GROUPS = 10
"""Number of groups of training texts, and so of trainings; five give an interval that is much wider."""

MOST = 1000
"""Largest number of texts in these trainings: of 10,000 texts of many labels they would take a quarter of an hour. The
variance of a part is larger than that of all, so that the interval is then too wide."""

DEFINITION = (
    "95 % interval over the test texts, paired, and over the choice of the training texts (jackknife of ten groups of "
    f"each set, of {MOST:,} texts at most, Student's t), as if these were independent draws; another run of the "
    "language models may differ by more"
)


def variance(
    labels: Sequence[str],
    tested: Callable[[list[int]], NDArray[np.float64]],
    generator: np.random.Generator,
) -> Variance:
    """Return the variance of a model's mean over test texts due to the choice of its training texts, at least 0.

    The estimate is a jackknife. Training texts are sorted by label and assigned by cycling through the groups, so that
    every label has about the same number of texts in each group. The mean over the test texts also varies because
    training changes single test texts at random. The variance over test texts has this part already, so it is
    subtracted: it is the mean square of the residuals in the table of parts and test texts, which has two ways.

    Args:
        labels: Label of each training text.
        tested: Function that trains the model on the texts with these indices and returns a value for each test text,
            such as 1 for a right answer.
        generator: Determines the order of the texts of each label.

    Raises:
        DataError: There are too few texts, or the model cannot be trained on a part of the texts.
    """
    if len(labels) < 2 * GROUPS:
        expected = f"{2 * GROUPS} or more, to see how much their choice matters"
        raise DataError("training texts", expected=expected, got=len(labels))
    order = sorted(generator.permutation(len(labels)).tolist(), key=lambda at: labels[at])
    order = order[:: -(-len(order) // MOST)]
    parts = ([at for place, at in enumerate(order) if place % GROUPS != left_out] for left_out in range(GROUPS))
    table = np.array([tested(part) for part in parts], dtype=np.float64)
    means, rows = table.mean(axis=1), table.shape[1]
    residuals = table - means[:, None] - table.mean(axis=0) + means.mean()
    square = float((residuals**2).sum()) / (GROUPS - 1) / max(1, rows - 1)
    variance, freedom = jackknife(means.tolist())
    return max(0.0, variance - (GROUPS - 1) ** 2 / GROUPS * square / rows), freedom
