"""Labels and weights of the texts that the method `class_sums` releases.

A text's label is the most probable one, or the requested one, of all texts or of those nearest to the records. With
label probabilities, a model learns from the texts what the sums contain (distillation: Hinton et al. 2015).

The classifier that the estimated means define is the teacher; a model trained on texts with the teacher's
probabilities is the student.

Softness: probabilities close to 0 or 1 show a student the teacher's decision boundaries only where a text lies near
them, while flat probabilities differ too little. The best softness depends on the texts, so it is chosen by
cross-validation, which measures how often a student agrees with the teacher on texts that the student has not seen.

Proportions: the teacher takes all labels to be equally frequent, which a student of soft probabilities would learn. The
probabilities are therefore corrected to the estimated proportions, as for a label shift (Saerens, Latinne and
Decaestecker 2002, equation 2.4).

Weights: the texts are weighted so that the labels have the estimated proportions, as far as enough texts still count.

Nearness: a model that follows prompts seldom misses the label, but some of its texts are unlike any record. To leave
these out takes only a direction for each label, where new labels by noisy sums would do harm.

All of this is a function of texts and released numbers, so it costs no privacy.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from server.domain import Candidate
from server.metrics.accuracy import SoftLabels, logistic_regression, sizes
from server.metrics.linear import probabilities_by_label
from server.operators.class_sums import Floats, Labels, Vectors, posteriors
from server.settings.methods import ClassSumsSettings

KEPT = 0.7
"""Proportion of each label's texts, those nearest to its records, to release; chosen on banking10 and mts_notes8."""
FLOOR = 0.5
"""Smallest effective sample size of the weighted texts, as a fraction of their number."""
SOFTNESSES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)
_FOLDS, _HALVINGS = 3, 30
_MOST_CORRECTION = 4.0
"""Largest correction factor for a label's probabilities, so that a label without texts does not take over the texts of
other labels."""
_ERRORS = 2.0
_MOST_TEXTS = 600
"""Maximum number of texts from which the softness is chosen; if there are more texts, evenly spaced ones are used to
save time."""


def label_texts(
    settings: ClassSumsSettings,
    candidates: Sequence[Candidate],
    posterior: Floats,
    names: tuple[str, ...],
    shares: Floats,
) -> tuple[Candidate, ...]:
    """Return the texts with the labels, probabilities and weights that the settings choose.

    Args:
        settings: Settings of the method.
        candidates: The n texts, with their requested labels.
        posterior: (n, C) label probabilities.
        names: Names of the C labels.
        shares: (C,) estimated proportions of the labels.
    """
    labels = np.array([names.index(candidate.label) for candidate in candidates])

    def weights(of_texts: NDArray[np.int64]) -> Floats:
        return text_weights(of_texts, shares) if settings.share_weights else np.ones(len(of_texts))

    if settings.labels == "probabilities":
        posterior = with_shares(posterior, shares, weights(most_probable_labels(posterior)))
    if settings.labels not in {"requested", "nearest"}:
        labels = most_probable_labels(posterior)
    texts = [
        replace(candidate, label=names[label], weight=weight)
        for candidate, label, weight in zip(candidates, labels.tolist(), weights(labels).tolist(), strict=True)
    ]
    if settings.labels == "probabilities":
        rows = zip(texts, probabilities_by_label(names, posterior), strict=True)
        texts = [replace(text, probabilities=row) for text, row in rows]
    return tuple(texts)


def student_softness(vectors: Vectors, means: Floats) -> float:
    """Return the least softness whose student-teacher agreement is within two standard errors of the maximum.

    Near its maximum, the agreement varies little, and a student that reads words learns more from sharper
    probabilities.

    Args:
        vectors: (n, dim) texts.
        means: (C, dim) estimated means of the records.
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


def most_probable_labels(posterior: Floats) -> NDArray[np.int64]:
    """Return each text's most probable label, (n,); a label without texts gets the text most probable for it.

    That text is never taken from a label that has only one text.
    """
    labels = posterior.argmax(axis=1)
    for label in np.flatnonzero(np.bincount(labels, minlength=posterior.shape[1]) == 0):
        sizes = np.bincount(labels, minlength=posterior.shape[1])
        free = np.where(sizes[labels] > 1, posterior[:, label], -1.0)
        if free.max() >= 0:
            labels[free.argmax()] = label
    return np.asarray(labels)


def texts_near_records(vectors: Vectors, labels: Labels, means: Floats, basis: Vectors) -> list[int]:
    """Return the indices of the texts of each label that are nearest to its records, a proportion `KEPT` of them.

    Nearness is the cosine between a text and the mean of its label's records, in the subspace and about the mean of all
    labels' means.

    Args:
        vectors: (n, dim) texts.
        labels: (n,) in [0, C), the requested labels.
        means: (C, dim) estimated means of the records.
        basis: (k, dim) orthonormal directions in which the records were measured.
    """
    texts, records = ((rows - means.mean(axis=0)) @ basis.T for rows in (vectors, means))
    near = (texts * records[labels]).sum(axis=1) / np.maximum(np.linalg.norm(texts, axis=1), np.finfo(float).tiny)
    by_label = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    kept = [rows[np.argsort(-near[rows], kind="stable")[: math.ceil(KEPT * len(rows))]] for rows in by_label]
    return sorted(np.concatenate(kept).tolist())


def text_weights(labels: Labels, shares: Floats, *, floor: float = FLOOR) -> Floats:
    """Return (n,) text weights with mean 1 that give the labels these proportions, as nearly as `floor` allows.

    The weight of a label is its proportion in `shares` divided by its proportion of the texts. If the effective sample
    is below `floor`, the weights are raised to the largest power below 1 at which the effective sample reaches `floor`;
    at power 0 all weights are equal.
    """
    exact = shares[labels] / np.bincount(labels, minlength=len(shares))[labels]
    low, high = 0.0, 1.0
    if effective_sample(exact) >= floor:
        low = 1.0
    else:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if effective_sample(exact**middle) >= floor else (low, middle)
    weights = exact**low
    return np.asarray(weights / weights.mean())


def effective_sample(weights: Floats) -> float:
    """Return the effective sample size, (sum)^2 / sum of squares, as a fraction of the number of weights."""
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))
