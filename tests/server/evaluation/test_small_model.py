from dataclasses import replace

import numpy as np
import pytest

from common.domain import Record
from common.errors import ConfigError, DataError
from server.domain import Candidate
from server.evaluation.small_model import Evaluation, metrics, score
from server.settings.evaluation import Training
from tests.support.federations import ENCODER
from tests.support.tiny_models import tiny_bert

WORD = {"a": "apple", "b": "berry"}
TEXTS = [Candidate(text=f"word {WORD[label]} {i}", label=label, model="m", round=0) for label in "ab" for i in range(8)]
PERFECT = {"records": 16, "accuracy": 1.0, "macro_f1": 1.0, "confusion": {"a": {"a": 2}, "b": {"b": 2}}}
HELD_OUT = [Record(f"another {WORD[label]} here", label) for label in "abab"]


class Blind:
    runs_here = True

    def encode(self, texts):
        return np.ones((len(texts), 4), np.float32)


def measured(texts=TEXTS, held_out=HELD_OUT, **settings):
    return metrics(texts, held_out, Evaluation(**settings), ENCODER)


@pytest.mark.parametrize(
    ("settings", "definition"),
    [
        ({}, "TF-IDF"),
        ({"model": "encoder"}, "encoder's vectors"),
        ({"model": "network", "epochs": 60}, "fully connected"),
    ],
)
def test_model_trained_on_good_texts_is_right(settings, definition):
    scores = measured(**settings)
    assert scores["synthetic"] == PERFECT
    assert (scores["test_records"], scores["real_private"]) == (4, None)
    assert definition in scores["definition"]
    assert "CORAL" not in scores["definition"]


def test_model_on_anothers_vectors_sees_what_that_encoder_sees():
    assert measured(model="encoder", embedding=Blind())["synthetic"]["accuracy"] == 0.5


def test_majority_class_is_that_of_the_test_texts_and_of_no_texts_nothing():
    assert measured(held_out=[*HELD_OUT, Record("another", "a")])["majority_class"]["accuracy"] == 0.6
    assert measured(held_out=[]) == {}
    assert score([Record("word apple", "a")] * 3, HELD_OUT, evaluation=Evaluation())["accuracy"] == 0.5


@pytest.mark.parametrize(("weight", "accuracy"), [(1e-6, 1.0), (1.0, 0.0)])
def test_texts_count_by_their_weights(weight, accuracy):
    wrong = [replace(text, label="ba"["ab".index(text.label)], weight=weight) for text in TEXTS]
    assert measured([*TEXTS, *wrong, *wrong])["synthetic"]["accuracy"] == accuracy


def test_adaptation_is_to_texts_that_are_no_test_texts(tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("some berry\nsome apple\n")
    settings = {"model": "network", "epochs": 60, "domain_adaptation": "deep_coral", "target": str(target)}
    scores = measured(weight=0.5, **settings)
    assert scores["synthetic"]["accuracy"] == 1.0
    assert "CORAL, lambda = 0.5" in scores["definition"]
    target.write_text("some berry\nanother  apple here\n")
    with pytest.raises(DataError) as caught:
        measured(**settings)
    assert "apple" not in str(caught.value)


def test_texts_become_the_sequences_of_their_terms(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("Another\nberry\nword\n")
    evaluation = Evaluation(vocabulary=str(file))
    train = [Record("Another; berry", "b"), Record("word; word", "a")]
    scores = score(train, [Record("some berry and another", "b"), Record("none", "a")], evaluation=evaluation)
    assert scores["records"] == 2
    assert scores["confusion"]["b"] == {"b": 1}
    assert "terms" in evaluation.definition


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"model": "tree"}, "evaluation.model"),
        ({"domain_adaptation": "mmd"}, "evaluation.domain_adaptation"),
        ({"domain_adaptation": "deep_coral", "target": "t.txt"}, "model network"),
        ({"domain_adaptation": "deep_coral", "model": "network"}, "target"),
        ({"metrics": ["beauty"]}, "evaluation.metrics"),
        ({"model": "finetuned"}, "evaluation.checkpoint"),
        ({"model": "finetuned", "checkpoint": "nowhere"}, "nowhere"),
        ({"language_model": Training(start="nowhere")}, "nowhere"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, word):
    with pytest.raises(ConfigError, match=word):
        Evaluation(**settings)


def test_fine_tuned_transformer_is_scored_like_the_others_and_looked_at_before(tmp_path):
    bert = tiny_bert(tmp_path / "model", ("apple", "berry", "word", "another", "here"))
    scores = measured(model="finetuned", checkpoint=str(bert), epochs=1)
    assert set(scores["synthetic"]) == set(PERFECT)
    assert "fine-tuned" in scores["definition"]
    with pytest.raises(ConfigError, match="BertModel"):
        Evaluation(language_model=Training(start=str(bert)))
