import pytest

from common.errors import DataError
from server.metrics.surface import length_distance, sentiment_agreement, sentiments

GOOD, BAD, PLAIN = "I love this great place", "a horrible, awful day", "the table is here"


def test_lengths():
    assert length_distance(["a b", "a b c d"], ["a b c", "a b c d e"]) == 1
    assert length_distance(["a", "a b c"], ["a b c", "a"]) == 0
    assert length_distance(["a b c"], ["a b", "a b c d"]) == 1


def test_sentiments_are_vaders():
    assert sentiments([BAD, PLAIN, GOOD]).tolist() == [0, 1, 2]


def test_agreement_within_labels():
    real, labels = [GOOD, GOOD, BAD, BAD, PLAIN], ["x", "x", "x", "x", "y"]
    assert sentiment_agreement(real, labels, real, labels) == 1
    # Label x: half good, half bad against all good shares half; label y has none: 4/5 * 1/2.
    assert sentiment_agreement([GOOD], ["x"], real, labels) == pytest.approx(0.4)
    assert sentiment_agreement([PLAIN], ["z"], real, labels) == 0


@pytest.mark.parametrize(
    "ask",
    [lambda: length_distance([], ["a"]), lambda: sentiment_agreement([], [], ["a"], ["b"])],
)
def test_no_texts_are_refused(ask):
    with pytest.raises(DataError, match="at least one"):
        ask()
