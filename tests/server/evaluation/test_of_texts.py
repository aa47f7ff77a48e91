import json
from dataclasses import replace

import numpy as np
import pytest

from common.domain import Record
from common.errors import ConfigError
from server.documents.codec import strict
from server.documents.metrics import Metrics
from server.domain import Candidate
from server.evaluation.figures import Measured, figure
from server.evaluation.of_texts import missing_record_groups, text_groups
from server.evaluation.small_model import Evaluation
from server.report import figure_tables
from tests.support.measured_texts import FAST, assert_whole, candidates, figures, measured_parts, records


def measured(**changes):
    return Measured(**measured_parts(**changes))


def test_every_figure_has_a_value_rows_and_a_definition():
    groups = text_groups(measured())
    names = ["utility", "utility_encoder", "language", "fidelity", "fidelity_real", "diversity", "privacy"]
    assert list(groups) == names
    assert_whole(groups)
    assert not any(group.get("simulation_only") for group in groups.values())
    assert groups["utility"]["accuracy"].value == 1.0
    assert groups["language"]["perplexity"].value > 1
    json.dumps(strict(groups), allow_nan=False)


def test_nothing_that_was_not_chosen_is_measured():
    assert list(text_groups(measured(settings={"metrics": ["diversity"]}))) == ["diversity"]


def test_a_second_classifier_reads_the_encoder_s_vectors_whatever_the_first_is():
    settings = {"metrics": ["utility", "utility_encoder"], "model": "tfidf"}
    made = text_groups(measured(settings=settings))
    assert made["utility"]["definition"].startswith("TF-IDF")
    chosen = text_groups(measured(settings={"metrics": ["utility"], "model": "encoder"}))["utility"]
    assert made["utility_encoder"]["accuracy"] == chosen["accuracy"]


def test_without_real_texts_the_set_itself_is_measured():
    assert list(text_groups(measured(test=[]))) == ["diversity", "privacy"]
    assert text_groups(measured(candidates=[])) == {}


def test_real_texts_in_place_of_the_synthetic_ones_show_what_these_could_reach():
    groups = text_groups(measured(settings={"metrics": ["fidelity"]}))
    assert figures(groups["fidelity"]).keys() == figures(groups["fidelity_real"]).keys()
    assert groups["fidelity_real"]["fid"].rows == 20  # one half of 40 test texts
    far = [Candidate(text=f"zzz {i} qqq", label="a", model="m", round=0) for i in range(40)]
    groups = text_groups(measured(candidates=far, settings={"metrics": ["fidelity"]}))
    assert groups["fidelity_real"]["fid"].value < groups["fidelity"]["fid"].value
    alone = text_groups(measured(test=records(0, 1), settings={"metrics": ["fidelity"]}))
    assert "2 rows" in alone["fidelity_real"]["fid"].reason


@pytest.mark.parametrize(("language", "reason"), [("english", None), ("german", "English"), ("french", "English")])
def test_sentiments_by_english_rules_are_of_english_texts_alone(language, reason):
    groups = text_groups(measured(settings={"metrics": ["fidelity"]}, language=language))
    for name in ("fidelity", "fidelity_real"):
        figure = groups[name]["sentiment_agreement"]
        assert (figure.value is None) == bool(reason)
        assert (reason or "") in (figure.reason or "")


def test_personal_information_stands_beside_that_of_public_texts_with_the_same_kinds():
    mail = [Candidate(text=f"Write to m{i}@example.org.", label="a", model="m", round=0) for i in range(4)]
    public = ["She was born on 12 March 1971.", "Nothing here."]
    groups = text_groups(measured(candidates=mail, public=lambda: public, settings={"metrics": ["privacy"]}))
    ours, theirs = groups["privacy"], groups["privacy_public"]
    assert ours["of_a_kind"].keys() == theirs["of_a_kind"].keys()
    assert (ours["of_a_kind"]["email"].value, theirs["of_a_kind"]["email"].value) == (1000, 0)
    assert (ours["personal_information"].value, theirs["personal_information"].rows) == (1000, 2)
    tables = {table["title"]: table for table in figure_tables.tables(Metrics(content=groups).groups)}
    assert tables["Privacy"]["columns"] == ["synthetic texts", "public text"]


def test_personal_information_is_counted_by_text():
    texts = ["mail a@b.org or c@d.org", "nothing here", "mail x@y.org from 212-555-0123"]
    mail = [Candidate(text=text, label="a", model="m", round=0) for text in texts]
    made = text_groups(measured(candidates=mail, settings={"metrics": ["privacy"]}))["privacy"]
    assert made["personal_information"].value == made["of_a_kind"]["email"].value == pytest.approx(2000 / 3)
    none = text_groups(measured(candidates=mail, released=[], settings={"metrics": ["privacy"]}))["privacy"]
    assert none["personal_information"].reason


def test_public_texts_that_cannot_be_read_are_named_and_the_others_searched():
    def absent():
        raise ConfigError("task.public_text", expected="a file", got="none")

    groups = text_groups(measured(public=absent, settings={"metrics": ["privacy"]}))
    assert groups["privacy"]["personal_information"].rows == 40
    assert "task.public_text" in groups["privacy_public"]["personal_information"].reason


def test_several_trainings_give_an_interval_over_them():
    settings = {"metrics": ["utility", "language"], "model": "network", "epochs": 3, "seeds": 2}
    made = text_groups(measured(settings=settings))
    assert "2 trainings" in made["utility"]["definition"]
    low, high = made["language"]["perplexity"].interval
    assert low < made["language"]["perplexity"].value < high


ALIKE = {"candidates": [candidates(1)[0]] * 30, "test": [records(0, 1)[0]] * 30}
SHORT = {"candidates": [Candidate(text="a", label="a", model="m", round=0)] * 9}


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"candidates": candidates(3)}, {"precision": "6 rows", "mauve": "20 rows"}),
        ({"candidates": candidates(1)}, {"fid": "2 rows", "self_bleu": "two"}),
        (ALIKE, {"mauve": "same"}),
        (SHORT, {"distinct_3": "3 words"}),
    ],
)
def test_what_cannot_be_computed_says_why_and_the_rest_goes_on(changes, lacking):
    made = text_groups(measured(**changes, settings={"metrics": ["fidelity", "diversity"]}))
    found = figures(made["fidelity"] | made["diversity"])
    for name, reason in lacking.items():
        assert found[name].value is None
        assert reason in found[name].reason
    assert any(entry.value is not None for entry in found.values())


def test_broken_embeddings_have_reasons_and_texts_still_figures():
    class Broken:
        runs_here = True

        def encode(self, texts):
            return np.full((len(texts), 8), np.nan, dtype=np.float32)

    made = text_groups(measured(encoder=Broken(), settings={"metrics": ["fidelity", "diversity"]}))
    missing = {name: entry for name, entry in figures(made["fidelity"]).items() if entry.value is None}
    assert len(missing) == 11
    assert all("finite" in entry.reason for entry in missing.values())
    assert made["fidelity"]["length_distance"].value >= 0
    assert made["diversity"]["self_bleu"].value > 0


def test_one_class_and_labels_never_seen_are_results_that_say_so():
    one = [candidate for candidate in candidates() if candidate.label == "a"]
    test = [*records(104, 8), Record("a strange one", "c")]
    made = text_groups(measured(candidates=one, test=test, settings={"metrics": ["utility"]}))["utility"]
    assert made["accuracy"].value == pytest.approx(4 / 9)
    assert all(fact in made["note"] for fact in ("one label", "5 of 9"))


def test_a_language_model_that_is_none_is_refused_before_the_run(tmp_path):
    with pytest.raises(ConfigError, match="folder"):
        measured(settings={"metrics": ["language"], "language_model": replace(FAST, start=str(tmp_path / "none"))})


def test_a_figure_that_is_no_number_says_so_and_a_librarys_words_stay_inside():
    assert "number" in figure(lambda: float("nan"), rows=3).reason

    def failing():
        raise ValueError("private words")

    reason = figure(failing, rows=3).reason
    assert ("(ValueError)" in reason, "private" in reason) == (True, False)


def test_outside_a_simulation_groups_of_records_are_named_with_the_reason():
    made = missing_record_groups(["membership", "fidelity_private", "utility"], {"fidelity_private": {}})
    assert list(made) == ["membership"]
    assert "simulation" in made["membership"].reason


def test_a_metric_of_ones_own_sees_texts_and_labels_and_its_failure_is_named_without_its_words(caplog):
    def repeated(texts, labels):
        texts.clear()  # it has lists of its own
        return float(len(labels))

    def failing(texts, labels):
        raise RuntimeError(texts[0])

    own_metrics = {
        "repeated": repeated,
        "failing": failing,
        "wordy": lambda texts, labels: "many",
        "undefined": lambda texts, labels: float("nan"),
        "counted": lambda texts, labels: len(texts),
    }
    made = text_groups(measured(settings={"metrics": [], "own": own_metrics}, test=[]))["own"]
    count = len(candidates())
    assert {name: made[name].value for name in own_metrics} == {
        "repeated": count,
        "failing": None,
        "wordy": None,
        "undefined": None,
        "counted": count,
    }
    for name, kind in (("failing", "(RuntimeError)"), ("wordy", "(ValueError)"), ("undefined", "number")):
        assert kind in made[name].reason
    assert "evaluation.own.failing" in caplog.text
    assert candidates()[0].text not in caplog.text + made["failing"].reason
    with pytest.raises(ConfigError, match=r"^evaluation\.own\.words;"):
        Evaluation(own={"words": 5})
