import json

import numpy as np
import pytest

from common.domain import Record
from common.errors import ConfigError
from server.domain import Candidate
from server.evaluation.figures import figure
from server.evaluation.of_texts import of_texts, without_records
from server.evaluation.small_model import METRICS, Evaluation
from server.run_folder import for_json
from simulations.private_evaluation.canaries import FORM, codes
from simulations.private_evaluation.of_records import MeasuredWithRecords, of_records
from tests.support.federations import ENCODER

FAST = {"epochs": 1, "width": 16, "layers": 1, "vocabulary": 300, "length": 16}
WORDS = ("harbour", "lantern", "meadow", "copper", "violin", "thunder", "pebble", "orchard", "saddle", "window")


def text(label, i):
    return f"{'apple' if label == 'a' else 'berry'} {WORDS[i % 10]} by the {WORDS[(3 * i + 1) % 7]} {i}"


def candidates(count=40):
    return [Candidate(text=text("ab"[i % 2], i), label="ab"[i % 2], model="m", round=0) for i in range(count)]


def records(start, count=40):
    return [Record(text("ab"[i % 2], i + start), "ab"[i % 2]) for i in range(count)]


def measured(**changes):
    settings = {"metrics": METRICS, "language_model": FAST, "texts": 40, "shadows": 1}
    parts = {"candidates": candidates(), "test": records(104), "private": records(208), "encoder": ENCODER} | changes
    return MeasuredWithRecords(evaluation=Evaluation(**settings | parts.pop("settings", {})), **parts)


def figures(group):
    return {name: value for name, value in group.items() if isinstance(value, dict)}


def test_every_figure_has_a_value_rows_and_a_definition():
    made = of_texts(measured()) | of_records(measured(canaries=codes(4, 0)))
    assert list(made) == [
        *("utility", "language", "fidelity", "diversity", "privacy"),
        *("utility_real", "language_real", "nearest", "fidelity_private", "membership", "canaries"),
    ]
    for group in made.values():
        assert group["definition"]
        for name, each in figures(group).items():
            if name != "of_a_kind":
                assert np.isfinite(each["value"]), (name, each)
                assert each["rows"] > 0
                low, high = each.get("interval") or (each["value"], each["value"])
                assert low <= each["value"] <= high
    private = {name for name, group in made.items() if group.get("simulation_only")}
    assert private == {"utility_real", "language_real", "nearest", "fidelity_private", "membership", "canaries"}
    assert made["utility"]["accuracy"]["value"] == 1.0
    assert made["language"]["perplexity"]["value"] > 1
    json.dumps(for_json(made), allow_nan=False)


def test_canaries_that_came_out_are_found_and_others_are_not():
    known = codes(4, 0)
    settings = {"metrics": ["canaries"], "language_model": FAST | {"epochs": 12, "length": 32}}
    parrots = [Candidate(text=FORM.format(known[i % 2]), label="a", model="m", round=0) for i in range(40)]
    for some, extracted in ((parrots, 1.0), (candidates(), 0.0)):
        found = of_records(measured(candidates=some, canaries=known[:2], settings=settings))["canaries"]
        assert found["extracted"]["value"] == extracted
        assert (found["exposure"]["value"] > 7) is bool(extracted)
    reason = of_records(measured(settings=settings))["canaries"]["extracted"]["reason"]
    assert "federation.canaries" in reason


def test_nothing_that_was_not_chosen_is_measured():
    chosen = measured(settings={"metrics": ["diversity"]})
    assert list(of_texts(chosen)) == ["diversity"]
    assert of_records(chosen) == {}


def test_without_real_texts_the_set_itself_is_measured():
    assert list(of_texts(measured(test=[]))) == ["diversity", "privacy"]
    assert of_texts(measured(candidates=[])) == {}


def test_several_trainings_give_an_interval_over_them():
    settings = {"metrics": ["utility", "language"], "model": "network", "epochs": 3, "seeds": 2}
    made = of_texts(measured(settings=settings))
    assert "over 2 trainings" in made["utility"]["definition"]
    low, high = made["language"]["perplexity"]["interval"]
    assert low < made["language"]["perplexity"]["value"] < high


@pytest.mark.parametrize(
    ("changes", "group", "lacking", "reason"),
    [
        ({"candidates": candidates(3)}, "fidelity", "precision", "at least 6 rows"),
        ({"candidates": candidates(3)}, "fidelity", "mauve", "at least 20 rows"),
        ({"candidates": candidates(1)}, "fidelity", "fid", "at least 2 rows"),
        ({"candidates": candidates(1)}, "diversity", "self_bleu", "at least two"),
        ({"candidates": candidates(1)}, "diversity", "near_duplicates", "at least two"),
        (
            {"candidates": [candidates(1)[0]] * 30, "test": [records(0, 1)[0]] * 30},
            "fidelity",
            "mauve",
            "one and the same",
        ),
        (
            {"candidates": [Candidate(text="a", label="a", model="m", round=0)] * 9},
            "diversity",
            "distinct_3",
            "3 words",
        ),
    ],
)
def test_what_cannot_be_computed_says_why_and_the_rest_goes_on(changes, group, lacking, reason):
    made = of_texts(measured(**changes, settings={"metrics": ["fidelity", "diversity"]}))
    found = made[group][lacking]
    assert found["value"] is None
    assert reason in found["reason"]
    assert any(each["value"] is not None for each in figures(made["fidelity"] | made["diversity"]).values())


def test_broken_embeddings_have_reasons_and_texts_still_figures():
    class Broken:
        runs_here = True

        def encode(self, texts):
            return np.full((len(texts), 8), np.nan, dtype=np.float32)

    made = of_texts(measured(encoder=Broken(), settings={"metrics": ["fidelity", "diversity"]}))
    missing = {name: each for name, each in figures(made["fidelity"]).items() if each["value"] is None}
    assert len(missing) == 11
    assert all("finite" in each["reason"] for each in missing.values())
    assert made["fidelity"]["length_distance"]["value"] >= 0
    assert made["diversity"]["self_bleu"]["value"] > 0


def test_one_class_and_labels_never_seen_are_results_that_say_so():
    one = [candidate for candidate in candidates() if candidate.label == "a"]
    test = [*records(104, 8), Record("a strange one", "c")]
    made = of_texts(measured(candidates=one, test=test, settings={"metrics": ["utility"]}))["utility"]
    assert made["accuracy"]["value"] == pytest.approx(4 / 9)
    assert "all training texts have one label" in made["note"]
    assert "5 of 9 test texts have labels never learned" in made["note"]


def test_too_few_records_for_an_attack(caplog):
    caplog.set_level("INFO", "caucus.measures")
    made = of_records(measured(private=records(208, 5), settings={"metrics": ["membership"]}))["membership"]
    assert made["simulation_only"]
    assert [made[name]["value"] for name in ("PPL", "REFER", "LIRA")] == [None] * 3
    assert "20 records and 40 held out" in made["PPL"]["reason"]
    assert made["PPL"]["reason"] in caplog.text


def test_a_language_model_that_is_none_is_refused_before_the_run(tmp_path):
    with pytest.raises(ConfigError, match="a folder, or the name of a model"):
        measured(settings={"metrics": ["language"], "language_model": FAST | {"start": str(tmp_path / "none")}})


def test_a_figure_that_is_no_number_says_so_and_a_librarys_words_stay_inside():
    assert "not a number" in figure(lambda: float("nan"), rows=3)["reason"]

    def failing():
        raise ValueError("private words")

    assert figure(failing, rows=3)["reason"] == "a library failed (ValueError)"


def test_outside_a_simulation_groups_of_records_are_named_with_the_reason():
    made = without_records(["membership", "fidelity_private", "utility"], {"fidelity_private": {}})
    assert list(made) == ["membership"]
    assert "simulation" in made["membership"]["reason"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"metrics": ["beauty"]}, "evaluation.metrics"),
        ({"federated": 0.6}, "evaluation.federated"),
        ({"language_model": {"seed": 3}}, "evaluation.language_model"),
        ({"texts": 0}, "evaluation.texts"),
        ({"seeds": 0}, "evaluation.seeds"),
        ({"shadows": 0}, "evaluation.shadows"),
    ],
)
def test_settings_out_of_range_are_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        Evaluation(**settings)
