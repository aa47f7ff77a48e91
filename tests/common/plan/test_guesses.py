"""The figures for people are bounds, the tight ones never above those of epsilon and delta alone."""

import math
import re

import pytest

from common.plan import guesses
from common.plan.guesses import Guesses, scale, worst_guesses
from common.privacy.accountant import ReleasedAnswers, epsilon, trade_off
from common.privacy.gaussian import gaussian_mu
from common.privacy.sensitivity import Sensitivity

DELTA = 1e-5


def of_noise(mechanism, scale, delta=DELTA, **changes):
    releases = [ReleasedAnswers(mechanism=mechanism, sensitivity=Sensitivity.of((1000,), 1), scale=scale, **changes)]
    return Guesses.of(trade_off(releases, delta), epsilon(releases, delta), delta)


def of_gaussian(eps, **changes):
    return of_noise("gaussian", 1000 / gaussian_mu(eps, DELTA), **changes)


@pytest.mark.parametrize(("eps", "delta", "percent"), [(0, 0, 50), (4, 1e-5, 98.21), (1, 0, 73.11), (math.inf, 0, 100)])
def test_the_worst_guess_of_an_epsilon_is_never_understated(eps, delta, percent):
    assert worst_guesses(eps, delta) == percent >= 100 / (1 + math.exp(-eps))


@pytest.mark.parametrize(
    ("eps", "guess", "belief", "strength"),
    [
        (1.0, (55.34, 73.11), (1.08, 2.52), "strong"),
        (2.0, (59.91, 88.08), (1.28, 5.8), "strong"),
        (4.0, (67.82, 98.21), (2.26, 25.39), "moderate"),
        (8.0, (79.76, 99.97), (9.28, 91.12), "weak"),
    ],
)
def test_what_gaussian_noise_allows(eps, guess, belief, strength):
    found = of_gaussian(eps)
    assert (found.right, found.worst) == pytest.approx(guess, abs=0.011)
    assert (found.beliefs[0].average, found.beliefs[0].highest) == pytest.approx(belief, abs=0.05)
    assert found.strength == strength
    assert found.beliefs[1].average < found.beliefs[0].average
    assert "1 in 100" in found.beliefs[0].words("a record")
    assert "1 of 1,000" in found.beliefs[1].words("a record")


def test_a_secret_random_choice_is_no_strong_protection_of_those_who_are_chosen():
    chosen = of_noise("gaussian", 300.0, rate=0.01, draw="once")
    assert chosen.right < 51
    assert chosen.beliefs[0].highest > 50
    assert chosen.strength == "weak"


@pytest.mark.parametrize(
    ("eps", "delta", "strength"),
    [
        (0.4, 0, "strong"),
        (0.41, 0, "moderate"),
        (1.09, 1e-5, "moderate"),
        (1.1, 0, "weak"),
        (0.1, 0.01, "weak"),
        (0.1, 1e-5, "strong"),
        (0.001, 1e-4, "moderate"),
        (0, 1.1e-5, "moderate"),
        (math.inf, 1e-5, "none"),
    ],
)
def test_without_more_known_of_the_noise_epsilon_and_delta_decide(eps, delta, strength):
    found = Guesses.of_pair(eps, delta)
    assert found.strength == strength
    assert found.right == found.worst == worst_guesses(eps, delta)


def test_the_scale_in_words_has_the_thresholds_of_the_word():
    words = {
        (right, belief, delta): guesses._strength(right, belief, delta)
        for right in (60, 60.01, 74.99, 75)
        for belief in (10, 10.01, 50, 50.01)
        for delta in (1e-5, 1.1e-5, 1e-3, 1.1e-3)
    }
    assert {key for key, word in words.items() if word == "strong"} == {(60, 10, 1e-5)}
    assert {key for key, word in words.items() if word != "weak"} == {
        (right, belief, delta) for right, belief, delta in words if right < 75 and belief <= 50 and delta <= 1e-3
    }
    assert re.findall(r"\d+%|1e-\d", scale()) == ["60%", "75%", "10%", "50%", "1e-5", "1e-3"]
