"""The confusion matrix of the classifier that the synthetic texts train, or its most frequent confusions."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.documents.files import Document

MOST = 10
"""Maximum number of labels for which the page shows a matrix, and number of confusions that it lists in place of a
larger matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confused(Document):
    """Test texts of one label for which the classifier predicts another label.

    Attributes:
        label: The true label.
        predicted: The label that the classifier predicts.
        texts: Number of these test texts.
        tested: Number of all test texts with the true label.
    """

    label: str
    predicted: str
    texts: int
    tested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion(Document):
    """True and predicted labels of the test texts.

    Attributes:
        labels: The labels of rows and columns; empty if there are more than `MOST` labels, or if nothing was measured.
        letters: A letter for each label, for the head of its column.
        counts: (labels, labels) number of test texts for each true label and each predicted label.
        most: The most frequent confusions, at most `MOST`, the most frequent first.
    """

    labels: tuple[str, ...]
    letters: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    most: tuple[Confused, ...]


def confusion(matrix: Mapping[str, Mapping[str, int]], order: Sequence[str] = ()) -> Confusion:
    """Return a matrix of `metrics.json` as the page shows it.

    Args:
        matrix: Number of test texts for each true label and each predicted label, without zeros.
        order: Labels in the order of the page; labels that are missing here follow.
    """
    measured = {*matrix, *(predicted for row in matrix.values() for predicted in row)}
    labels = tuple(label for label in dict.fromkeys([*order, *sorted(measured)]) if label in measured)
    errors = [
        Confused(label=label, predicted=predicted, texts=texts, tested=sum(row.values()))
        for label, row in matrix.items()
        for predicted, texts in row.items()
        if predicted != label
    ]
    shown = labels if len(labels) <= MOST else ()
    return Confusion(
        labels=shown,
        letters=tuple(string.ascii_uppercase[: len(shown)]),
        counts=tuple(tuple(matrix.get(label, {}).get(predicted, 0) for predicted in shown) for label in shown),
        most=tuple(sorted(errors, key=lambda error: -error.texts)[:MOST]),
    )
