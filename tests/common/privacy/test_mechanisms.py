import itertools
import math
from collections import Counter

import numpy as np
import pytest

from common.errors import ConfigError, InternalError
from common.privacy import mechanisms
from common.privacy.mechanisms import UNIT, length_range, noisy_max, round_to_grid
from tests.support.selection import exponential, permute_and_flip

KEY = bytes(range(32))


class _UndecidedError(Exception):
    """A choice that the script has not made, and the probabilities of its outcomes."""

    def __init__(self, probabilities):
        super().__init__()
        self.probabilities = probabilities


def every_path(monkeypatch, run, depth):
    """Output -> probability, over all paths of `run` with up to so many choices, each taken once."""
    script = []

    def choose(probabilities):
        if place[0] == len(script):
            raise _UndecidedError(probabilities)
        place[0] += 1
        return script[place[0] - 1]

    class Stream:
        def __init__(self, key):
            pass

        def below(self, bound):
            return choose([1 / bound] * bound)

    monkeypatch.setattr(mechanisms, "Keystream", Stream)
    monkeypatch.setattr(
        mechanisms, "bernoulli_exp", lambda a, b, stream: bool(choose([1 - math.exp(-a / b), math.exp(-a / b)]))
    )
    result, open_paths = Counter(), [([], 1.0)]
    while open_paths:
        script, probability = open_paths.pop()
        place = [0]
        try:
            result[run()] += probability
        except _UndecidedError as branch:
            if len(script) < depth:
                open_paths += [
                    ([*script, i], probability * p) for i, p in enumerate(branch.probabilities) if probability * p > 0
                ]
    return result


@pytest.mark.parametrize("utilities", [[0, 3, 7], [5, 5, 0], [4], [2, 0, 1, 9]])
def test_permute_and_flip_over_every_path(monkeypatch, utilities):
    probabilities = every_path(monkeypatch, lambda: noisy_max(utilities, 4.0, KEY, replacement=False), 99)
    expected = permute_and_flip(utilities, 4.0)
    assert [probabilities[i] for i in range(len(utilities))] == pytest.approx(expected, abs=1e-12)


def test_exponential_mechanism_over_every_path(monkeypatch):
    """Three rounds of drawing and flipping: given that one of them ended it, the distribution is exact."""
    probabilities = every_path(monkeypatch, lambda: noisy_max([0, 3, 7], 4.0, KEY, replacement=True), 6)
    shares = [probabilities[i] / sum(probabilities.values()) for i in range(3)]
    assert shares == pytest.approx(exponential([0, 3, 7], 4.0), abs=1e-12)
    assert shares != pytest.approx(permute_and_flip([0, 3, 7], 4.0), abs=1e-3)


@pytest.mark.parametrize("distribution", [permute_and_flip, exponential])
def test_claimed_epsilon_over_a_grid_of_records(distribution):
    """Replacing costs 2 * range / scale, leaving out for a uniform choice half of it; and hardly less will do."""
    epsilon, scale = 1.5, 2 / 1.5
    every = [distribution(u, scale) for u in itertools.product([0, 0.3, 1], repeat=3)]
    # Many candidates, of which one stands out, come nearest to the bound.
    one, other = [1.0, *[0.0] * 5], [0.0, *[1.0] * 5]
    replaced = max(a / b for p, q in itertools.permutations(every, 2) for a, b in zip(p, q, strict=True))
    uniform = max(max(p) * 3 for p in every), max(1 / (3 * min(p)) for p in every)
    assert replaced <= math.exp(epsilon) * (1 + 1e-12)
    assert max(uniform) <= math.exp(epsilon / 2) * (1 + 1e-12)
    assert distribution(one, scale)[0] / distribution(other, scale)[0] > math.exp(0.7 * epsilon)


@pytest.mark.parametrize("replacement", [False, True])
def test_at_a_small_scale_the_best_wins_and_the_key_decides_among_equals(replacement):
    assert noisy_max(np.array([3, 9, 8]), 0.01, KEY, replacement=replacement) == 1
    winners = {noisy_max([5, 5, 0], 0.01, bytes([i]) * 32, replacement=replacement) for i in range(20)}
    assert winners == {0, 1}
    again = [noisy_max(range(100), 1e3, KEY, replacement=replacement) for _ in range(2)]
    assert again[0] == again[1]


def test_a_scale_counts_as_the_very_number_it_is():
    """Utilities far beyond what a floating-point number tells apart."""
    big = 2**62
    assert {noisy_max([big, big - 100], 1.0, bytes([i]) * 32, replacement=True) for i in range(20)} == {0}
    assert {noisy_max([big, big - 1], 1.0, bytes([i]) * 32, replacement=True) for i in range(20)} == {0, 1}


def test_utilities_are_kept_in_their_range():
    assert round_to_grid([0, 0.5, 1, 7, -7, math.nan, math.inf, -math.inf, 0.25 + 1e-9]).tolist() == [
        *(0, UNIT // 2, UNIT, UNIT, 0, 0, UNIT, 0, UNIT // 4)
    ]
    assert round_to_grid([1 - 1e-9]).tolist() == [UNIT - 1]


@pytest.mark.parametrize("records", [[7, 30, 12, 12], [40], [0, 55]])
def test_at_a_small_scale_the_range_is_the_true_one_within_the_cap(records):
    assert length_range(records, 40, 0.001, KEY) == (min(records), min(40, max(records)))


def test_no_records_give_the_whole_range_turned_around():
    """Nothing is longer than 0 and nothing shorter than the cap: the ends cross, and are swapped."""
    assert length_range([], 40, 0.001, KEY) == (0, 40)


def test_counts_that_never_fall_give_the_public_limits():
    assert length_range([9] * 500 + [0] * 500, 9, 5.0, KEY) == (0, 9)


def test_ends_that_cross_are_swapped_and_look_at_the_right_counts(monkeypatch):
    seen = []

    def stop_at_once(counts, scale, stream):
        seen.append(counts)
        return 0

    monkeypatch.setattr(mechanisms, "_first_at_most_zero", stop_at_once)
    assert length_range([0, 1, 1, 3, 8], 4, 1.0, KEY) == (0, 4)
    longer, shorter = [4, 2, 2, 1], [4, 3, 3, 1]
    assert seen == [longer, shorter]


def test_noise_of_the_threshold_has_half_the_scale_of_that_of_a_count(monkeypatch):
    scales = []
    monkeypatch.setattr(mechanisms, "laplace", lambda scale, stream: scales.append(scale) or 0)
    assert length_range([2, 2], 3, 1.5, KEY) == (2, 2)
    assert scales == [1.5, 3.0, 3.0, 3.0, 1.5, 3.0, 3.0]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: length_range([1], 5, 0.0, KEY), ConfigError, "scale"),
        (lambda: length_range([1], 0, 1.0, KEY), ConfigError, "cap"),
        (lambda: length_range([31, -77], 5, 1.0, KEY), InternalError, "lengths"),
        (lambda: length_range([31.5], 5, 1.0, KEY), InternalError, "float64"),
        (lambda: length_range([1], 5, 1.0, KEY[1:]), InternalError, "noise key"),
        (lambda: noisy_max([1], math.inf, KEY, replacement=True), ConfigError, "scale"),
        (lambda: noisy_max([], 1.0, KEY, replacement=True), InternalError, "none"),
        (lambda: noisy_max([[31, 77]], 1.0, KEY, replacement=True), InternalError, "2 dimensions"),
        (lambda: noisy_max([0.31], 1.0, KEY, replacement=True), InternalError, "integers"),
        (lambda: noisy_max([1], 1.0, KEY[1:], replacement=True), InternalError, "noise key"),
    ],
)
def test_refused_and_nothing_private_shown(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert "77" not in str(caught.value)
    assert "31.5" not in str(caught.value)
