"""Distillation of a census into texts: label probabilities, from which a model learns (Hinton et al. 2015).

The classifier that the means of a census define is the teacher; a model trained on texts with the teacher's
probabilities is the student.

Softness: probabilities close to 0 or 1 show a student the teacher's decision boundaries only where a text lies near
them, while flat probabilities differ too little. The best softness depends on the texts, so it is chosen by
cross-validation, which measures how often a student agrees with the teacher on texts that the student has not seen.

Proportions: the teacher takes all labels to be equally frequent, which a student of soft probabilities would learn. The
probabilities are therefore corrected to the estimated proportions, as for a label shift (Saerens, Latinne and
Decaestecker 2002, equation 2.4).

All of this is a function of texts and released numbers, so it costs no privacy.
"""

import math

import numpy as np

from server.metrics.accuracy import SoftLabels, logistic_regression, sizes
from server.operators.census import Floats, Vectors, posteriors

SOFTNESSES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)
_FOLDS = 3
_MOST_CORRECTION = 4.0
"""Largest correction factor for a label's probabilities, so that a label without texts does not take over the texts of
other labels."""
_ERRORS = 2.0
_MOST_TEXTS = 600
"""Maximum number of texts from which the softness is chosen; if there are more texts, evenly spaced ones are used to
save time."""


def student_softness(vectors: Vectors, means: Floats) -> float:
    """Return the least softness whose student-teacher agreement is within two standard errors of the maximum.

    Near its maximum, the agreement varies little, and a student that reads words learns more from sharper
    probabilities.

    Args:
        vectors: (n, dim) texts.
        means: (C, dim) means of the census.
    """
    vectors = vectors[:: -(-len(vectors) // _MOST_TEXTS)]
    if len(vectors) < 2 * _FOLDS:
        return SOFTNESSES[len(SOFTNESSES) // 2]
    agreements = [_agreement(vectors, posteriors(vectors, means, softness)) for softness in SOFTNESSES]
    best = max(agreements)
    enough = best - _ERRORS * math.sqrt(best * (1 - best) / len(vectors))
    return next(softness for softness, agreement in zip(SOFTNESSES, agreements, strict=True) if agreement >= enough)


def with_shares(probabilities: Floats, shares: Floats, weights: Floats) -> Floats:
    """Correct probabilities for a label shift from the labels' current proportions to the given proportions.

    Args:
        probabilities: (n, C) label probabilities.
        shares: (C,) proportions to reach, above 0.
        weights: (n,) weights of the texts; the labels' current proportions are the weighted mean of the probabilities.
    """
    there = weights @ probabilities / weights.sum()
    corrected = probabilities * np.minimum(shares / np.maximum(there, np.finfo(float).tiny), _MOST_CORRECTION)
    return np.asarray(corrected / corrected.sum(axis=1, keepdims=True))


def _agreement(vectors: Vectors, probabilities: Floats) -> float:
    """Return the proportion of texts for which a student that has not seen them predicts the teacher's label."""
    teacher = probabilities.argmax(axis=1)
    fold = np.random.default_rng(0).permutation(len(vectors)) % _FOLDS  # texts come in a regular order of labels
    names = tuple(map(str, range(probabilities.shape[1])))
    agreed = 0
    for out in range(_FOLDS):
        seen = fold != out
        labels = SoftLabels(names, tuple(map(tuple, probabilities[seen].tolist())))
        if len(sizes(labels)) == 1:
            return 0.0  # so sharp, or so alike, that there is nothing to learn
        student = logistic_regression(vectors[seen], labels, [1.0] * len(labels)).predict(vectors[~seen])
        agreed += sum(name == names[label] for name, label in zip(student, teacher[~seen], strict=True))
    return agreed / len(vectors)
