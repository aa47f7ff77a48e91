import pytest

from client.writers.sentiment import Classifier, Vader, _polarity
from tests.support.tiny_models import tiny_classifier


def test_the_lexicon_tells_good_cheer_from_bad():
    good, bad, none = (Vader().judge(text) for text in ("He was happy and well.", "Severe pain, he is sad.", "A note"))
    assert (good.polarity, bad.polarity, none.polarity) == (1, -1, 0)
    assert good.confidence > 0.8
    assert bad.confidence > 0.8
    assert none.confidence == 0.5


@pytest.mark.parametrize(
    ("label", "polarity"),
    [("POSITIVE", 1), ("neg", -1), ("LABEL_0", -1), ("LABEL_1", 1), ("neutral", 0), ("4 stars", 0)],
)
def test_names_of_labels(label, polarity):
    assert _polarity(label) == polarity


def test_a_classifier_by_its_folder(tmp_path):
    judge = Classifier(str(tiny_classifier(tmp_path, labels=["NEGATIVE", "POSITIVE"]))).judge
    mood = judge("fever and chest pain " * 100)
    assert mood.polarity in (-1, 1)
    assert 0.5 <= mood.confidence <= 1
    assert judge("fever and chest pain " * 100) == mood
