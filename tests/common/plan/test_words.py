import math

import pytest

from common.plan.words import differences, right_guesses, strength


def test_sums_that_can_be_subtracted_are_those_of_two_runs_and_where_parties_may_drop_out_of_two_questions():
    sentence = differences(0)
    assert "where a hospital takes part in one of two runs" in sentence
    assert "where a hospital drops out, or is left out" in differences(1)
    assert "one set of hospitals only" in sentence
    assert not sentence.endswith(".")


@pytest.mark.parametrize(
    ("epsilon", "delta", "percent"), [(0, 0, 50), (4, 1e-5, 98.21), (1, 0, 73.11), (math.inf, 0, 100)]
)
def test_a_right_guess_is_never_understated(epsilon, delta, percent):
    assert right_guesses(epsilon, delta) == percent
    assert right_guesses(epsilon, delta) >= 100 / (1 + math.exp(-epsilon))


@pytest.mark.parametrize(
    ("epsilon", "delta", "worth"),
    [
        (0.4, 0, "strong"),
        (0.41, 0, "moderate"),
        (2.19, 1e-5, "moderate"),
        (2.2, 0, "weak"),
        (0.1, 0.01, "weak"),
        (0.1, 1e-5, "strong"),
        (0.001, 1e-4, "moderate"),
        (0, 1.1e-5, "moderate"),
    ],
)
def test_a_promise_is_as_strong_as_the_guesses_and_the_leaks_that_it_allows(epsilon, delta, worth):
    assert strength(epsilon, delta) == worth
