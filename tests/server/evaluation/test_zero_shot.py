"""The synthetic texts against those that the same models wrote without the hospitals, on the same test texts."""

import json
from collections import Counter

import pytest

from server.documents.codec import strict
from server.documents.metrics import Metrics
from server.domain import Candidate
from server.evaluation.figures import Measured
from server.evaluation.zero_shot import compared
from tests.support.measured_texts import candidates, measured_parts


def texts(count, *, wrong=0):
    """Texts of two labels, of which the first `wrong` have the other one's label."""
    good = candidates(count)
    other = {"a": "b", "b": "a"}
    return [
        Candidate(text=text.text, label=other[text.label] if at < wrong else text.label, model="m", round=0)
        for at, text in enumerate(good)
    ]


def metrics(synthetic, zero_shot, **changes):
    groups = compared(Measured(**measured_parts(candidates=synthetic, **changes)), zero_shot)
    return Metrics(content=json.loads(json.dumps(strict(groups))))


def test_better_texts_are_a_clear_gain_and_worse_ones_a_loss():
    better, worse = metrics(texts(40), texts(40, wrong=40)), metrics(texts(40, wrong=40), texts(40))
    assert (better.gain.value, worse.gain.value) == (1.0, -1.0)
    assert better.gain.clear
    assert not better.gain.loss
    assert worse.gain.loss
    assert not worse.gain.clear
    assert (better.zero_shot.accuracy.value, better.as_many_as_zero_shot.accuracy.value) == (0.0, 1.0)


def test_the_same_texts_are_no_gain_and_the_interval_still_has_a_width():
    gain = metrics(texts(40), texts(40)).gain
    assert gain.value == 0
    assert gain.interval[0] < 0 < gain.interval[1]
    assert not gain.clear
    assert not gain.loss


@pytest.mark.parametrize(("synthetic", "zero_shot"), [(200, 40), (40, 200)])
def test_both_trainings_have_as_many_texts(synthetic, zero_shot, monkeypatch):
    trained = []

    def predictions(train, test, **_):
        trained.append(Counter(record.label for record in train))
        return [record.label for record in test], None

    monkeypatch.setattr("server.evaluation.figures.predictions", predictions)
    made = metrics(texts(synthetic), texts(zero_shot))
    assert made.gain.texts == 40
    assert len(trained) == 1 + 5  # the smaller set once, five parts of the larger one
    assert all(of == {"a": 20, "b": 20} for of in trained)  # each label has its share
    assert f"of {zero_shot};" in made.zero_shot.definition


def test_what_cannot_be_compared_is_left_out_or_has_its_reason():
    assert metrics(texts(40), []) == metrics([], texts(40)) == metrics(texts(40), texts(40), test=[]) == Metrics()
    # A network cannot be trained on a single text.
    made = metrics(texts(40), texts(1), settings={"model": "network"})
    assert made.gain is None
    assert made.zero_shot.reason
    assert made.zero_shot.accuracy.value is None


def test_a_figure_of_another_form_is_no_gain():
    for group in (None, 3, {"difference": 0.5, "trained_on": 3}, {"difference": {"value": 1, "interval": [0, 1]}}):
        assert Metrics(content={"zero_shot": group}).gain is None
    assert Metrics(content={"zero_shot": 3}).as_many_as_zero_shot is None
