"""Deep CORAL's loss against numpy's covariances, and what it does."""

import numpy as np
import pytest
import torch

from common.errors import DataError
from server.metrics.adaptation import coral, train_and_predict


def test_coral_is_the_squared_distance_of_covariances_with_its_gradient():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(50, 4)), 3 + 2 * rng.normal(size=(30, 4))
    difference = np.cov(source, rowvar=False) - np.cov(target, rowvar=False)
    found = coral(torch.from_numpy(source), torch.from_numpy(target))
    assert float(found) == pytest.approx((difference**2).sum() / (4 * 4**2), rel=1e-12)
    assert float(coral(torch.from_numpy(source), torch.from_numpy(source[::-1].copy() + 5))) < 1e-24
    parts = (torch.from_numpy(vectors[:6, :3].copy()).requires_grad_() for vectors in (source, target))
    assert torch.autograd.gradcheck(coral, tuple(parts))


def domains(seed=2, count=400, dim=8):
    """Two classes; in the target domain the coordinate that tells them apart is stretched and another is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, (2, count))
    vectors = rng.normal(size=(2, count, dim)).astype(np.float32)
    vectors[:, :, 0] += 4 * labels - 2
    # In the source another coordinate seems to tell them apart better than any.
    vectors[0, :, 1] = 6 * labels[0] - 3 + 0.1 * rng.normal(size=count)
    vectors[1, :, 1] = 12 * rng.normal(size=count)
    return vectors[0], labels[0], vectors[1], labels[1]


def test_target_without_labels_changes_what_is_learned_and_no_weight_leaves_it():
    source, labels, target, wanted = domains()
    test, half = target[200:], target[:200]
    plain = train_and_predict(source, labels, test, epochs=20)
    assert np.array_equal(plain, train_and_predict(source, labels, test, epochs=20))
    adapted, unpulled = (
        train_and_predict(source, labels, test, target=half, weight=weight, epochs=20) for weight in (10.0, 0.0)
    )
    before, after, without = ((predicted == wanted[200:]).mean() for predicted in (plain, adapted, unpulled))
    assert after > before + 0.1
    assert abs(without - before) < 0.1


def test_texts_of_no_weight_teach_nothing():
    source, labels, _, _ = domains()
    weights = (np.arange(400) < 200).astype(float)
    spoilt = np.where(weights > 0, labels, 1 - labels)
    assert (train_and_predict(source, spoilt, source, weights=weights) == labels).mean() > 0.9


def test_too_few_texts_are_refused():
    source, labels, target, _ = domains()
    with pytest.raises(DataError):
        train_and_predict(source[:1], labels[:1], target)
    with pytest.raises(DataError):
        train_and_predict(source, labels, target, target=target[:1])
