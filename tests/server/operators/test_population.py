"""Likeness to the records where there are no labels: Fisher's discriminant between records and first texts."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from server.operators.population import likeness

FIRST = np.zeros(4)


def texts(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(0, 0.3, (count // 2, 4))
    return np.concatenate([half, rng.normal([0.2, 0, 0, 0], 0.3, (count // 2, 4))])


def test_texts_further_along_the_offset_are_more_like_records():
    vectors, records = texts(), np.array([0.2, 0, 0, 0])
    found = likeness(vectors, records, FIRST)
    assert found.shape == (len(vectors), 1)
    assert np.array_equal(np.argsort(found[:, 0]), np.argsort(vectors[:, 0]))
    middle = likeness(np.vstack([vectors, [[0.1, 9, -9, 9]]]), records, FIRST)[-1]
    assert middle == pytest.approx(0.5)  # half-way, wherever it is across


def test_it_is_the_posterior_of_discriminant_analysis_where_its_assumptions_hold():
    vectors = texts()
    labels = np.repeat([0, 1], len(vectors) // 2)
    # Equal scatter in all directions, so that only the offset counts.
    fitted = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=None, priors=[0.5, 0.5])
    wanted = fitted.fit(vectors, labels).predict_proba(vectors)[:, 1]
    means = [vectors[labels == label].mean(axis=0) for label in (1, 0)]
    # The variance along the offset is of all texts, so a little softer than that within each half.
    assert np.abs(likeness(vectors, *means)[:, 0] - wanted).max() < 0.06


def test_without_an_offset_nothing_is_known():
    assert np.array_equal(likeness(texts(10), FIRST, FIRST), np.full((10, 1), 0.5))


def test_texts_that_do_not_differ_along_the_offset_are_no_division_by_zero():
    found = likeness(np.zeros((3, 4)), np.array([0.2, 0, 0, 0]), FIRST)
    assert np.isfinite(found).all()
    assert found.max() < 0.5
