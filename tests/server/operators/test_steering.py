"""Exemplars, needs and weights of models by posteriors, within quotas."""

import numpy as np

from server.operators import steering


def rows(*probabilities):
    return np.array(probabilities, dtype=float)


def test_exemplars_are_the_texts_of_highest_posterior_among_those_that_are_most_probably_of_the_label():
    posterior = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7]])
    models = np.array([0, 1, 0, 1, 0, 1])
    assert steering.most_probable_texts(posterior, models, 2) == [[0, 3], [4, 5]]


def test_where_too_few_texts_are_most_probably_of_a_label_the_next_fill_up():
    posterior = rows([0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3])
    assert steering.most_probable_texts(posterior, np.arange(4), 3) == [[0, 1, 3], [2, 3, 1]]
    assert steering.most_probable_texts(posterior, np.arange(4), 9) == [[0, 1, 3, 2], [2, 3, 1, 0]]


def test_a_model_gives_at_most_60_percent_of_the_exemplars_while_others_have_texts():
    posterior = np.column_stack([np.linspace(0.99, 0.6, 12), 1 - np.linspace(0.99, 0.6, 12)])
    models = np.repeat([0, 1], 6)
    first, _ = steering.most_probable_texts(posterior, models, 5)
    assert first == [0, 1, 2, 6, 7]
    assert steering.most_probable_texts(posterior, np.zeros(12, int), 5)[0] == [0, 1, 2, 3, 4]


def test_a_label_needs_what_it_lacks_and_a_little_in_any_case():
    posterior = rows(*[[0.9, 0.1]] * 9, [0.1, 0.9])
    assert np.allclose(steering.needs(posterior, np.array([0.5, 0.5]), 10), [1.25, 9])
    assert np.allclose(steering.needs(posterior, np.array([0.9, 0.1]), 10), [5, 5])


def test_models_are_weighed_by_the_squared_mean_posterior_of_what_was_requested():
    posterior = rows([0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.9, 0.1])
    requested, models = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    assert np.allclose(steering.model_weights(posterior, requested, models, 2), [0.5, 0.5])
    shares = steering.model_weights(posterior, np.array([0, 0, 1, 1]), models, 2)
    assert np.allclose(shares, np.array([0.49, 0.04]) / 0.53)
    three = steering.model_weights(posterior, np.array([0, 0, 1, 1]), models, 3)
    assert np.allclose(three, np.array([0.49, 0.04, 0.45**2]) / (0.53 + 0.45**2))
