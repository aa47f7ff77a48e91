import pytest

from common.errors import DataError
from server.metrics.surface import length_distance, sentiment_agreement

GOOD, BAD, PLAIN = "I love this great place", "a horrible, awful day", "the table is here"


def test_length_distance_is_the_mean_shift_in_words():
    assert length_distance(["a b", "a b c d"], ["a b c", "a b c d e"]) == 1
    assert length_distance(["a", "a b c"], ["a b c", "a"]) == 0


def test_sentiment_agreement_is_within_labels():
    real, labels = [GOOD, GOOD, BAD, BAD, PLAIN], ["x", "x", "x", "x", "y"]
    assert sentiment_agreement(real, labels, real, labels) == 1
    # Label x: half good, half bad against all good shares half; label y has none: 4/5 * 1/2.
    assert sentiment_agreement([GOOD], ["x"], real, labels) == pytest.approx(0.4)
    assert sentiment_agreement([PLAIN], ["z"], real, labels) == 0


def test_no_texts_are_refused():
    with pytest.raises(DataError):
        length_distance([], ["a"])
    with pytest.raises(DataError):
        sentiment_agreement([], [], ["a"], ["b"])
