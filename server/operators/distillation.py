"""Distillation of a census into texts: probabilities of labels, from which a model learns (Hinton et al. 2015).

The means of a census are a classifier, the teacher; a model trained on texts with its probabilities is the student.

Softness: probabilities that are nearly 0 or 1 tell a student where the teacher's decision borders are only if a text
lies near them; flat ones have only weak differences. The best softness depends on the texts, so it is chosen by
cross-validation: how often a student agrees with the teacher on texts that it did not see.

Proportions: the teacher takes all labels to be equally frequent, which a student of soft probabilities would learn. The
probabilities are corrected to the estimated proportions as for a shift of labels (Saerens, Latinne and Decaestecker
2002, equation 2.4).

All of this is a function of texts and of released numbers, and costs no privacy.
"""

import math

import numpy as np

from server.metrics.accuracy import SoftLabels, logistic_regression, sizes
from server.operators.census import Floats, Vectors, posteriors

SOFTNESSES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)
_FOLDS = 3
_MOST_CORRECTION = 4.0
"""Largest factor on a label's probabilities, so that a label without texts does not get those of others."""
_ERRORS = 2.0
_MOST_TEXTS = 600
"""Number of texts, evenly spaced, by which the softness is chosen if there are more: the time grows with it."""


def student_softness(vectors: Vectors, means: Floats) -> float:
    """Return the least softness at which students agree with the teacher as often as at best, to two standard errors.

    Agreement varies little near its best, and a student that reads words learns more from sharper probabilities.

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
    """Correct probabilities for a shift of the labels' proportions from their present values to the given ones.

    Args:
        probabilities: (n, C).
        shares: (C,), above 0.
        weights: (n,) weights of the texts, with which the mean of the probabilities gives the labels' present
            proportions.
    """
    there = weights @ probabilities / weights.sum()
    corrected = probabilities * np.minimum(shares / np.maximum(there, np.finfo(float).tiny), _MOST_CORRECTION)
    return np.asarray(corrected / corrected.sum(axis=1, keepdims=True))


def _agreement(vectors: Vectors, probabilities: Floats) -> float:
    """Return the proportion of texts to which a student that has not seen them gives the teacher's likeliest label."""
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
