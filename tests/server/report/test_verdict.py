"""What the first screen says of every kind of run: the figures, their bars and the verdict."""

import json
from pathlib import Path

import pytest

from server.documents.metrics import Metrics
from server.domain import Candidate
from server.guarantee.words import guarantee_card
from server.report.facts import gather
from server.report.labels import list_labels
from server.report.quality import BETTER, UNCLEAR, WORSE, Quality, read_quality, read_utility
from server.report.verdict import Judgement, draw_bars, judge, reach_verdict
from tests.support.documents import edit, privacy, report_of, summary, write_run
from tests.support.pages import report
from tests.support.screens import assert_accepted, under_headings

SCREENS = Path(__file__).parent / "screens"
NOTHING = {"epsilon": "inf", "planned_epsilon": "inf"}
NOT_ASKED = {"queries": [], "planned_epsilon": 0.0}


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


def group(accuracy, trained_on, **more):
    return {"accuracy": {"value": accuracy, "interval": [0.1, 1.0]}, "trained_on": trained_on, **more}


def several_trainings(**more):
    """Metrics of whole sets, and of the same number of private records."""
    return measured() | {"utility": group(0.83, 960), "utility_real": group(0.9, 500)} | more


PART = against(0.592, 0.05, 0.122, synthetic=0.755, texts=100)
STATES = {
    "a clear gain": (against(0.75, 0.04, 0.12), Judgement.HELPS, {}),
    "a clear gain with part of the texts": (PART, Judgement.HELPS, {}),
    "a reference below guessing": (against(0.23, 0.4, 0.6), Judgement.HELPS, {}),
    "a reference that says one label": (against(0.25, 0.4, 0.6), Judgement.HELPS, {}),
    "no difference": (against(0.83, -0.041, 0.041, texts=300), Judgement.NO_GAIN, {}),
    "nearly as good as real records": (against(0.93, -0.03, 0.01, synthetic=0.92), Judgement.NO_GAIN, {}),
    "a loss, without real records": (against(0.92, -0.14, -0.04, real=None), Judgement.LOSS, {}),
    "below guessing": (against(0.3, -0.1, -0.05, synthetic=0.2), Judgement.BELOW_GUESSING, {}),
    "near guessing": (measured(0.27), Judgement.UNCLEAR, {}),
    "not compared": (measured(), Judgement.NOT_COMPARED, {}),
    "no hospital asked": (measured(), Judgement.NOT_COMPARED, NOT_ASKED),
    "real records as guessing": (measured(0.6, real=0.25), Judgement.NOT_COMPARED, {}),
    "one label": (measured(1.0, majority=1.0), Judgement.ONE_LABEL, {}),
    "sections": (against(0.5, 0.05, 0.15, texts=30) | {"sections": {"words": 90.0}}, Judgement.HELPS, {}),
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

COUNTED = {"accuracy": {"value": 0.7, "interval": [0.6, 0.8], "rows": 850}}
REASON = {"value": None, "reason": "evaluation.embedding is an endpoint"}
MEASUREMENTS = {
    "a part of the texts": PART | {"zero_shot": PART["zero_shot"] | {"as_many": group(0.678, 100)}},
    "as many": against(0.75, 0.04, 0.12),
    "several labels": label_sets(),
    "distances": near(utility={"value": None, "reason": "no labels"}) | {"utility": {"reason": "no labels"}},
    "distances of 0": {"nearness": {"fid": {"value": 0.0}, "real": {"value": 0.0}, "texts": 9}},
    "several trainings": several_trainings(definition="A model.", utility_encoder=group(0.8, 9, definition="Vectors.")),
    "counted by hospitals": measured() | {"federated": COUNTED},
    "counted alone": {"federated": COUNTED},
    "as many real records": several_trainings(utility_real=group(0.93, 900)),
    "other test texts": several_trainings(test="own.csv", utility=group(0.8, 960, test="own.csv"), real_private=None),
    "an earlier version": measured(real=None) | {"utility_real": group(0.9, None), "real_private": {"records": 900}},
    "a reason": measured(real=None) | {"utility_real": REASON},
    "sections": against(0.5, 0.05, 0.15, texts=30) | {"sections": {"order_distance": 0.1}},
    "nothing": {},
}
"""Metrics of each form that the table of classifiers has."""


def quality_of(metrics):
    return read_quality(Metrics(content=metrics))


def judged(metrics, *, texts=40, weaknesses=0, noise=False, **changes):
    promised = guarantee_card(privacy(**changes))
    return reach_verdict(promised, quality_of(metrics), texts=texts, weaknesses=weaknesses, noise=noise)


@pytest.mark.parametrize(("metrics", "judgement", "changes"), STATES.values(), ids=STATES)
def test_verdict_of_metrics_follows_from_the_intervals(metrics, judgement, changes):
    verdict = judged(metrics, **changes)
    assert verdict.judgement is judgement
    assert verdict.sentence.startswith("No guarantee") == (changes == NOTHING)
    assert verdict.simulation_only == ("nearness" not in metrics and quality_of(metrics).real is not None)


def test_verdict_of_each_state_is_worded_as_accepted():
    verdicts = {name: [judged(metrics, **changes)] for name, (metrics, _, changes) in STATES.items()}
    verdicts |= {f"weaknesses: {number}": [judged(measured(), weaknesses=number)] for number in (1, 2)}
    verdicts["no texts"] = [judged(measured() | {"synthetic": None}, texts=0, **NOTHING)]
    screen = under_headings({name: [verdict.sentence for verdict in of] for name, of in verdicts.items()})
    assert_accepted(screen, SCREENS / "verdicts.txt")


@pytest.mark.parametrize("metrics", [near(), against(0.75, 0.04, 0.12)])
def test_verdict_of_a_gain_names_the_answers_only_if_votes_were_above_their_noise(metrics):
    assert judge(quality_of(metrics)) is Judgement.HELPS
    assert judge(quality_of(metrics), noise=True) is Judgement.NOISE


def lines_of(metrics):
    """The table, the notes below it and the bars, as lines."""
    table, bars = read_utility(Metrics(content=metrics)), draw_bars(Metrics(content=metrics))
    yield f"{table.measure}: {bars.title}. {bars.caption}; {bars.over}; top {bars.top:g}; missing: {bars.missing}"
    for row in table.rows:
        mark = ", simulation only" if row.simulation_only else ""
        tests = f"{row.tested} {row.tested_on}{mark}; reason: {row.reason}"
        yield f"row ({row.role}): {row.trained_on}, {row.texts}: {row.accuracy.value} {row.accuracy.interval}, {tests}"
    yield from (f"note: {note}" for note in table.notes)
    for bar in bars.rows:
        yield f"bar: {bar.name}, {bar.value} {bar.interval}{', simulation only' if bar.simulation_only else ''}"


def test_figures_and_bars_of_each_measurement_are_those_accepted():
    screen = under_headings({name: lines_of(metrics) for name, metrics in MEASUREMENTS.items()})
    assert_accepted(screen, SCREENS / "figures.txt")


def test_quality_of_several_trainings_is_their_mean_and_of_what_is_no_number_unknown():
    detailed = {"utility": {"accuracy": {"value": 0.8, "interval": [0.7, 0.9]}}}
    assert quality_of(measured() | detailed) == Quality(
        synthetic=0.8, interval=(0.7, 0.9), trained_on=960, real=0.94, majority=0.25, tested=400
    )
    broken = {"synthetic": "x", "utility": {"accuracy": {"value": 0.8}}, "test_records": "many"}
    assert quality_of(broken) == Quality(synthetic=0.8)
    assert quality_of({"majority_class": 1, "real_private": {"accuracy": "high"}}) == Quality()


@pytest.mark.parametrize(
    ("synthetic", "tested", "said"),
    [(0.3, 200, BETTER), (0.19, 200, UNCLEAR), (0.1, 200, WORSE), (0.1, 20, UNCLEAR), (0.1, None, UNCLEAR)],
)
def test_quality_is_worse_than_guessing_only_if_its_whole_interval_is_below_it(synthetic, tested, said):
    assert Quality(synthetic=synthetic, majority=0.2, tested=tested).against_guessing == said


FLU = {"label": "flu", "model": "m", "round": 1}
TEXTS = [Candidate(**FLU, text="one two three"), Candidate(**FLU, text="one", weight=3.0)]
COLD_AND_FLU = {"label_shares": {"count": 12, "records": {"cold": 0.25, "flu": 0.75}}}
EARLIER = {"label_shares": {"records": {"flu": 1.0}}, "real_private": {"records": 7}}


@pytest.mark.parametrize(
    ("metrics", "shares", "source", "records", "record_shares"),
    [
        (COLD_AND_FLU, {}, "counted", [3, 9], [0.25, 0.75]),
        (EARLIER, {}, "counted", [0, 7], [0, 1]),
        (COLD_AND_FLU, {}, None, [None, None], [None, None]),
        ({}, {"flu": 0.6, "cold": 0.4}, "noised", [None, None], [0.4, 0.6]),
    ],
    ids=["simulation", "earlier version", "deployment", "deployment with noised answers"],
)
def test_labels_of_records_are_counted_in_a_simulation_alone(metrics, shares, source, records, record_shares):
    run, promised = summary(labels={"cold": "", "flu": ""}), privacy(simulation=source == "counted")
    made = list_labels(run, promised, [report_of(1, shares=shares)], Metrics(content=metrics), TEXTS)
    assert (made.records, made.simulation_only) == (source, source == "counted")
    assert [(row.label, row.texts, row.share, row.words) for row in made.rows] == [
        ("cold", 0, 0.0, None),
        ("flu", 2, 1.0, 2.0),
    ]
    assert [row.records for row in made.rows] == records
    assert [row.record_share for row in made.rows] == record_shares


def test_page_begins_with_a_short_verdict_and_the_labels(run):
    edit(run, "metrics.json", **against(0.75, 0.04, 0.12))
    edit(run, "metrics.json", label_shares={"records": {"sepsis": 1.0}})
    page, facts = report(run), json.loads((run / "report.json").read_text("utf-8"))
    sentence, short = facts["verdict"]["sentence"], facts["verdict"]["short"]
    assert all(part in page.text for part in short.split(": "))
    assert ("with real records" in sentence) > ("with real records" in short)
    assert "with real records" not in page.text.partition("Is it safe?")[0]
    assert page.text.index(short.partition(": ")[2]) < page.text.index("Everyone who reads the texts")
    assert page.text.index(facts["guarantee"]["reader"]) < page.text.index("The guarantee in full")
    assert [(row["label"], row["records"]) for row in facts["labels"]["rows"]] == [("pneumonia", 0), ("sepsis", 900)]
    assert "recall" not in page.text


def test_page_says_what_was_run_for_whom(run):
    assert "Recipient" not in report(run).text  # of an earlier version
    about = {"started": "2026-11-24", "models": ["urban", "rural"], "encoder": "minilm", "recipient": "a school"}
    hospitals = ["St. Mary", "St. Luke"]
    page = report(edit(run, "run.json", **about, purpose="training <nurses>", hospitals=hospitals))
    first = page.text[: page.text.index("What it cost")]
    for fact in (
        "begun on 2026-11-24",
        "urban, rural",
        "minilm",
        "training <nurses>",
        "a school",
        "St. Mary, St. Luke",
    ):
        assert fact in first


@pytest.mark.parametrize("changes", [NOTHING, NOTHING | {"queries": []}, {"unproven": ["seeds"], "epsilon": "inf"}])
def test_page_without_a_guarantee_says_so_everywhere(tmp_path, changes):
    spent = {"epsilon": "inf", "queries_asked": 2, "queries_planned": 2}
    more = {"against_colluders": [], "spent": spent, "proven_epsilon": "inf"}
    run = write_run(tmp_path / "run", **more | changes)
    page, facts = report(run), gather(run).to_json()
    assert facts["verdict"]["sentence"].startswith("No guarantee: ε = ∞")
    assert facts["verdict"]["guarantee"] == facts["guarantee"]["title"] == "No guarantee: ε = ∞"
    assert page.text.count("No guarantee: ε = ∞") == page.text.count("No guarantee (ε = ∞)") == 1
    assert "δ = 1e-5 for one record" not in page.text
