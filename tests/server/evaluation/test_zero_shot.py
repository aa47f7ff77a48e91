"""The synthetic texts against those that the same models wrote without the hospitals, on the same test texts."""

from collections import Counter
from dataclasses import replace

import pytest

from server.documents.metrics import Metrics
from server.evaluation.figures import Measured
from server.evaluation.zero_shot import compare_with_zero_shot
from server.report.quality import read_quality
from tests.support.federations import ENCODER
from tests.support.measured_texts import as_read, candidates, measured_parts


def texts(count, *, wrong=0):
    """Texts of two labels, of which the first `wrong` have the other one's label."""
    other = {"a": "b", "b": "a"}
    return [replace(text, label=other[text.label]) if at < wrong else text for at, text in enumerate(candidates(count))]


def metrics(synthetic, zero_shot, **changes):
    groups = compare_with_zero_shot(Measured(**measured_parts(candidates=synthetic, **changes)), zero_shot)
    return as_read(groups)


def gain(measured):
    return read_quality(measured).gain


def test_better_texts_are_a_clear_gain_worse_ones_a_loss_and_the_same_ones_neither():
    better, worse = metrics(texts(40), texts(40, wrong=40)), metrics(texts(40, wrong=40), texts(40))
    assert (gain(better).value, gain(better).clear, gain(better).loss) == (1.0, True, False)
    assert (gain(worse).value, gain(worse).clear, gain(worse).loss) == (-1.0, False, True)
    assert [better.figure(*path, "accuracy").value for path in (["zero_shot"], ["zero_shot", "as_many"])] == [0.0, 1.0]
    same = gain(metrics(texts(40), texts(40)))
    assert (same.value, same.clear, same.loss) == (0, False, False)
    assert same.interval[0] < 0 < same.interval[1]


@pytest.mark.parametrize(("synthetic", "zero_shot"), [(200, 40), (40, 200)])
def test_trainings_of_both_sets_have_as_many_texts(synthetic, zero_shot, monkeypatch):
    trained = []

    def predictions(train, test, **_):
        trained.append(Counter(record.label for record in train))
        return [record.label for record in test], None

    monkeypatch.setattr("server.evaluation.figures.predictions", predictions)
    made = metrics(texts(synthetic), texts(zero_shot))
    assert gain(made).texts == 40
    # The smaller set once, five parts of the larger one; then each set without a tenth of its texts, ten times.
    assert [sum(of.values()) for of in trained] == [40] * (1 + 5) + [36] * (10 + 10)
    assert all(of["a"] == of["b"] for of in trained)  # each label has its share
    assert f"of {zero_shot};" in made.text("zero_shot", "definition")


def test_fewer_than_twenty_texts_have_no_difference():
    made = metrics(texts(40), texts(18))
    assert gain(made) is None
    assert made.figure("zero_shot", "accuracy").value is not None
    assert made.figure("zero_shot", "difference").reason


@pytest.mark.parametrize(
    ("settings", "trainings", "covers"),
    [
        ({"model": "encoder"}, 22, "(jackknife"),
        ({"model": "network", "seeds": 3}, 6, "3 trainings (Student's t)"),
        ({"model": "network"}, 2, "alone, paired"),
    ],
)
def test_definition_says_what_the_interval_covers(settings, trainings, covers, monkeypatch):
    trained = []

    def predictions(train, test, *, experiment_seed, **_):
        trained.append(len(train))
        wrong = len(trained) % 3 if settings["model"] == "network" else 0
        return ["?"] * wrong + [record.label for record in test][wrong:], None

    monkeypatch.setattr("server.evaluation.figures.predictions", predictions)
    made = metrics(texts(40), texts(40), settings=settings)
    assert len(trained) == trainings
    assert covers in made.text("zero_shot", "definition")
    assert gain(made).interval[0] < 0 < gain(made).interval[1]


def test_encoder_embeds_each_text_once():
    embedded = []

    class Counting:
        runs_here = True

        def encode(self, texts):
            embedded.extend(texts)
            return ENCODER.encode(texts)

    better = metrics(texts(40), texts(40, wrong=40), encoder=Counting(), settings={"model": "encoder"})
    assert gain(better).clear
    assert len(embedded) == len(set(embedded))


def test_sets_that_cannot_be_compared_are_left_out_or_have_their_reason():
    assert metrics(texts(40), []) == metrics([], texts(40)) == metrics(texts(40), texts(40), test=[]) == Metrics()
    # A network cannot be trained on a single text.
    made = metrics(texts(40), texts(1), settings={"model": "network"})
    assert gain(made) is None
    assert made.figure("zero_shot", "accuracy").reason
    assert made.figure("zero_shot", "accuracy").value is None


def test_figure_of_another_form_is_no_gain():
    for group in (None, 3, {"difference": 0.5, "trained_on": 3}, {"difference": {"value": 1, "interval": [0, 1]}}):
        assert gain(Metrics(content={"zero_shot": group})) is None
