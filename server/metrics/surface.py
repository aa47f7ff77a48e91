"""What two sets of texts are like on their surface: how long they are, and how they sound."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from common.errors import DataError

DEFINITION = (
    "Length: Wasserstein-1 distance between the distributions of words a text, in words. Sentiment: VADER's compound "
    "score, positive from 0.05, negative to -0.05, else neutral; its agreement is, label by label, the share of both "
    "sets' texts that have one sentiment in common (1 - total variation), weighted by the real texts of each label."
)
"""What the figures mean, for reports."""

SENTIMENTS = ("negative", "neutral", "positive")


def length_distance(texts: Sequence[str], others: Sequence[str]) -> float:
    """How many words a text must gain or lose, in the mean, for both sets to be equally long; words end at spaces.

    Raises:
        DataError: A set is empty.
    """
    _some(texts, others)
    lengths = [[len(text.split()) for text in each] for each in (texts, others)]
    return float(wasserstein_distance(*lengths))


def sentiments(texts: Sequence[str]) -> NDArray[np.intp]:
    """(texts,) position among `SENTIMENTS`, by VADER's rules for English (Hutto and Gilbert 2014)."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # noqa: PLC0415 — reads its word list

    analyser = SentimentIntensityAnalyzer()
    scores = np.array([analyser.polarity_scores(text)["compound"] for text in texts])
    return 1 + (scores >= 0.05).astype(np.intp) - (scores <= -0.05)


def pairwise_agreement(texts: Sequence[str], rewritten: Sequence[str]) -> float:
    """Share of texts whose rewriting has their sentiment, for methods that write one text for each (RPSG, 4.3.1).

    Raises:
        DataError: There is none, or they do not go together.
    """
    _some(texts, rewritten)
    if len(texts) != len(rewritten):
        raise DataError("rewritten texts", expected="one for each text", got="another number of them")
    return float((sentiments(texts) == sentiments(rewritten)).mean())


def agreement(texts: Sequence[str], labels: Sequence[str], real: Sequence[str], real_labels: Sequence[str]) -> float:
    """How far the sentiments of both sets agree within each label, 0 to 1; 0 for a label that `texts` lack.

    Raises:
        DataError: A set is empty.
    """
    _some(texts, real)
    ours, theirs = sentiments(texts), sentiments(real)
    mine, other = np.array(labels), np.array(real_labels)
    shared = 0.0
    for label, count in Counter(real_labels).items():
        if (mine == label).any():
            found = [
                np.bincount(each, minlength=len(SENTIMENTS)) / len(each)
                for each in (ours[mine == label], theirs[other == label])
            ]
            shared += count * float(np.minimum(*found).sum())
    return shared / len(real)


def _some(*sets: Sequence[str]) -> None:
    if not all(sets):
        raise DataError("texts to compare", expected="at least one in each set", got="none")
