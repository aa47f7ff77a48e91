"""Deep CORAL's loss against numpy's covariances, and what it does."""

import numpy as np
import pytest
import torch

from common.errors import ConfigError, DataError
from server.metrics.adaptation import coral, train_and_predict


def test_the_loss_is_the_squared_distance_of_covariances():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(50, 4)), 3 + 2 * rng.normal(size=(30, 4))
    difference = np.cov(source, rowvar=False) - np.cov(target, rowvar=False)
    expected = (difference**2).sum() / (4 * 4**2)
    got = coral(torch.from_numpy(source), torch.from_numpy(target))
    assert float(got) == pytest.approx(expected, rel=1e-12)
    assert float(coral(torch.from_numpy(source), torch.from_numpy(source[::-1].copy() + 5))) < 1e-24


def test_its_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(1)
    source, target = (torch.from_numpy(rng.normal(size=(6, 3))).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(coral, (source, target))


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


def test_a_target_without_labels_changes_what_is_learned_and_no_weight_leaves_it():
    source, labels, target, wanted = domains()
    test, half = target[200:], target[:200]
    plain = train_and_predict(source, labels, test, epochs=20)
    assert np.array_equal(plain, train_and_predict(source, labels, test, epochs=20))
    adapted = train_and_predict(source, labels, test, target=half, weight=10.0, epochs=20)
    before, after = ((predicted == wanted[200:]).mean() for predicted in (plain, adapted))
    assert after > before + 0.1
    unpulled = train_and_predict(source, labels, test, target=half, weight=0.0, epochs=20)
    assert abs((unpulled == wanted[200:]).mean() - before) < 0.1


def test_texts_of_no_weight_teach_nothing():
    source, labels, _, _ = domains()
    weights = (np.arange(400) < 200).astype(float)
    spoilt = np.where(weights > 0, labels, 1 - labels)
    assert (train_and_predict(source, spoilt, source, weights=weights) == labels).mean() > 0.9


def test_too_few_texts_are_refused():
    source, labels, target, _ = domains()
    with pytest.raises(DataError, match="source texts"):
        train_and_predict(source[:1], labels[:1], target)
    with pytest.raises(DataError, match="target texts"):
        train_and_predict(source, labels, target, target=target[:1])
    with pytest.raises(ConfigError, match="epochs"):
        train_and_predict(source, labels, target, epochs=0)
    with pytest.raises(ConfigError, match="weight"):
        train_and_predict(source, labels, target, weight=-1.0)
