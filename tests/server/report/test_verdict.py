"""What the first screen says of every kind of run: the accuracies and the verdict."""

import json
from pathlib import Path

import pytest

from server.documents.metrics import Metrics
from server.domain import Candidate
from server.guarantee.words import guarantee_card
from server.report.bars import draw_bars
from server.report.facts import gather
from server.report.labels import list_labels
from server.report.quality import WITHOUT, Quality, Role, read_quality, read_utility
from server.report.verdict import Judgement, judge, reach_verdict
from tests.support.documents import privacy, report_of, summary, summary_json, write_run
from tests.support.pages import report
from tests.support.screens import assert_accepted, under_headings

NOTHING = {"epsilon": "inf", "planned_epsilon": "inf"}


def measured(synthetic=0.83, *, real=0.94, majority=0.25, tested=400):
    return {
        "test_records": tested,
        "synthetic": {"records": 960, "accuracy": synthetic, "macro_f1": 0.5},
        "majority_class": {"accuracy": majority},
        "real_private": None if real is None else {"records": 900, "accuracy": real, "simulation_only": True},
    }


def against(zero_shot, low, high, *, synthetic=0.83, texts=960, **more):
    """Metrics with the same models without the hospitals, and the interval of the difference."""
    difference = {"value": (low + high) / 2, "interval": [low, high], "rows": 400}
    group = {"trained_on": texts, "accuracy": {"value": zero_shot}, "difference": difference, "definition": "D."}
    return measured(synthetic, **more) | {"zero_shot": group}


def near(**changes):
    """Metrics of a task without labels."""
    group = {
        "texts": 60,
        "fid": {"value": 0.564, "interval": [0.54, 0.58]},
        "zero_shot": {"value": 0.64, "interval": [0.6, 0.68]},
        "real": {"value": 0.24, "interval": [0.22, 0.26]},
        "difference": {"value": 0.076, "interval": [0.038, 0.114]},
    }
    return {"test_records": 400, "nearness": group | changes}


def label_sets():
    f1 = {"value": 0.7, "interval": [0.6, 0.8]}
    sets = {"trained_on": 300, "micro_f1": f1, "constant": {"micro_f1": 0.4}, "as_many": {"micro_f1": 0.65}}
    sets |= {"zero_shot": {"trained_on": 150, "micro_f1": 0.6}, "difference": {"value": 0.05, "interval": [0, 0.1]}}
    return {"test_records": 90, "label_sets": sets, "label_sets_real": {"micro_f1": 0.9}}


NOT_ASKED = {"queries": [], "planned_epsilon": 0.0}
STATES = {
    "a clear gain": (against(0.75, 0.04, 0.12), Judgement.HELPS, {}),
    "a clear gain with part of the texts": (
        against(0.592, 0.05, 0.122, synthetic=0.755, texts=100),
        Judgement.HELPS,
        {},
    ),
    "a reference below guessing": (against(0.23, 0.4, 0.6), Judgement.HELPS, {}),
    "no difference": (against(0.83, -0.041, 0.041, texts=300), Judgement.NO_GAIN, {}),
    "nearly as good as real records": (against(0.93, -0.03, 0.01, synthetic=0.92), Judgement.NO_GAIN, {}),
    "a loss, without real records": (against(0.92, -0.14, -0.04, real=None), Judgement.LOSS, {}),
    "below guessing": (against(0.3, -0.1, -0.05, synthetic=0.2), Judgement.BELOW_GUESSING, {}),
    "near guessing": (measured(0.27), Judgement.UNCLEAR, {}),
    "not compared": (measured(), Judgement.NOT_COMPARED, {}),
    "no hospital asked": (measured(), Judgement.NOT_COMPARED, NOT_ASKED),
    "real records as guessing": (measured(0.6, real=0.25), Judgement.NOT_COMPARED, {}),
    "one label": (measured(1.0, majority=1.0), Judgement.ONE_LABEL, {}),
    "guessing unknown": ({"synthetic": {"accuracy": 0.5}}, Judgement.GUESSING_UNKNOWN, {}),
    "not a number": (measured(float("nan")), Judgement.NOT_MEASURED, {}),
    "nothing": ({}, Judgement.NOT_MEASURED, {}),
    "counted by hospitals": ({"federated": {"accuracy": {"value": 0.71}}}, Judgement.NOT_MEASURED, {}),
    "count drowned": ({"federated": {"accuracy": {"value": None, "reason": "few"}}}, Judgement.NOT_MEASURED, {}),
    "several labels": (label_sets(), Judgement.NO_GAIN, {}),
    "no guarantee": (measured(), Judgement.NOT_COMPARED, NOTHING),
    "nearer": (near(), Judgement.HELPS, {}),
    "further off": (near(difference={"value": -0.1, "interval": [-0.15, -0.05]}), Judgement.LOSS, {}),
    "as near": (near(difference={"value": 0.01, "interval": [-0.05, 0.07]}), Judgement.NO_GAIN, {}),
    "near, not compared": (near(difference=None, zero_shot=None), Judgement.NOT_COMPARED, {}),
    "near, no hospital asked": (near(difference=None, zero_shot=None), Judgement.NOT_COMPARED, NOT_ASKED),
    "distance unknown": (near(fid={"value": None, "reason": "few"}), Judgement.NOT_MEASURED, {}),
}
"""Metrics of each kind of run, what follows from them, and the run's privacy."""


def quality_of(metrics):
    return read_quality(Metrics(content=metrics))


def judged(metrics, *, texts=40, weaknesses=0, noise=False, **changes):
    promised = guarantee_card(privacy(**changes))
    return reach_verdict(promised, quality_of(metrics), texts=texts, weaknesses=weaknesses, noise=noise)


@pytest.mark.parametrize(("metrics", "judgement", "changes"), STATES.values(), ids=STATES)
def test_a_verdict_follows_from_the_intervals(metrics, judgement, changes):
    verdict = judged(metrics, **changes)
    assert verdict.judgement is judgement
    assert verdict.sentence.startswith("No guarantee") == (changes == NOTHING)
    assert verdict.simulation_only == ("nearness" not in metrics and quality_of(metrics).real is not None)


def test_the_sentences_of_all_verdicts():
    verdicts = {name: [judged(metrics, **changes)] for name, (metrics, _, changes) in STATES.items()}
    verdicts |= {f"weaknesses: {number}": [judged(measured(), weaknesses=number)] for number in (1, 2)}
    verdicts["no texts"] = [judged(measured() | {"synthetic": None}, texts=0, **NOTHING)]
    screen = under_headings({name: [verdict.sentence for verdict in of] for name, of in verdicts.items()})
    assert_accepted(screen, Path(__file__).parent / "screens" / "verdicts.txt")


@pytest.mark.parametrize("metrics", [near(), against(0.75, 0.04, 0.12)])
def test_a_gain_is_that_of_the_answers_only_if_the_votes_were_above_their_noise(metrics):
    assert judge(quality_of(metrics)) is Judgement.HELPS
    assert judge(quality_of(metrics), noise=True) is Judgement.NOISE


def test_half_way_to_real_records_and_below_the_same_models_alone_is_never_called_usable(tmp_path):
    """A census at ε = 4 had 59.0 % where no votes had 62.7 %, and the headline was "usable"."""
    run = write_run(tmp_path / "run")
    metrics = against(0.627, -0.08, 0.006, synthetic=0.59, real=0.85, majority=0.2)
    (run / "metrics.json").write_text(json.dumps(metrics))
    facts = gather(run).to_json()
    assert facts["verdict"]["judgement"] == Judgement.NO_GAIN
    assert "usable" not in facts["verdict"]["sentence"]
    assert any("no clear gain" in weakness["what"] for weakness in facts["weaknesses"])


def bar_values(metrics):
    return [
        (bar.name, bar.value, bar.interval, bar.simulation_only) for bar in draw_bars(Metrics(content=metrics)).rows
    ]


def test_each_figure_of_the_verdict_has_its_bar_with_its_interval():
    metrics = against(0.592, 0.05, 0.122, synthetic=0.755, texts=100)
    metrics["zero_shot"]["accuracy"]["interval"] = [0.55, 0.63]
    metrics["zero_shot"]["as_many"] = {"accuracy": {"value": 0.678, "interval": [0.64, 0.71]}}
    metrics |= {"utility": as_many(0.755, 960), "utility_real": as_many(0.94, 900)}
    assert bar_values(metrics) == [
        ("100 synthetic texts", 0.678, (0.64, 0.71), False),
        (f"100 texts of {WITHOUT}", 0.592, (0.55, 0.63), False),
        ("960 synthetic texts", 0.755, (0.1, 1.0), False),
        ("900 private records", 0.94, (0.1, 1.0), True),
        ("nothing: always the most frequent label", 0.25, None, False),
    ]


def test_without_labels_the_bars_are_distances():
    made = draw_bars(Metrics(content=near()))
    assert [(bar.value, bar.interval, bar.simulation_only) for bar in made.rows] == [
        (0.564, (0.54, 0.58), False),
        (0.64, (0.6, 0.68), False),
        (0.24, (0.22, 0.26), False),
    ]
    assert (made.shares, made.top) == (False, 0.68)
    zero = {"nearness": {"fid": {"value": 0.0}, "real": {"value": 0.0}, "texts": 9}}
    assert draw_bars(Metrics(content=zero)).top > 0


def test_without_labels_the_table_says_why_there_is_no_accuracy():
    table = read_utility(Metrics(content=near() | {"utility": {"value": None, "reason": "no labels"}}))
    assert (table.measure, [row.role for row in table.rows]) == ("distance", [Role.ALL, Role.WITHOUT, Role.REAL])
    assert table.notes == ("No accuracy: no labels.",)


def test_the_bars_name_the_file_of_a_later_evaluation():
    assert "400 real texts a" in draw_bars(Metrics(content=measured())).caption
    assert "400 real texts (other.csv) a" in draw_bars(Metrics(content=measured() | {"test": "other.csv"})).caption


def test_accuracies_prefer_the_mean_of_several_trainings_and_drop_what_is_no_number():
    detailed = {"utility": {"accuracy": {"value": 0.8, "interval": [0.7, 0.9]}}}
    assert quality_of(measured() | detailed) == Quality(
        synthetic=0.8, interval=(0.7, 0.9), trained_on=960, real=0.94, majority=0.25, tested=400
    )
    broken = {"synthetic": "x", "utility": {"accuracy": {"value": 0.8}}, "test_records": "many"}
    assert quality_of(broken) == Quality(synthetic=0.8)
    assert quality_of({"majority_class": 1, "real_private": {"accuracy": "high"}}) == Quality()


def as_many(accuracy, trained_on, **more):
    return {"accuracy": {"value": accuracy, "interval": [0.1, 1.0]}, "trained_on": trained_on, **more}


def rows(metrics):
    return [(row.role, row.texts, row.accuracy.value) for row in read_utility(Metrics(content=metrics)).rows]


def test_utility_is_one_table_with_the_number_of_training_texts():
    metrics = measured() | {"utility": as_many(0.83, 960), "utility_real": as_many(0.9, 500)}
    metrics |= {"definition": "A model.", "utility_encoder": as_many(0.85, 960, definition="Vectors.")}
    metrics |= {"federated": {"accuracy": {"value": 0.7, "interval": [0.6, 0.8], "rows": 850}}}
    assert rows(metrics) == [
        (Role.ALL, 960, 0.83),
        (None, 500, 0.9),
        (Role.REAL, 900, 0.94),
        (Role.GUESSING, 0, 0.25),
        (None, 960, 0.85),
        (Role.COUNTED, 960, 0.7),
    ]
    made = read_utility(Metrics(content=metrics))
    assert [row.simulation_only for row in made.rows] == [False, True, True, False, False, False]
    assert made.notes == ("The classifier: A model.", "The second classifier: Vectors.")
    assert made.rows[-1].tested == 850
    assert read_utility(Metrics()).to_json() == {"rows": [], "notes": [], "measure": "accuracy"}


def test_the_table_of_utility_has_as_many_texts_of_either_kind():
    metrics = against(0.75, 0.04, 0.12, texts=300)
    metrics["zero_shot"]["as_many"] = {"accuracy": {"value": 0.8}}
    assert rows(metrics)[:3] == [(Role.AS_MANY, 300, 0.8), (Role.WITHOUT, 300, 0.75), (Role.ALL, 960, 0.83)]
    assert rows(against(0.75, 0.04, 0.12))[:2] == [(Role.ALL, 960, 0.83), (Role.WITHOUT, 960, 0.75)]


def test_texts_with_several_labels_have_micro_f1_in_the_table():
    assert rows(label_sets()) == [
        (Role.AS_MANY, 150, 0.65),
        (Role.WITHOUT, 150, 0.6),
        (Role.ALL, 300, 0.7),
        (Role.REAL, None, 0.9),
        (Role.GUESSING, 0, 0.4),
    ]
    made = read_utility(Metrics(content=label_sets()))
    assert made.measure == "micro F1"
    assert [row.simulation_only for row in made.rows] == [False, False, False, True, False]


def test_real_records_of_one_number_or_of_other_test_texts_are_not_shown_twice():
    same = measured() | {"utility": as_many(0.83, 960), "utility_real": as_many(0.93, 900)}
    assert rows(same)[1:3] == [(Role.REAL, 900, 0.93), (Role.GUESSING, 0, 0.25)]
    later = measured(real=None) | {"utility": as_many(0.8, 960, test="own.csv"), "utility_real": as_many(0.9, 960)}
    assert [role for role, _, _ in rows(later | {"test": "own.csv"})] == [Role.ALL, Role.GUESSING]
    earlier = measured(real=None) | {"utility_real": as_many(0.9, None)} | {"real_private": {"records": 900}}
    assert [texts for _, texts, _ in rows(earlier)][1:3] == [900, 0]


def test_a_figure_without_a_value_has_its_reason():
    reason = {"value": None, "reason": "evaluation.embedding is an endpoint"}
    row = read_utility(Metrics(content=measured(real=None) | {"utility_real": reason})).rows[1]
    assert (row.accuracy.value, row.reason) == (None, "evaluation.embedding is an endpoint")


FLU = {"label": "flu", "model": "m", "round": 1}
TEXTS = [Candidate(**FLU, text="one two three"), Candidate(**FLU, text="one", weight=3.0)]


def labelled(metrics, *, simulation=True, rounds=()):
    run, promised = summary(labels={"cold": "", "flu": ""}), privacy(simulation=simulation)
    return list_labels(run, promised, rounds, Metrics(content=metrics), TEXTS).to_json()


def test_labels_have_real_counts_in_a_simulation_alone():
    metrics = {"label_shares": {"count": 12, "records": {"cold": 0.25, "flu": 0.75}}}
    made = labelled(metrics)
    assert (made["records"], made["simulation_only"]) == ("counted", True)
    assert [(row["label"], row["texts"], row["share"], row["words"], row["records"]) for row in made["rows"]] == [
        ("cold", 0, 0.0, None, 3),
        ("flu", 2, 1.0, 2.0, 9),
    ]
    older = {"label_shares": {"records": {"flu": 1.0}}, "real_private": {"records": 7}}
    assert [row["records"] for row in labelled(older)["rows"]] == [0, 7]
    deployed = labelled(metrics, simulation=False)
    assert deployed["records"] is None
    assert all(row["records"] is row["record_share"] is None for row in deployed["rows"])


def test_labels_have_the_methods_noised_shares_in_a_deployment():
    made = labelled({}, simulation=False, rounds=[report_of(1, shares={"flu": 0.6, "cold": 0.4})])
    assert (made["records"], made["simulation_only"]) == ("noised", False)
    assert [(row["records"], row["record_share"]) for row in made["rows"]] == [(None, 0.4), (None, 0.6)]


def test_the_page_and_report_json_begin_with_them(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "metrics.json").write_text(json.dumps(measured() | {"label_shares": {"records": {"sepsis": 1.0}}}))
    page, facts = report(run), json.loads((run / "report.json").read_text("utf-8"))
    assert all(part in page.text for part in facts["verdict"]["short"].split(": "))
    assert facts["verdict"]["accuracy"] == {
        "measure": "accuracy",
        "synthetic": 0.83,
        "interval": None,
        "trained_on": 960,
        "zero_shot": None,
        "released": None,
        "gain": None,
        "real": 0.94,
        "majority": 0.25,
        "tested": 400,
        "unit": "texts",
    }
    assert facts["guarantee"]["reader"] in page.text
    assert [row["label"] for row in facts["labels"]["rows"]] == ["pneumonia", "sepsis"]
    assert facts["labels"]["rows"][1]["records"] == 900
    assert facts["labels"]["rows"][1]["recall"] is None
    assert "recall" not in page.text
    assert "Versions and settings" in page.text
    first, rest = (
        page.text.index(facts["verdict"]["short"].partition(": ")[2]),
        page.text.index("The guarantee in full"),
    )
    assert first < page.text.index("Whoever reads the texts") < rest


def test_the_first_screen_says_what_was_run_for_whom(tmp_path):
    run = write_run(tmp_path / "run")
    assert "Recipient" not in report(run).text  # of an earlier version
    about = {
        "started": "2026-11-24",
        "models": ["urban", "rural"],
        "encoder": "minilm",
        "purpose": "training <nurses>",
        "recipient": "a school",
        "hospitals": ["St. Mary", "St. Luke"],
    }
    (run / "run.json").write_text(json.dumps(summary_json(**about)))
    page = report(run)
    first = page.text[: page.text.index("What it cost")]
    for sentence in ("wasp, begun on 2026-11-24", "urban, rural", "minilm", "training <nurses>", "St. Mary, St. Luke"):
        assert sentence in first


def test_labels_have_the_recall_of_the_classifier_where_it_was_measured(tmp_path):
    run = write_run(tmp_path / "run")
    metrics = measured()
    metrics["synthetic"]["confusion"] = {"sepsis": {"sepsis": 5, "pneumonia": 3}, "flu": {"flu": 2}}
    (run / "metrics.json").write_text(json.dumps(metrics))
    page = report(run)
    assert "recall\n" in page.text
    assert "62.5 %" in page.text
    rows = json.loads((run / "report.json").read_text("utf-8"))["labels"]["rows"]
    assert {row["label"]: row["recall"] for row in rows} == {"pneumonia": None, "sepsis": 0.625}


@pytest.mark.parametrize("changes", [NOTHING, NOTHING | {"queries": []}, {"unproven": ["seeds"], "epsilon": "inf"}])
def test_without_a_guarantee_page_and_report_json_say_so_everywhere(tmp_path, changes):
    spent = {"epsilon": "inf", "queries_asked": 2, "queries_planned": 2}
    more = {"against_colluders": [], "spent": spent, "proven_epsilon": "inf"}
    run = write_run(tmp_path / "run", **more | changes)
    page, facts = report(run), gather(run).to_json()
    assert facts["verdict"]["sentence"].startswith("No guarantee: ε = ∞")
    assert facts["verdict"]["guarantee"] == facts["guarantee"]["title"] == "No guarantee: ε = ∞"
    assert page.text.count("No guarantee: ε = ∞") == page.text.count("No guarantee (ε = ∞)") == 1
    assert "δ = 1e-5 for one record" not in page.text


def test_beside_bars_the_verdict_is_short(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "metrics.json").write_text(json.dumps(against(0.75, 0.04, 0.12)))
    page, said = report(run), gather(run).to_json()["verdict"]
    sentence, short = said["sentence"], said["short"]
    assert "with real records" in sentence
    assert "with real records" not in short
    assert sentence.startswith(short.partition(". ")[0])
    assert "with real records" not in page.text.partition("Is it safe?")[0]
