import numpy as np

from common.domain import Record
from server.domain import Candidate
from server.evaluation.figures import Measured
from server.evaluation.released_classifier import measured_with, transfer_set
from server.evaluation.small_model import Evaluation
from server.metrics.linear import LinearClassifier
from tests.support.direct_federation import Encoder

LABELS = ("flu", "cold")


def transfer(public, most=10, seed=0):
    def probabilities(texts):
        return np.array([[0.25, 0.75] if "sneeze" in text else [0.9, 0.1] for text in texts])

    return transfer_set(public, probabilities, LABELS, most=most, experiment_seed=seed)


def test_public_texts_get_their_probabilities_each_once():
    texts = transfer(["sneeze", "fever", "sneeze", "chill"])
    expected = [("sneeze", "cold", "public"), ("fever", "flu", "public"), ("chill", "flu", "public")]
    assert [(text.text, text.label, text.model) for text in texts] == expected
    assert texts[0].probabilities == {"flu": 0.25, "cold": 0.75}


def test_public_texts_that_are_many_are_drawn_by_the_experiment_seed():
    public = [f"text {number}" for number in range(50)]
    drawn = [transfer(public, 5, seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(texts) for texts in drawn] == [5, 5, 5]
    assert transfer(public, 0) == transfer([]) == []


def test_classifier_and_public_texts_are_measured():
    encoder = Encoder()
    test = [Record(f"sneeze {number}", "cold") for number in range(4)] + [Record("fever", "flu")]
    right = LinearClassifier(
        labels=LABELS, weights=np.zeros((2, encoder.encode(["a"]).shape[1])), intercepts=np.array([0.0, 1.0])
    )
    candidates = [Candidate(text=f"{label} text", label=label, model="m", round=1) for label in LABELS]
    measured = Measured(candidates=candidates, test=test, evaluation=Evaluation(), encoder=encoder)
    groups = measured_with(measured, right, transfer(["sneeze", "fever"]))
    assert groups["released_classifier"]["accuracy"].value == 0.8
    assert groups["utility_with_transfer"]["trained_on"] == 4
    assert measured_with(measured, None, []) == {}
