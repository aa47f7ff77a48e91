import numpy as np
import pytest

from common.errors import DataError
from server.methods.fusegen import cross_model_dynamics, self_boosted_weights


def world(per_label=40, models=2):
    """Two labels, apart along the first axis; every model's texts alike."""
    labels = np.tile([0, 1], per_label * models // 2)
    vectors = np.random.default_rng(0).normal(scale=0.3, size=(per_label * models, 8))
    vectors[:, 0] += np.where(labels == 0, 1.0, -1.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), labels.astype(np.int32), np.repeat(np.arange(models), per_label)


def test_dynamics_of_texts_that_all_models_teach_alike_are_sure_and_vary_little():
    learned = cross_model_dynamics(*world(), epochs=6)
    assert learned.confidence.shape == learned.variability.shape == (80,)
    assert learned.confidence.mean() > 0.8
    assert learned.variability.mean() < 0.1


def test_dynamics_of_texts_that_two_models_contradict_each_other_about_vary_most():
    vectors, labels, models = world()
    # Both write texts in a corner of their own, and label them differently.
    corner = np.zeros((20, 8), np.float32)
    corner[:, 7] = 1.0
    added = np.repeat([0, 1], 10)
    learned = cross_model_dynamics(
        np.vstack([vectors, corner]), np.append(labels, added), np.append(models, added), epochs=6
    )
    assert learned.variability[80:].min() > learned.variability[:80].max()


def test_wrong_label_has_low_confidence_and_loses_weight():
    vectors, labels, models = world()
    labels[5] = 1 - labels[5]
    assert cross_model_dynamics(vectors, labels, models, epochs=6).confidence.argmin() == 5
    weights = self_boosted_weights(vectors, labels, rounds=3, epochs=6)
    assert weights.mean() == pytest.approx(1)
    assert weights.argmin() == 5
    assert 0 < weights[5] < 0.2
    # Of two texts that are labelled right the one nearer to the other label counts more.
    right = np.delete(np.arange(80), 5)
    assert np.corrcoef(np.abs(vectors[right, 0]), weights[right])[0, 1] < -0.5


def test_dynamics_of_one_model_do_not_vary():
    learned = cross_model_dynamics(*world(models=1), epochs=3)
    assert not learned.variability.any()
    assert learned.confidence.std() > 0


def test_dynamics_of_a_model_that_wrote_one_label_alone_are_finite_and_repeat_themselves():
    vectors, labels, models = world()
    keep = (models == 0) | (labels == 1)
    one, other = (cross_model_dynamics(vectors[keep], labels[keep], models[keep], epochs=3) for _ in range(2))
    assert np.isfinite(one.confidence).all()
    assert (one.variability > 0).any()
    assert np.array_equal(one.confidence, other.confidence)
    assert np.array_equal(*(self_boosted_weights(vectors, labels, rounds=2, epochs=3) for _ in range(2)))


def test_no_adjustment_and_one_label_leave_weights_equal():
    vectors, labels, models = world()
    assert (self_boosted_weights(vectors, labels, rounds=0, epochs=3) == 1).all()
    assert (self_boosted_weights(vectors, 0 * labels, rounds=3, epochs=3) == 1).all()
    assert (cross_model_dynamics(vectors, 0 * labels, models, epochs=3).confidence == 1).all()


def test_no_text_and_arrays_that_do_not_fit_are_refused():
    vectors, labels, models = world()
    for wrong in ((vectors[:0], labels[:0], models[:0]), (vectors, labels[1:], models), (vectors, labels, models[1:])):
        with pytest.raises(DataError):
            cross_model_dynamics(*wrong, epochs=3)
