"""How much the choice of the training texts matters, for sets that are equally good and for one that is better."""

from collections import Counter

import numpy as np
import pytest

from common.errors import DataError
from server.evaluation import training_choice
from server.evaluation.figures import difference

LABELS, WIDTH, ROWS = 4, 6, 300
CENTRES = np.random.default_rng(0).normal(size=(LABELS, WIDTH))


def drawn(rng, count):
    labels = np.arange(count) % LABELS  # in turn, as methods order their texts
    return CENTRES[labels] + 1.5 * rng.normal(size=(count, WIDTH)), labels


def right(train, labels, test, truth):
    """Whether the nearest mean of a label is right, a classifier that trains in no time."""
    means = np.array([train[labels == label].mean(axis=0) for label in range(LABELS)])
    return ((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == truth


def clear(rng, count, test, *, noise=0.0):
    """Whether there is a clear difference by the test texts alone, and with the choice of training texts."""
    answers, others = [], []
    for extra in (noise, 0.0):
        train, labels = drawn(rng, count)
        labels = np.where(rng.random(count) < extra, (labels + 1) % LABELS, labels)
        answers.append(right(train, labels, *test).astype(float))

        def hits(at, train=train, labels=labels):
            return right(train[at], labels[at], *test)

        others.append(training_choice.variance(labels.astype(str).tolist(), hits, rng))
    ends = (difference(*answers, more).interval for more in ((), others))
    return [low > 0 or high < 0 for low, high in ends]


def test_equally_good_sets_differ_clearly_in_one_of_twenty_cases():
    """At 5 %, more than 13 of 120 are found in 0.3 % of cases; by the test texts alone one in six is."""
    rng = np.random.default_rng(1)
    found = np.sum([clear(rng, 40, drawn(rng, ROWS)) for _ in range(120)], axis=0)
    assert found[1] <= 13
    assert found[0] > 13


def test_a_set_with_many_wrong_labels_is_still_clearly_worse():
    rng = np.random.default_rng(2)
    assert np.mean([clear(rng, 80, drawn(rng, ROWS), noise=0.6)[1] for _ in range(20)]) > 0.7


def test_each_label_is_in_each_part_and_a_part_lacks_one_text_in_ten():
    parts, labels = [], list("abcde" * 8)
    training_choice.variance(labels, lambda at: parts.append(at) or np.zeros(3), np.random.default_rng(0))
    assert [len(part) for part in parts] == [36] * 10
    assert all(min(Counter(labels[at] for at in part).values()) >= 6 for part in parts)
    assert Counter(at for part in parts for at in part) == dict.fromkeys(range(40), 9)


def test_what_changes_single_test_texts_alone_is_counted_once():
    """The variance over test texts has it; a change of all of them is due to the training texts."""
    rng = np.random.default_rng(0)
    single = [training_choice.variance(["a"] * 20, lambda _: rng.normal(size=50), rng)[0] for _ in range(100)]
    assert np.mean(single) < 0.05  # without the subtraction 9 * 0.9 / 50 = 0.16
    level = iter(range(10))
    variance, freedom = training_choice.variance(["a"] * 20, lambda _: np.full(5, float(next(level))), rng)
    assert variance == pytest.approx(9 * np.var(range(10)))
    assert freedom == 9


def test_few_texts_do_not_tell():
    with pytest.raises(DataError, match="20 or more"):
        training_choice.variance(["a"] * 19, lambda _: np.zeros(1), np.random.default_rng(0))
