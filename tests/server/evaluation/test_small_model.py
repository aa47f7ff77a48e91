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


def candidates(labels="ab"):
    return [
        Candidate(text=f"word {WORD[label]} {i}", label=label, model="m", round=0) for label in labels for i in range(8)
    ]


PERFECT = {"records": 16, "accuracy": 1.0, "macro_f1": 1.0, "confusion": {"a": {"a": 2}, "b": {"b": 2}}}
HELD_OUT = [Record(f"another {WORD[label]} here", label) for label in "abab"]


def test_a_model_trained_on_good_texts_is_right():
    scores = metrics(candidates(), HELD_OUT, Evaluation(), ENCODER)
    assert scores["synthetic"] == PERFECT
    assert (scores["test_records"], scores["real_private"]) == (4, None)
    assert "logistic regression" in scores["definition"]


def test_beside_it_is_the_share_of_the_most_frequent_label_of_the_test_texts():
    held_out = [*HELD_OUT, Record("another", "a")]
    assert metrics(candidates(), held_out, Evaluation(), ENCODER)["majority_class"]["accuracy"] == 0.6


def test_texts_count_by_their_weights():
    wrong = [replace(candidate, label="ba"["ab".index(candidate.label)], weight=1e-6) for candidate in candidates()]
    assert metrics([*candidates(), *wrong, *wrong], HELD_OUT, Evaluation(), ENCODER)["synthetic"]["accuracy"] == 1.0
    heavy = [replace(candidate, weight=1.0) for candidate in wrong]
    assert metrics([*candidates(), *heavy, *heavy], HELD_OUT, Evaluation(), ENCODER)["synthetic"]["accuracy"] == 0.0


def test_without_held_out_texts_nothing_is_claimed():
    assert metrics(candidates(), [], Evaluation(), ENCODER) == {}


def test_texts_of_one_class_alone_are_scored_by_that_class():
    scores = score([Record("word apple", "a")] * 3, HELD_OUT)
    assert scores["accuracy"] == 0.5


def test_a_network_over_the_encoder_learns_the_same_task():
    evaluation = Evaluation(model="network", epochs=60)
    scores = metrics(candidates(), HELD_OUT, evaluation, ENCODER)
    assert scores["synthetic"] == PERFECT
    assert "fully connected" in scores["definition"]
    assert "CORAL" not in scores["definition"]


def adapting(target):
    return Evaluation(model="network", epochs=60, domain_adaptation="deep_coral", target=str(target), weight=0.5)


def test_adaptation_has_texts_of_its_own(tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("some berry\nsome apple\n")
    scores = metrics(candidates(), HELD_OUT, adapting(target), ENCODER)
    assert scores["synthetic"]["accuracy"] == 1.0
    assert "CORAL, lambda = 0.5" in scores["definition"]
    target.write_text("some berry\nanother  apple here\n")
    with pytest.raises(DataError, match="test texts") as caught:
        metrics(candidates(), HELD_OUT, adapting(target), ENCODER)
    assert "apple" not in str(caught.value)


def test_texts_become_the_sequences_of_their_terms(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("Another\nberry\nword\n")
    scores = score(
        [Record("Another; berry", "b"), Record("word; word", "a")],
        [Record("some berry and another word", "b"), Record("none", "a")],
        evaluation=Evaluation(vocabulary=str(file)),
    )
    assert scores["records"] == 2
    assert "terms" in Evaluation(vocabulary="terms.txt").definition


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"model": "tree"}, "evaluation.model"),
        ({"domain_adaptation": "mmd"}, "evaluation.domain_adaptation"),
        ({"domain_adaptation": "deep_coral", "target": "t.txt"}, "model network"),
        ({"domain_adaptation": "deep_coral", "model": "network"}, "target"),
        ({"metrics": ["beauty"]}, "evaluation.metrics"),
    ],
)
def test_settings_that_go_together(settings, word):
    with pytest.raises(ConfigError, match=word):
        Evaluation(**settings)


def test_the_same_classifier_on_the_encoders_vectors_or_on_anothers():
    scores = metrics(candidates(), HELD_OUT, Evaluation(model="encoder"), ENCODER)
    assert scores["synthetic"] == PERFECT
    assert "encoder's vectors" in scores["definition"]

    class Blind:
        runs_here = True

        def encode(self, texts):
            return np.ones((len(texts), 4), np.float32)

    evaluation = Evaluation(model="encoder", embedding=Blind())
    assert metrics(candidates(), HELD_OUT, evaluation, ENCODER)["synthetic"]["accuracy"] == 0.5


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", ("apple", "berry", "word", "another", "here"))


def test_a_fine_tuned_transformer_is_scored_like_the_others(bert):
    scores = metrics(candidates(), HELD_OUT, Evaluation(model="finetuned", checkpoint=str(bert), epochs=1), ENCODER)
    assert set(scores["synthetic"]) == set(PERFECT)
    assert "fine-tuned" in scores["definition"]


def test_a_checkpoint_is_looked_at_before_anything_else(bert, tmp_path):
    with pytest.raises(ConfigError, match=r"^evaluation\.checkpoint;"):
        Evaluation(model="finetuned")
    for settings in (
        {"model": "finetuned", "checkpoint": str(tmp_path)},
        {"language_model": Training(start=str(tmp_path))},
    ):
        with pytest.raises(ConfigError, match="folder"):
            Evaluation(**settings)
    with pytest.raises(ConfigError, match="got BertModel"):
        Evaluation(language_model=Training(start=str(bert)))
