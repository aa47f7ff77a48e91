"""Labels that a model learns from, and weights with a floor under the effective sample."""

import numpy as np
import pytest

from server.operators import final_labels
from server.operators.final_labels import SOFTNESSES, student_softness, with_shares


def texts_of(count: int, labels: int, *, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors about as many means as there are labels, and these means."""
    generator = np.random.default_rng(0)
    means = np.eye(16)[:labels]
    vectors = means[np.arange(count) % labels] + spread * generator.normal(size=(count, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), means


def test_the_least_softness_that_agrees_as_often_as_any_to_two_standard_errors(monkeypatch):
    agreements = dict(zip(SOFTNESSES, (0.5, 0.6, 0.75, 0.8, 0.81, 0.7), strict=True))
    vectors, means = texts_of(60, 3, spread=0.2)
    monkeypatch.setattr(final_labels, "posteriors", lambda vectors, means, softness: softness)
    monkeypatch.setattr(final_labels, "_agreement", lambda vectors, softness: agreements[softness])
    assert student_softness(vectors, means) == 0.03  # 0.81 - 2 * 0.051 = 0.709


def test_agreement_is_on_texts_that_the_student_has_not_seen():
    generator = np.random.default_rng(0)
    vectors = np.eye(60, dtype=np.float32)  # nothing that is learned of one text says anything of another
    probabilities = np.eye(2)[generator.integers(0, 2, 60)]
    assert final_labels._agreement(vectors, probabilities) < 0.8


@pytest.mark.parametrize(("count", "labels"), [(1, 3), (5, 3), (40, 1)])
def test_where_nothing_can_be_learned_some_softness_is_given(count, labels):
    assert student_softness(*texts_of(count, labels, spread=0.2)) in SOFTNESSES


def test_of_many_texts_a_part_decides(monkeypatch):
    numbers = []
    monkeypatch.setattr(final_labels, "_agreement", lambda vectors, _: numbers.append(len(vectors)) or 0.5)
    student_softness(*texts_of(2000, 3, spread=0.2))
    assert set(numbers) == {500}


def test_probabilities_get_the_shares_of_the_labels():
    probabilities = np.array([[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]])
    there = probabilities.mean(axis=0)
    assert np.allclose(with_shares(probabilities, there, np.ones(3)), probabilities)
    shares, weights = np.array([0.4, 0.6]), np.array([1.0, 2.0, 1.0])
    corrected = with_shares(probabilities, shares, weights)
    assert np.allclose(corrected.sum(axis=1), 1)
    odds = shares[0] / shares[1] / (0.65 / 0.35)  # before, the labels had 0.65 and 0.35 by these weights
    assert np.allclose(corrected[:, 0] / corrected[:, 1], odds * probabilities[:, 0] / probabilities[:, 1])


@pytest.mark.parametrize("least", [0.0, 1e-10, 1e-3])
def test_a_label_that_no_text_has_is_given_none(least):
    probabilities = np.array([[0.9, 0.1, least], [0.1, 0.9, least]] * 50)
    corrected = with_shares(probabilities, np.full(3, 1 / 3), np.ones(100))
    assert corrected.argmax(axis=1).tolist() == [0, 1] * 50
    assert corrected[:, 2].max() <= 8 * least  # a factor of 4 over one of 2/3


def test_a_label_that_is_nobodys_gets_its_most_probable_text_and_robs_nobody():
    posterior = np.array([[0.9, 0.05, 0.05], [0.8, 0.05, 0.15], [0.1, 0.9, 0]])
    assert final_labels.most_probable_labels(posterior).tolist() == [0, 2, 1]
    assert final_labels.most_probable_labels(posterior[:2]).tolist() in ([1, 0], [0, 2], [0, 1])
    assert final_labels.most_probable_labels(np.array([[0.1, 0.9], [0.6, 0.4]])).tolist() == [1, 0]


def test_the_texts_nearest_to_their_label_s_mean_in_the_subspace_are_kept_and_one_at_least():
    means, basis = np.array([[1.0, 0, 5], [-1, 0, 5]]), np.array([[1.0, 0, 0], [0, 1, 0]])
    turned = [[np.cos(angle), np.sin(angle), 9 * angle] for angle in np.linspace(0, 3, 9)]
    texts, labels = np.array([*turned[::-1], [2, 0, 5]]), np.array([0] * 9 + [1])
    assert final_labels.texts_near_records(texts, labels, means, basis) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_weights_give_labels_their_shares():
    labels, shares = np.array([0] * 30 + [1] * 10), np.array([0.5, 0.5])
    weights = final_labels.text_weights(labels, shares, floor=0.5)
    assert weights.mean() == pytest.approx(1)
    assert weights[labels == 1].sum() == pytest.approx(20)
    assert final_labels.effective_sample(weights) == pytest.approx(0.75)


@pytest.mark.parametrize("floor", [0.5, 0.9])
def test_shares_out_of_reach_leave_the_effective_sample_at_its_floor(floor):
    labels, shares = np.array([0] * 95 + [1] * 5), np.array([0.1, 0.9])
    weights = final_labels.text_weights(labels, shares, floor=floor)
    assert final_labels.effective_sample(weights) == pytest.approx(floor, abs=1e-6)
    assert weights[-1] > 1 > weights[0]
    assert np.allclose(final_labels.text_weights(labels, shares, floor=1.0), 1, atol=1e-6)
