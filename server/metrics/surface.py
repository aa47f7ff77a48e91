"""Surface similarity of two sets of texts: lengths and sentiment."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError

DEFINITION = (
    "Length: Wasserstein-1 distance between the distributions of words a text, in words. Sentiment: VADER's compound "
    "score, positive from 0.05, negative to -0.05, else neutral; its agreement is, label by label, the share of both "
    "sets' texts that have one sentiment in common (1 - total variation), weighted by the real texts of each label."
)
"""Text that defines the figures in reports."""

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


def _check_not_empty(*sets: Sequence[str]) -> None:
    if not all(sets):
        raise DataError("texts to compare", expected="at least one in each set", got="none")
