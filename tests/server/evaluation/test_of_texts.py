import json
import math

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
from server.metrics import fidelity
from server.report import figure_tables
from tests.support.measured_texts import assert_whole, candidates, figures, measured_parts, records


def groups_of(*metrics, settings=(), **changes):
    """Return the groups of these names, or of all of them."""
    chosen = dict(settings) | ({"metrics": metrics} if metrics else {})
    return text_groups(Measured(**measured_parts(settings=chosen, **changes)))


def texts_of(*texts):
    return [Candidate(text=text, label="a", model="m", round=0) for text in texts]


def test_figures_of_all_groups_have_a_value_rows_and_a_definition():
    groups = groups_of()
    names = ["utility", "utility_encoder", "language", "fidelity", "fidelity_real", "diversity", "privacy"]
    assert list(groups) == names
    assert_whole(groups)
    assert not any(group.get("simulation_only") for group in groups.values())
    assert groups["utility"]["accuracy"].value == 1.0
    assert groups["language"]["perplexity"].value > 1
    json.dumps(strict(groups), allow_nan=False)


def test_groups_that_were_not_chosen_or_lack_texts_are_left_out():
    assert list(groups_of("diversity")) == ["diversity"]
    assert list(groups_of(test=[])) == ["diversity", "privacy"]
    assert groups_of(candidates=[]) == {}


def test_second_classifier_reads_the_encoders_vectors_whatever_the_first_is():
    made = groups_of("utility", "utility_encoder", settings={"model": "tfidf"})
    chosen = groups_of("utility", settings={"model": "encoder"})["utility"]
    assert made["utility_encoder"]["accuracy"] == chosen["accuracy"]
    assert made["utility"]["definition"] != made["utility_encoder"]["definition"] == chosen["definition"]


def test_fidelity_of_real_texts_shows_what_synthetic_ones_could_reach():
    groups = groups_of("fidelity", candidates=texts_of(*(f"zzz {i} qqq" for i in range(40))))
    assert figures(groups["fidelity"]).keys() == figures(groups["fidelity_real"]).keys()
    assert groups["fidelity_real"]["fid"].rows == 20  # one half of 40 test texts
    assert groups["fidelity_real"]["fid"].value < groups["fidelity"]["fid"].value
    assert groups_of("fidelity", test=records(0, 1))["fidelity_real"]["fid"].reason


def test_a_log_of_figures_that_take_more_texts_names_both_sets_and_a_remedy(caplog):
    caplog.set_level("INFO", logger="caucus.measures")
    assert groups_of("fidelity", test=records(104, 30))["fidelity_real"]["mauve"].reason
    (line,) = [line for line in caplog.messages if "mauve" in line]
    assert [fact for fact in ("two halves of the test texts", "at least 20", "task.test") if fact not in line] == []


def test_fidelity_figure_that_is_not_a_number_has_a_reason(monkeypatch):
    monkeypatch.setattr(fidelity, "overlap", lambda *_, **__: dict.fromkeys(fidelity.OVERLAP, math.nan))
    group = groups_of("fidelity")["fidelity"]
    assert {(group[name].value, bool(group[name].reason)) for name in fidelity.OVERLAP} == {(None, True)}


@pytest.mark.parametrize(("language", "measured"), [("english", True), ("german", False)])
def test_sentiments_by_english_rules_are_of_english_texts_alone(language, measured):
    found = groups_of("fidelity", language=language)["fidelity"]["sentiment_agreement"]
    assert (found.value is not None, bool(found.reason)) == (measured, not measured)


def test_personal_information_is_counted_by_text_beside_the_same_kinds_in_public_texts():
    mail = texts_of("mail a@b.org or c@d.org", "nothing here", "mail x@y.org from 212-555-0123")
    public = ["She was born on 12 March 1971.", "Nothing here."]
    groups = groups_of("privacy", candidates=mail, public=lambda: public)
    ours, theirs = groups["privacy"], groups["privacy_public"]
    assert ours["of_a_kind"].keys() == theirs["of_a_kind"].keys()
    assert ours["personal_information"].value == ours["of_a_kind"]["email"].value == pytest.approx(2000 / 3)
    assert (theirs["of_a_kind"]["email"].value, theirs["personal_information"].rows) == (0, 2)
    tables = {table["title"]: table for table in figure_tables.tables(Metrics(content=groups).groups)}
    assert len(tables["Privacy"]["columns"]) == 2
    assert groups_of("privacy", candidates=mail, released=[])["privacy"]["personal_information"].reason


def test_public_texts_that_cannot_be_read_are_named_and_the_others_searched():
    def absent():
        raise ConfigError("task.public_text", expected="a file", got="none")

    groups = groups_of("privacy", public=absent)
    assert groups["privacy"]["personal_information"].rows == 40
    assert "task.public_text" in groups["privacy_public"]["personal_information"].reason


def test_several_trainings_give_an_interval_over_them():
    made = groups_of("utility", "language", settings={"model": "network", "epochs": 3, "seeds": 2})
    assert "2 trainings" in made["utility"]["definition"]
    low, high = made["language"]["perplexity"].interval
    assert low < made["language"]["perplexity"].value < high


class Broken:
    runs_here = True

    def encode(self, texts):
        return np.full((len(texts), 8), np.nan, dtype=np.float32)


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"candidates": candidates(3)}, {"precision", "mauve"}),
        ({"candidates": candidates(1)}, {"fid", "self_bleu"}),
        ({"candidates": [candidates(1)[0]] * 30, "test": [records(0, 1)[0]] * 30}, {"mauve"}),
        ({"candidates": texts_of("a") * 9}, {"distinct_3"}),
        ({"encoder": Broken()}, {"fid", "mauve", "kl", "precision", "coverage", "wasserstein", "sinkhorn"}),
    ],
    ids=["three", "one", "alike", "short", "broken"],
)
def test_figures_that_cannot_be_computed_have_a_reason_and_the_rest_a_value(changes, lacking):
    made = groups_of("fidelity", "diversity", **changes)
    found = figures(made["fidelity"] | made["diversity"])
    assert lacking <= {name for name, entry in found.items() if entry.value is None and entry.reason}
    assert found["length_distance"].value is not None


def test_one_class_and_labels_never_seen_are_results_that_say_so():
    one = [candidate for candidate in candidates() if candidate.label == "a"]
    made = groups_of("utility", candidates=one, test=[*records(104, 8), Record("a strange one", "c")])["utility"]
    assert made["accuracy"].value == pytest.approx(4 / 9)
    assert all(fact in made["note"] for fact in ("one label", "5 of 9"))


def test_figure_that_is_no_number_says_so_and_a_librarys_words_stay_inside():
    def failing():
        raise ValueError("private words")

    assert figure(lambda: float("nan"), rows=3).reason
    reason = figure(failing, rows=3).reason
    assert ("(ValueError)" in reason, "private" in reason) == (True, False)


def test_groups_of_records_outside_a_simulation_are_named_with_the_reason():
    made = missing_record_groups(["membership", "fidelity_private", "utility"], {"fidelity_private": {}})
    assert list(made) == ["membership"]
    assert made["membership"].reason


def test_metric_of_ones_own_sees_texts_and_labels_and_its_failure_is_named_without_its_words(caplog):
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
    made = groups_of(settings={"metrics": [], "own": own_metrics}, test=[])["own"]
    count = len(candidates())
    assert [made[name].value for name in own_metrics] == [count, None, None, None, count]
    for name, kind in (("failing", "(RuntimeError)"), ("wordy", "(ValueError)"), ("undefined", "number")):
        assert kind in made[name].reason
    assert "evaluation.own.failing" in caplog.text
    assert candidates()[0].text not in caplog.text + made["failing"].reason
    with pytest.raises(ConfigError, match=r"^evaluation\.own\.words;"):
        Evaluation(own={"words": 5})
