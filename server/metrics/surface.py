"""Surface similarity of two sets of texts: lengths, sentiment, and the order of sections.

An order is given as counts of steps from each section (or the beginning) to the next (or the end).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError

DEFINITION = (
    "Length: Wasserstein-1 distance between the distributions of words a text, in words. Sentiment: VADER's compound "
    "score, positive from 0.05, negative to -0.05, else neutral; its agreement is, label by label, the share of both "
    "sets' texts that have one sentiment in common (1 - total variation), weighted by the real texts of each label."
)
"""Text that defines the figures in reports."""

Floats = NDArray[np.float64]
SENTIMENTS = ("negative", "neutral", "positive")


def length_distance(texts: Sequence[str], others: Sequence[str]) -> float:
    """Return the Wasserstein-1 distance between the distributions of lengths, in words separated by white space.

    Raises:
        DataError: A set is empty.
    """
    from scipy.stats import wasserstein_distance

    _check_not_empty(texts, others)
    lengths = [[len(text.split()) for text in group] for group in (texts, others)]
    return float(wasserstein_distance(*lengths))


def sentiments(texts: Sequence[str]) -> NDArray[np.intp]:
    """Return each text's index in `SENTIMENTS`, by VADER's rules for English (Hutto and Gilbert 2014), (texts,)."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyser = SentimentIntensityAnalyzer()
    scores = np.array([analyser.polarity_scores(text)["compound"] for text in texts])
    return 1 + (scores >= 0.05).astype(np.intp) - (scores <= -0.05)


def sentiment_agreement(
    texts: Sequence[str], labels: Sequence[str], real: Sequence[str], real_labels: Sequence[str]
) -> float:
    """Return how well the two sets' sentiments agree within each label, 0 to 1.

    A label that none of `texts` has counts as 0.

    Raises:
        DataError: A set is empty.
    """
    _check_not_empty(texts, real)
    ours, theirs = sentiments(texts), sentiments(real)
    our_labels, their_labels = np.array(labels), np.array(real_labels)
    shared = 0.0
    for label, count in Counter(real_labels).items():
        if (our_labels == label).any():
            shares = [
                np.bincount(group, minlength=len(SENTIMENTS)) / len(group)
                for group in (ours[our_labels == label], theirs[their_labels == label])
            ]
            shared += count * float(np.minimum(*shares).sum())
    return shared / len(real)


def section_steps(sequences: Iterable[Sequence[str]], headings: Sequence[str]) -> Floats:
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


def steps_distance(counted: Floats, others: Floats) -> float:
    """Return the total variation distance, 0 to 1, between two distributions of steps."""
    ours, theirs = (numbers / max(float(numbers.sum()), 1e-12) for numbers in (counted, others))
    return float(np.abs(ours - theirs).sum() / 2)


def _check_not_empty(*sets: Sequence[str]) -> None:
    if not all(sets):
        raise DataError("texts to compare", expected="at least one in each set", got="none")
