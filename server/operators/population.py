"""One population: what a census of a task without labels says about each text.

With several labels the means of a census tell them apart. With one population they tell the records apart from what the
models write without the records. Let m be the estimated mean of the records, m0 the mean of the first texts, from which
the census measured, and s^2 the variance of texts along m - m0. For normal distributions with these means and equal
scatter, and as many records as texts, the probability that a text v is a record's is

    1 / (1 + exp(-(v - (m + m0) / 2) . (m - m0) / s^2)),

Fisher's discriminant. It takes the place of the probability of a label: texts with the highest are the next exemplars,
and models with a higher mean write more texts. Where shrinkage leaves no offset it is 1/2 for all texts.

Where texts have several labels, each label is such a population: its records against the first texts that were
requested with it. The labels of a text do not exclude one another, so none is compared with another.

It is a function of public texts and of noised numbers, and costs no privacy.
"""

import numpy as np
from scipy.special import expit

from server.operators.census import Floats, Labels, Vectors

_LEAST = 1e-9
"""Length of an offset, and variance, below which there is no direction to measure along."""


def under_label(vectors: Vectors, labels: Labels, records: Floats, first: Vectors) -> Floats:
    """Return the probability that each text under a label is a record's with that label, (n, C); 0 for other labels.

    Args:
        vectors: (n, dim) texts.
        labels: (n,) in [0, C).
        records: (C, dim) estimated means of the records.
        first: (C, dim) means of the first texts.
    """
    made = np.zeros((len(vectors), len(records)))
    for label in np.unique(labels):
        rows = labels == label
        made[rows, label] = likeness(vectors[rows], records[label], first[label])[:, 0]
    return made


def likeness(vectors: Vectors, records: Floats, first: Vectors) -> Floats:
    """Return the probability that each text is a record's, (n, 1).

    Args:
        vectors: (n, dim) texts.
        records: (dim,) estimated mean of the records.
        first: (dim,) mean of the first texts.
    """
    offset = records - first
    length = float(np.linalg.norm(offset))
    if length < _LEAST:
        return np.full((len(vectors), 1), 0.5)
    along = (vectors - (records + first) / 2) @ offset / length
    return np.asarray(expit(along * length / max(float(along.var()), _LEAST)))[:, None]
