"""Labels, exemplars and weights by posteriors: within quotas, and with a floor under the effective sample."""

import numpy as np
import pytest

from server.operators import steering


def rows(*probabilities):
    return np.array(probabilities, dtype=float)


def test_exemplars_are_the_texts_of_highest_posterior_among_those_that_are_most_probably_of_the_label():
    posterior = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.8, 0.2], [0.2, 0.8], [0.3, 0.7]])
    models = np.array([0, 1, 0, 1, 0, 1])
    assert steering.exemplars(posterior, models, 2) == [[0, 3], [4, 5]]


def test_where_too_few_texts_are_most_probably_of_a_label_the_next_fill_up():
    posterior = rows([0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3])
    assert steering.exemplars(posterior, np.arange(4), 3) == [[0, 1, 3], [2, 3, 1]]
    assert steering.exemplars(posterior, np.arange(4), 9) == [[0, 1, 3, 2], [2, 3, 1, 0]]


def test_a_model_gives_at_most_60_percent_of_the_exemplars_while_others_have_texts():
    posterior = np.column_stack([np.linspace(0.99, 0.6, 12), 1 - np.linspace(0.99, 0.6, 12)])
    models = np.repeat([0, 1], 6)
    first, _ = steering.exemplars(posterior, models, 5)
    assert first == [0, 1, 2, 6, 7]
    assert steering.exemplars(posterior, np.zeros(12, int), 5)[0] == [0, 1, 2, 3, 4]


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


def test_a_label_that_is_nobodys_gets_its_most_probable_text_and_robs_nobody():
    posterior = rows([0.9, 0.05, 0.05], [0.8, 0.05, 0.15], [0.1, 0.9, 0])
    assert steering.most_probable_labels(posterior).tolist() == [0, 2, 1]
    assert steering.most_probable_labels(posterior[:2]).tolist() in ([1, 0], [0, 2], [0, 1])
    assert steering.most_probable_labels(rows([0.1, 0.9], [0.6, 0.4])).tolist() == [1, 0]


def test_the_gate_keeps_texts_of_their_own_label_and_one_at_least_of_each():
    posterior = rows([0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3])
    assert steering.kept_by_gate(posterior, np.array([0, 0, 0, 0])).tolist() == [0, 1, 2, 3]
    assert steering.kept_by_gate(posterior, np.array([0, 1, 0, 1])).tolist() == [0, 1, 2]


def test_weights_give_labels_their_shares():
    labels, shares = np.array([0] * 30 + [1] * 10), np.array([0.5, 0.5])
    weights = steering.text_weights(labels, shares, floor=0.5)
    assert weights.mean() == pytest.approx(1)
    assert weights[labels == 1].sum() == pytest.approx(20)
    assert steering.effective_sample(weights) == pytest.approx(0.75)


@pytest.mark.parametrize("floor", [0.5, 0.9])
def test_shares_out_of_reach_leave_the_effective_sample_at_its_floor(floor):
    labels, shares = np.array([0] * 95 + [1] * 5), np.array([0.1, 0.9])
    weights = steering.text_weights(labels, shares, floor=floor)
    assert steering.effective_sample(weights) == pytest.approx(floor, abs=1e-6)
    assert weights[-1] > 1 > weights[0]
    assert np.allclose(steering.text_weights(labels, shares, floor=1.0), 1, atol=1e-6)


def test_a_label_without_texts_has_no_weight():
    assert steering.text_weights(np.array([0, 0]), np.array([0.2, 0.8]), floor=0.5).tolist() == [1, 1]
