"""Likeness to the records where there are no labels: Fisher's discriminant between records and first texts."""

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from server.operators import class_sums

FIRST, RECORDS = np.zeros(4), np.array([0.2, 0, 0, 0])


def texts(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(0, 0.3, (count // 2, 4))
    return np.concatenate([half, rng.normal(RECORDS, 0.3, (count // 2, 4))])


def likeness(vectors, records=RECORDS, first=FIRST):
    """The probabilities of texts under one label, (n,)."""
    return class_sums.likeness(vectors, np.zeros(len(vectors), int), records[None], first[None])[:, 0]


def test_it_is_the_posterior_of_discriminant_analysis_where_its_assumptions_hold():
    vectors = texts()
    labels = np.repeat([0, 1], len(vectors) // 2)
    # Equal scatter in all directions, so that only the offset counts.
    fitted = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=None, priors=[0.5, 0.5])
    wanted = fitted.fit(vectors, labels).predict_proba(vectors)[:, 1]
    means = [vectors[labels == label].mean(axis=0) for label in (1, 0)]
    # The variance along the offset is of all texts, so a little softer than that within each half.
    assert np.abs(likeness(vectors, *means) - wanted).max() < 0.06


def test_without_an_offset_or_without_variance_along_it_nothing_is_divided_by_zero():
    assert np.array_equal(likeness(texts(10), FIRST), np.full(10, 0.5))
    assert likeness(np.zeros((3, 4))).max() < 0.5


def test_a_text_is_compared_with_the_records_of_its_own_label_alone():
    vectors, labels = texts(10), np.arange(10) % 2
    both = class_sums.likeness(vectors, labels, np.stack([RECORDS, -RECORDS]), np.stack([FIRST, FIRST]))
    assert np.array_equal(both[labels == 1, 1], likeness(vectors[labels == 1], -RECORDS))
    assert not both[labels == 0, 1].any()
