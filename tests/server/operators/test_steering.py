"""Exemplars, needs and weights of models by posteriors, within quotas."""

from dataclasses import replace

import numpy as np
import pytest

from server.operators import steering
from server.operators.class_sums import NoisySums, Subspace, estimates
from server.operators.steering import TRUSTED, TextRows, reliabilities, with_evidence

LABELS, DIMENSIONS, RECORDS = 4, 16, 100
MEANS = np.eye(DIMENSIONS)[:LABELS] * 0.6


def test_exemplars_are_the_texts_of_highest_posterior_among_those_that_are_most_probably_of_the_label():
    posterior = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7]])
    models = np.array([0, 1, 0, 1, 0, 1])
    assert steering.most_probable_texts(posterior, models, 2) == [[0, 3], [4, 5]]


def test_where_too_few_texts_are_most_probably_of_a_label_the_next_fill_up():
    posterior = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3]])
    assert steering.most_probable_texts(posterior, np.arange(4), 3) == [[0, 1, 3], [2, 3, 1]]
    assert steering.most_probable_texts(posterior, np.arange(4), 9) == [[0, 1, 3, 2], [2, 3, 1, 0]]


def test_a_model_gives_at_most_60_percent_of_the_exemplars_while_others_have_texts():
    posterior = np.column_stack([np.linspace(0.99, 0.6, 12), 1 - np.linspace(0.99, 0.6, 12)])
    models = np.repeat([0, 1], 6)
    first, _ = steering.most_probable_texts(posterior, models, 5)
    assert first == [0, 1, 2, 6, 7]
    assert steering.most_probable_texts(posterior, np.zeros(12, int), 5)[0] == [0, 1, 2, 3, 4]


def test_a_label_needs_what_it_lacks_and_a_little_in_any_case():
    posterior = np.array([[0.9, 0.1]] * 9 + [[0.1, 0.9]])
    assert np.allclose(steering.needs(posterior, np.array([0.5, 0.5]), 10), [1.25, 9])
    assert np.allclose(steering.needs(posterior, np.array([0.9, 0.1]), 10), [5, 5])


def test_models_are_weighed_by_the_squared_mean_posterior_of_what_was_requested():
    posterior = np.array([[0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.9, 0.1]])
    requested, models = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    assert np.allclose(steering.model_weights(posterior, requested, models, 2), [0.5, 0.5])
    shares = steering.model_weights(posterior, np.array([0, 0, 1, 1]), models, 2)
    assert np.allclose(shares, np.array([0.49, 0.04]) / 0.53)
    three = steering.model_weights(posterior, np.array([0, 0, 1, 1]), models, 3)
    assert np.allclose(three, np.array([0.49, 0.04, 0.45**2]) / (0.53 + 0.45**2))


def written(right, *, count=600, seed=0):
    """Texts of one model for each share of `right`, of which this share has the requested label."""
    generator = np.random.default_rng(seed)
    models = np.arange(count) % len(right)
    requested = generator.integers(LABELS, size=count)
    others = (requested + generator.integers(1, LABELS, size=count)) % LABELS
    labels = np.where(generator.random(count) < np.array(right)[models], requested, others)
    vectors = MEANS[labels] + generator.normal(scale=0.1, size=(count, DIMENSIONS))
    return TextRows(vectors=vectors, requested=requested, models=models)


def noisy(noise):
    """Sums that measured the labels' true means with this noise, from centres that say nothing about labels."""
    space = Subspace(
        basis=np.eye(DIMENSIONS, dtype=np.float32)[:8], centres=np.zeros((LABELS, DIMENSIONS), np.float32), radius=1.0
    )
    generator = np.random.default_rng(1)
    sums = MEANS[:, :8] * RECORDS + generator.normal(0, noise, (LABELS, 8)) if noise else MEANS[:, :8] * RECORDS
    return NoisySums(
        labels=tuple("abcd"),
        subspace=space,
        softness=0.05,
        sums=sums,
        counts=np.full(LABELS, float(RECORDS)),
        noise=noise,
        count_noise=4 * noise,
    )


@pytest.mark.parametrize("noise", [0.0, 2.0, 15.0])
def test_the_share_of_right_texts_is_found_whatever_the_noise(noise):
    taken = noisy(noise)
    measured = reliabilities(taken, estimates(taken), written([0.9, 0.6, 0.3]), 4)
    # One standard deviation is at most sqrt(.25 / 200) = .035: four of them.
    assert measured[:3] == pytest.approx([0.9, 0.6, 0.3], abs=0.14 if noise < 10 else 0.2)
    assert measured[3] == pytest.approx(measured[:3].mean(), abs=0.02)


def test_it_is_at_least_that_of_a_guess_and_at_most_95_percent():
    taken = noisy(1.0)
    always, never = reliabilities(taken, estimates(taken), written([1.0, 0.0]), 2)
    assert (always, never) == (0.95, 1 / LABELS)


def test_evidence_counts_for_trusted_models_alone():
    flat = np.full((2, LABELS), 1 / LABELS)
    texts = TextRows(vectors=np.zeros((2, 3)), requested=np.array([2, 2]), models=np.array([0, 1]))
    product = with_evidence(flat, texts, np.array([0.85, TRUSTED - 0.01]), sharpness=1.0)
    assert product[0] == pytest.approx([0.05, 0.05, 0.85, 0.05])
    assert product[1] == pytest.approx([1 / LABELS] * LABELS)


def test_evidence_is_softened():
    probabilities = np.array([[0.7, 0.1, 0.1, 0.1]])
    texts = TextRows(vectors=np.zeros((1, 3)), requested=np.array([1]), models=np.array([0]))
    sharp, soft = (with_evidence(probabilities, texts, np.array([0.9]), sharpness=power)[0, 1] for power in (1.0, 0.2))
    assert sharp > soft > 0.1


def test_texts_of_one_label_are_all_right():
    one = replace(noisy(1.0), labels=("a",), sums=np.zeros((1, 8)), counts=np.array([5.0]))
    one = replace(one, subspace=replace(one.subspace, centres=one.subspace.centres[:1]))
    texts = TextRows(vectors=np.zeros((3, DIMENSIONS)), requested=np.zeros(3, int), models=np.zeros(3, int))
    assert reliabilities(one, estimates(one), texts, 1).tolist() == [0.95]
    assert with_evidence(np.ones((3, 1)), texts, np.array([0.95]), sharpness=1.0).tolist() == [[1]] * 3
