"""A task without labels, treated as one population: what a census shows about each text.

With several labels, the means of a census distinguish the labels. With one population, they distinguish the records
from the texts that the models write without any answer. Let m be the estimated mean of the records, m0 the mean of the
first-round texts, relative to which the census measured, and s^2 the variance of texts along m - m0. For normal
distributions with these means and equal scatter, and equal numbers of records and texts, the probability that a text v
belongs to the records is

    1 / (1 + exp(-(v - (m + m0) / 2) . (m - m0) / s^2)),

which is Fisher's discriminant. This probability replaces that of a label: texts with the highest probability are the
next exemplars, and models with a higher mean probability write more texts. If shrinkage leaves no offset, the
probability is 1/2 for all texts.

If texts have several labels, each label is such a population: its records are compared with the first-round texts that
were requested with it. Labels are not compared with each other, since they do not exclude one another.

The probability is a function of public texts and of noised numbers, so it costs no privacy.
"""

import numpy as np
from scipy.special import expit

from server.operators.census import Floats, Labels, Vectors

_LEAST = 1e-9
"""Lower bound on the length of an offset, and on a variance; below it, no direction can be measured."""


def under_label(vectors: Vectors, labels: Labels, records: Floats, first: Vectors) -> Floats:
    """Return the (n, C) probability that each text under a label belongs to that label's records; 0 for other labels.

    Args:
        vectors: (n, dim) texts.
        labels: (n,) in [0, C).
        records: (C, dim) estimated means of the records.
        first: (C, dim) means of the first-round texts.
    """
    made = np.zeros((len(vectors), len(records)))
    for label in np.unique(labels):
        rows = labels == label
        made[rows, label] = likeness(vectors[rows], records[label], first[label])[:, 0]
    return made


def likeness(vectors: Vectors, records: Floats, first: Vectors) -> Floats:
    """Return the probability that each text belongs to the records, (n, 1).

    Args:
        vectors: (n, dim) texts.
        records: (dim,) estimated mean of the records.
        first: (dim,) mean of the first-round texts.
    """
    offset = records - first
    length = float(np.linalg.norm(offset))
    if length < _LEAST:
        return np.full((len(vectors), 1), 0.5)
    along = (vectors - (records + first) / 2) @ offset / length
    return np.asarray(expit(along * length / max(float(along.var()), _LEAST)))[:, None]
