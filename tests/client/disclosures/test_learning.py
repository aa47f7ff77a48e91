"""The tests of learning: exact under what they test, and able to reject what is false."""

import itertools

import numpy as np
import pytest

from client.disclosures import learning
from client.disclosures.learning import ALPHA, fewest, fewest_pairs, no_learning, promise_p_value, unique_sequences
from common.errors import ConfigError, DataError


def test_no_learning_is_the_share_of_splits_with_as_many_disclosed_records_of_training():
    pool, disclosed = range(7), {0, 1, 2, 3}
    splits = [set(split) for split in itertools.combinations(pool, 3)]
    for count in range(4):
        share = np.mean([len(split & disclosed) >= count for split in splits])
        assert no_learning(count, len(disclosed) - count, n=3, m=4) == pytest.approx(share)


def test_no_more_false_alarms_than_stated_for_any_number_of_disclosed_records():
    generator = np.random.default_rng(0)
    flags = {str(k): np.arange(60) < k for k in (5, 20, 30, 45)}
    alarms = 0
    for _ in range(200):
        shuffled = {name: flag[generator.permutation(60)] for name, flag in flags.items()}
        alarms += any(test.rejected for test in learning.learning(shuffled, 20))
    assert alarms <= 200 * ALPHA + 3 * np.sqrt(200 * ALPHA)


def test_a_leak_is_found_by_its_feature_alone():
    leak = {"copied": np.arange(80) < 12, "other": np.arange(80) % 8 == 0}
    copied, other = learning.learning(leak, 40)
    assert (copied.training, copied.control, copied.rejected) == (12, 0, True)
    assert (other.training, other.control, other.rejected) == (5, 5, False)


def test_holm_s_procedure_is_less_strict_to_the_rest():
    assert learning._rejected({"a": 0.001, "b": 0.03, "c": 0.024}) == {"a", "b", "c"}
    assert learning._rejected({"a": 0.03, "b": 0.03}) == set()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (1.0, 1e-3)])
def test_randomised_response_keeps_its_promise(epsilon, delta):
    """Each pair shows its record of training with the largest probability that the promise allows."""
    generator, pairs = np.random.default_rng(1), 60
    given = np.e ** (2 * epsilon) / (1 + np.e ** (2 * epsilon))
    alarms = 0
    for _ in range(200):
        right = int((generator.random(pairs) < given).sum() + (generator.random(pairs) < delta).sum())
        alarms += (
            promise_p_value(min(right, pairs), max(pairs - right, 0), pairs=pairs, epsilon=epsilon, delta=delta)
            <= ALPHA
        )
    assert alarms <= 200 * ALPHA + 3 * np.sqrt(200 * ALPHA)


def test_copies_of_all_records_break_a_small_epsilon_and_say_nothing_of_a_large_one():
    flags = {"copied": np.arange(400) < 200}
    (small,), (large,) = (learning.promise(flags, 200, epsilon=epsilon, delta=1e-6) for epsilon in (1, 4))
    assert (small.right, small.wrong, small.rejected) == (200, 0, True)
    assert not large.rejected


def test_the_fewest_are_the_first_that_can_be_rejected():
    for n, m in ((50, 50), (50, 200), (200, 50)):
        first = fewest(n, m, features=4)
        assert no_learning(first, 0, n=n, m=m) <= ALPHA / 4 < no_learning(first - 1, 0, n=n, m=m)
    first = fewest_pairs(100, features=4, epsilon=1, delta=1e-5)
    values = [promise_p_value(right, 0, pairs=100, epsilon=1, delta=1e-5) for right in (first, first - 1)]
    assert values[0] <= ALPHA / 4 < values[1]
    assert fewest_pairs(100, features=4, epsilon=4, delta=0) is None
    assert fewest_pairs(100, features=4, epsilon=1, delta=0.1) is None


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (16, 0), (float("nan"), 0), (1, -0.1), (1, 1.5)])
def test_an_epsilon_or_a_delta_that_is_none_is_refused(epsilon, delta):
    with pytest.raises(ConfigError):
        promise_p_value(1, 0, pairs=1, epsilon=epsilon, delta=delta)


def test_texts_that_occur_twice_are_left_out_on_both_sides():
    training = [f"record {number}" for number in range(25)] + ["Twice, here.", "twice here", "both"]
    control = ["BOTH!"] + [f"control {number}" for number in range(22)]
    assert unique_sequences(training, control) == (list(range(25)), list(range(1, 23)))
    with pytest.raises(DataError, match="control records"):
        unique_sequences(training, control[:5])
