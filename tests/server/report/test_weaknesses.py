"""Each weakness of a run that has it, and of one that has not."""

import ast
import inspect
import itertools
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from common.domain import UNLABELLED
from server.documents.metrics import Metrics
from server.documents.weaknesses import Weakness
from server.domain import Candidate
from server.llm.base import advice_on
from server.llm.clean import DROPPING
from server.planning.signal import FEWER_CANDIDATES
from server.report import weak_labels
from server.report import weaknesses as weaknesses_module
from server.report.facts import gather
from server.report.vote_distributions import Votes
from server.report.weaknesses import read_weaknesses, votes_above_forecast, votes_were_noise, weaknesses
from server.report.write import write_report
from tests.support.documents import privacy, privacy_json, report_of, summary, write_run
from tests.support.pages import Page

LABELS = {"sepsis": "an infection of the blood", "flu": ""}
TEXTS = [
    Candidate.from_json({"text": f"Note {at}.", "label": ["sepsis", "flu"][at % 2], "model": "m", "round": 1})
    for at in range(40)
]


def line(number, **changes):
    plain = {"requested": {"m": 20}, "lost": {"m": 0}, "candidates": 40, "fid": 1.0, "fid_error": 0.02}
    return report_of(number + 1, **plain | changes)


def weaknesses_of(*, run=None, rounds=(), votes=(), metrics=None, texts=TEXTS, share_noise=0.0, **changes):
    """What is weakness of a run that is fine in all else."""
    made = weaknesses(
        summary(**{"labels": LABELS, "warnings": {}} | (run or {})),
        privacy=privacy(**{"simulation": True} | changes),
        rounds=rounds,
        metrics=Metrics(content=metrics or {}),
        texts=texts,
        votes=votes,
        share_noise=share_noise,
    )
    return [str(weakness) for weakness in made]


def scored(accuracy, *, majority=0.5, tested=100):
    return {
        "test_records": tested,
        "synthetic": {"accuracy": accuracy},
        "majority_class": {"accuracy": majority},
    }


def test_a_run_without_figures_has_no_weaknesses():
    assert weaknesses_of() == weaknesses_of(texts=[]) == []


def test_accuracy_below_the_majority_class():
    (weakness,) = weaknesses_of(metrics=scored(0.11, majority=0.27), rounds=[line(0)])
    assert weakness == (
        "accuracy 0.11 on 100 test texts is below the share of the most frequent label, 0.27: the texts teach less "
        "than guessing; describe the labels (task.labels: 1 of 2 have no description), try method=census (now "
        "wasp), write more than these 40 texts (method.samples) or take larger language models (now m)"
    )
    (weakness,) = weaknesses_of(metrics=scored(0.58))
    assert "not clearly above the share of the most frequent label, 0.50: the texts may teach no more than" in weakness
    assert "; test on more texts (task.test), describe the labels" in weakness
    described = {"method": "census", "labels": {"sepsis": "blood", "flu": "influenza"}}
    (weakness,) = weaknesses_of(run=described, metrics=scored(0.3))
    assert weakness.endswith("; write more than these 40 texts (method.samples) or take larger language models")


@pytest.mark.parametrize(
    "metrics",
    [scored(0.61), scored(0.58, tested=400), scored(1.0, majority=1.0), {"synthetic": {"accuracy": 0.1}}],
    ids=["above", "above with more tests", "one label", "older folder"],
)
def test_accuracy_clearly_above_it(metrics):
    assert weaknesses_of(metrics=metrics) == []


@pytest.mark.parametrize(
    ("sections", "noun"), [(None, "labels"), ([{"start": 0, "end": 1, "heading": "flu"}], "sections")]
)
def test_labels_of_texts_that_have_several_are_not_counted_as_texts(sections, noun):
    given = {"text": "Note.", "labels": ["flu", "sepsis"], "model": "m", "round": 1}
    texts = [replace(Candidate.from_json(given), sections=sections) for _ in range(100)]
    shares = {"label_shares": {"count": 400, "records": {"flu": 0.1, "sepsis": 0.1, "cold": 0.8}}}
    labels = dict.fromkeys(("flu", "sepsis", "cold", "cough"), "x")
    said = weaknesses_of(metrics=shares, texts=texts, run={"labels": labels})
    assert any(f"flu has 100 of 200 {noun} of texts (50%) for 10% of the {noun} of records" in line for line in said)
    assert any(f"80% of the {noun} of records" in line for line in said)
    assert not any("% of the texts" in line or "200 texts" in line for line in said)


@pytest.mark.parametrize(("right", "poor"), [(4, True), (20, False), (12, False)])
def test_a_label_that_is_recognised_far_less_often_than_the_others_beyond_chance(right, poor):
    row = {"a": {"a": 36, "b": 4}, "b": {"b": 35, "a": 5}, "rare": {"b": 9}, "c": {"c": right, "a": 40 - right}}
    metrics = {"synthetic": {"accuracy": 0.8, "confusion": row}}
    said = [line for line in weaknesses_of(metrics=metrics) if "recognises" in line]
    assert bool(said) == poor
    if poor:
        assert "in the mean, 62%: c 10%" in said[0]


def compared(low, high, **more):
    """Metrics in which the difference to the same models without the hospitals has this interval."""
    difference = {"value": (low + high) / 2, "interval": [low, high]}
    group = {"trained_on": 40, "accuracy": {"value": 0.8}, "difference": difference}
    return scored(0.8) | {"zero_shot": group} | more


def test_no_clear_gain_over_the_same_models_without_the_hospitals():
    (weakness,) = weaknesses_of(metrics=compared(-0.02, 0.06))
    assert weakness == (
        "no clear gain over the same models without the hospitals (difference 2 points, 95 % interval −2 to 6, with 40 "
        "texts of each); it takes more test texts (task.test, now 100), more texts (method.samples), more "
        "records, a larger epsilon (now 4) or method=census"
    )
    (weakness,) = weaknesses_of(metrics=compared(-0.1, -0.02), planned_epsilon="inf", run={"method": "census"})
    assert weakness.startswith(
        "a clear loss of 6 points (95 % interval 2 to 10, with 40 texts of each) against the same "
    )
    assert weakness.endswith("; it takes other language models (llm)")
    assert weaknesses_of(metrics=compared(0.01, 0.1)) == []


def test_texts_that_teach_less_than_the_released_numbers_know():
    def of(value, low, high, **more):
        gap = {"value": value, "interval": [low, high]}
        return scored(0.8) | {"released_classifier": {"accuracy": 0.9, "gap": gap, "learned_from": 40}} | more

    (weakness,) = weaknesses_of(metrics=of(0.1, 0.05, 0.15, utility_with_transfer={"accuracy": {"value": 0.85}}))
    assert weakness.startswith("a linear classifier of the texts' vectors is 10 points (95 % interval 5 to 15) below ")
    assert "(caucus-coordinator classifier), train with transfer.jsonl too (85 %) or write more" in weakness
    assert weaknesses_of(metrics=of(0.1, -0.01, 0.21)) == []
    assert weaknesses_of(metrics=of(0.02, 0.01, 0.03)) == []
    assert weaknesses_of(metrics=of(0.1, 0.05, 0.15, test="later.csv")) == []


def test_fid_that_rises_by_more_than_its_error():
    rounds = [line(0, fid=0.9), line(1, fid=0.8), line(2, fid=0.86)]
    (weakness,) = weaknesses_of(rounds=rounds)
    assert weakness == (
        "FID rises: 0.86 after round 3, 0.8 after round 2, and lower is nearer to real texts; stop there "
        "(method.rounds=2, now 3), more records, a larger epsilon (now 4) or method=census"
    )
    (weakness,) = weaknesses_of(rounds=rounds, planned_epsilon="inf")
    assert weakness.endswith("; stop there (method.rounds=2, now 3)")
    (weakness,) = weaknesses_of(rounds=[line(0), line(1, fid=1.1)], queries=[])
    assert weakness.endswith("; take another encoder (embedding) or other language models (llm)")


@pytest.mark.parametrize(
    "rounds",
    [
        [line(0, fid=0.8), line(1, fid=0.85)],
        [line(0, fid=0.9), line(1, fid=0.8)],
        [line(0, fid=0.8, candidates=80), line(1, fid=0.9)],
        [line(0, fid=0.8, fid_error=None), line(1, fid=0.9)],
        [line(0, fid=None, fid_error=None)],
        [line(0)],
    ],
    ids=["within the error", "falls", "fewer texts", "no error", "not measured", "one round"],
)
def test_fid_that_does_not(rounds):
    assert weaknesses_of(rounds=rounds) == []


WARNING = "votes will be noise: 0.5 votes a candidate against 3 of noise; it takes more records or a larger epsilon"


def vote(spread, *, noise=3.0, candidates=100, query="votes"):
    return Votes(
        query=query,
        direction="nearest",
        round=1,
        candidates=candidates,
        mechanism="gaussian",
        scale=noise,
        spread=spread,
        noise=noise,
        quantiles=(),
        beyond_noise=0.0,
        edges=(),
        counts=(),
        open_end=False,
    )


def test_votes_below_noise_are_said_once_by_what_was_measured():
    noise = [vote(3.1), vote(3.2)]
    (weakness,) = weaknesses_of(votes=noise, run={"warnings": {"votes": WARNING}})
    assert weakness == (
        "votes were noise: 200 noised numbers spread by 3.2 votes, and noise alone by 3; it takes more records or a "
        "larger epsilon"
    )
    (unforeseen,) = weaknesses_of(votes=noise)
    assert unforeseen.endswith(
        "; it takes more records, a larger epsilon (now 4), method=census or fewer candidates (method.samples)"
    )


def test_votes_above_noise_take_back_the_warning():
    assert weaknesses_of(votes=[vote(3.5)], run={"warnings": {"votes": WARNING}}) == []
    run = summary(warnings={"votes": WARNING})
    assert votes_above_forecast(run, [vote(3.5), vote(9.0, query="others")]) == ["votes"]
    assert votes_above_forecast(run, [vote(3.1)]) == []
    assert weaknesses_of(votes=[vote(3.0), vote(6.0, candidates=60)]) == []


def test_a_warning_without_votes_stays():
    assert weaknesses_of(run={"warnings": {"votes": WARNING}}) == [WARNING]
    older = [vote(3.0, noise=None)]
    assert weaknesses_of(votes=older, run={"warnings": {"votes": WARNING}}) == [WARNING]


def shares(**of_records):
    return {"label_shares": {"simulation_only": True, "records": of_records}}


def test_labels_of_records_are_a_simulations_figure_and_marked():
    (weakness,) = weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1))
    assert weakness == (
        "labels of texts and records differ by 40%: flu 50% of the texts and 10% of the records, sepsis 50% of the "
        "texts and 90% of the records (simulation only); weigh or draw the texts by the labels' shares before training "
        "or try method=census or dpga (now wasp), which ask how many records have each label"
    )
    assert weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1), simulation=False) == []
    assert weaknesses_of(metrics=shares(sepsis=0.7, flu=0.3)) == []
    weighed = [replace(text, weight={"sepsis": 9.0, "flu": 1.0}[text.label]) for text in TEXTS]
    assert weaknesses_of(metrics=shares(sepsis=0.9, flu=0.1), texts=weighed) == []


@pytest.mark.parametrize(
    "figures", [{"shares": {"sepsis": 0.9, "flu": 0.1}}, {"metadata": {"labels": {"sepsis": 1.0}}}]
)
def test_a_deployment_has_the_released_counts_if_they_are_noised(figures):
    rounds, run = [line(0, **figures), line(1)], {"method": "dpga"}
    (weakness,) = weaknesses_of(run=run, rounds=rounds, simulation=False)
    assert ", by the released, noised counts: flu 50% of the texts and " in weakness
    assert weakness.endswith("; weigh or draw the texts by the labels' shares before training")
    assert "simulation" not in weakness
    assert weaknesses_of(run=run, rounds=rounds, simulation=False, epsilon="inf") == []


KINDS = ("other", *"abcdefg")
CROWDED = [Candidate(text=f"t{at}", label="other", model="m", round=1) for at in range(72)] + [
    Candidate(text=f"u{at}", label=KINDS[1 + at % 7], model="m", round=1) for at in range(177)
]
"""Texts of a newcomer's run: 72 of 249 of a catch-all label, for 13 % of the records."""
OF_RECORDS = {"other": 0.13} | dict.fromkeys("abcdefg", 0.87 / 7)


def test_pairs_of_labels_that_are_worse_than_independent_ones():
    def of(distance):
        return {"label_sets": {"pair_distance": {"value": distance}, "independent": {"value": 0.15}}}

    (weakness,) = weaknesses_of(metrics=of(0.3))
    assert weakness.startswith(
        "pairs of labels in the texts are further from those of the test texts, 0.30, than pairs"
    )
    assert "a larger epsilon (now 4)" in weakness
    assert weaknesses_of(metrics=of(0.1)) == []


def crowded(*, noised=False, **changes):
    known = (
        {"rounds": [line(0, shares=OF_RECORDS)], "simulation": False} if noised else {"metrics": shares(**OF_RECORDS)}
    )
    return weaknesses_of(run={"labels": dict.fromkeys(KINDS, "described"), "method": "census"}, **known, **changes)


def test_a_catch_all_label_with_far_more_texts_than_its_share_supports():
    (weakness,) = crowded(texts=CROWDED)
    assert weakness == (
        "other has 72 of 249 texts (29%) for 13% of the records (simulation only); read some of them, as they may "
        "belong to no label, and describe all labels more closely (task.labels)"
    )
    (weakness,) = crowded(texts=CROWDED, noised=True, share_noise=0.03)
    assert weakness.startswith(
        "other has 72 of 249 texts (29%) for 13% of the records by the released, noised counts; "
    )
    assert crowded(texts=CROWDED[40:]) == crowded(texts=CROWDED, noised=True, share_noise=0.1) == []
    assert crowded(texts=CROWDED, noised=True, epsilon="inf") == []
    weighed = [replace(text, weight=0.4 if text.label == "other" else 1.0) for text in CROWDED]
    assert crowded(texts=weighed) == crowded(texts=CROWDED)  # weights take nothing back: the texts are what is read


def test_labels_that_share_their_texts_as_requested_are_never_crowded():
    assert weaknesses_of(metrics=shares(sepsis=0.7, flu=0.3)) == []
    few = [replace(text, label=KINDS[at % 8]) for at, text in enumerate(TEXTS[:10])]
    assert crowded(texts=few) == []  # of ten texts two of a label are chance


@pytest.mark.parametrize(
    ("numbers", "noise"),
    [
        ({"counts": [30.0, 70.0], "count_noise": 2.5}, 0.025),
        ({"counts": [-5.0, 1.0], "count_noise": 2.5}, 2.5),
        ({"counts": "x"}, 0.0),
    ],
)
def test_the_noise_of_a_released_share_is_that_of_the_census(tmp_path, numbers, noise):
    run = write_run(tmp_path / "run")
    assert gather(run).share_noise == 0
    space = {"labels": ["a", "b"], "sums": [], "noise": 1.0, "softness": 1.0, "radius": 1.0, "basis": "", "centres": ""}
    about = {"run": "r", "plan_digest": "d", "encoder": "e", "privacy": privacy_json()}
    (run / "census.json").write_text(json.dumps(about | space | numbers))
    facts = gather(run)
    assert facts.share_noise == pytest.approx(noise)
    assert ("census.json is not in the format of this program" in facts.problems) == (noise == 0)


def test_labels_without_a_text():
    (weakness,) = weaknesses_of(texts=TEXTS[::2])
    assert weakness == (
        "1 of 2 labels have no text: flu; write more than these 20 texts (method.samples), or describe these labels "
        "(task.labels)"
    )


def test_requested_texts_that_were_lost():
    counts = {"losses": {"m": {"empty": 3}}, "cleaned": {"m": {"duplicates": 9, "quotes": 20}}}
    (weakness,) = weaknesses_of(rounds=[line(0, lost={"m": 12}, **counts)])
    assert weakness == (
        f"12 of 20 requested texts were lost (duplicates: 9, empty: 3); {advice_on('duplicates', 'm')}; or take other "
        "language models (llm)"
    )
    assert weaknesses_of(rounds=[line(0, lost={"m": 2})]) == []
    assert weaknesses_of(rounds=[line(0, lost={"m": 3})])[0].startswith("3 of 20 requested texts were lost; ")


@pytest.mark.parametrize("rule", DROPPING)
def test_each_rule_that_drops_texts_is_among_the_reasons(rule):
    (weakness,) = weaknesses_of(rounds=[line(0, lost={"m": 12}, cleaned={"m": {rule: 9}})])
    assert f"({rule}: 9)" in weakness


@pytest.mark.parametrize(("different", "number", "weak"), [(9, 20, True), (10, 20, False), (1, 19, False)])
def test_texts_most_of_which_repeat_another(different, number, weak):
    texts = [replace(TEXTS[0], text=f"note {at % different}") for at in range(number)]
    found = [weakness for weakness in weaknesses_of(texts=texts) if "are different" in weakness]
    assert bool(found) == weak
    assert not weak or found[0].startswith(f"only {different} of {number} texts are different; give the models more")


POOR = {"a": {"a": 36, "b": 4}, "b": {"b": 35, "a": 5}, "rare": {"b": 9}, "c": {"c": 4, "a": 36}}
"""Answers of a classifier, by label, which hardly knows c."""
REPEATED = [replace(text, text=f"note {at % 9}") for at, text in enumerate(TEXTS)]
FAULTS = {
    "below guessing": {"metrics": scored(0.1)},
    "not above guessing": {"metrics": scored(0.58)},
    "poor label": {"metrics": scored(0.8) | {"synthetic": {"accuracy": 0.8, "confusion": POOR}}},
    "no gain": {"metrics": compared(-0.02, 0.06)},
    "loss": {"metrics": compared(-0.1, -0.02)},
    "gap": {
        "metrics": {
            "released_classifier": {
                "accuracy": 0.9,
                "gap": {"value": 0.1, "interval": [0.05, 0.15]},
                "learned_from": 40,
            }
        }
    },
    "FID rises": {"rounds": [line(0, fid=0.9), line(1, fid=0.8), line(2, fid=0.86)]},
    "votes were noise": {"votes": [vote(3.1)]},
    "votes will be noise": {"run": {"warnings": {"votes": f"votes will be noise; it takes {FEWER_CANDIDATES}"}}},
    "no text of a label": {"texts": TEXTS[::2]},
    "labels differ": {"metrics": shares(sepsis=0.9, flu=0.1)},
    "unlike pairs": {"metrics": {"label_sets": {"pair_distance": {"value": 0.3}, "independent": {"value": 0.15}}}},
    "crowded label": {"metrics": shares(**OF_RECORDS), "texts": CROWDED, "run": {"labels": dict.fromkeys(KINDS, "x")}},
    "lost": {"rounds": [line(0, lost={"m": 12})]},
    "repeated": {"texts": REPEATED},
    "disclosed": {"metrics": {"disclosures": {"found": {"value": 1.0, "interval": [0.9, 1.0]}}}},
}
"""What makes a run have each weakness."""


def together(*faults):
    """All advice of a run with these faults; of two values of a list, the second fault's."""
    changes = {"metrics": {}, "run": {}}
    for fault in faults:
        for name, value in FAULTS[fault].items():
            changes[name] = changes[name] | value if isinstance(value, dict) else value
    return weaknesses_of(**changes)


def directions(advice):
    """Whether each step says to raise a setting (1) or to lower it (-1), for the settings that advice names."""
    for step in re.split(r", (?!now)| or |; ", advice):
        raised = bool(re.search(r"\b(more|larger)\b", step)) - bool(re.search(r"\b(fewer|smaller|stop)\b", step))
        yield from ((name, raised) for name in re.findall(r"\b(?:task|method|llm|federation)\.\w+", step) if raised)


def test_no_two_pieces_of_advice_of_a_run_move_a_setting_in_opposite_directions(monkeypatch):
    places, said = set(), set()

    def noted(**fields):
        said.add((sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno))
        return Weakness(**fields)

    for module in (weaknesses_module, weak_labels):
        monkeypatch.setattr(module, "Weakness", noted)
        calls = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
        advising = [call for call in calls if "do" in {keyword.arg for keyword in call.keywords}]
        places |= {(module.__file__, call.lineno) for call in advising}
    for pair in itertools.combinations_with_replacement(FAULTS, 2):
        moved = set(itertools.chain.from_iterable(map(directions, together(*pair))))
        assert not {name for name, way in moved if (name, -way) in moved}, pair
    assert said == places, "a weakness that no fault above leads to"


def test_the_cause_decides_whether_more_or_fewer_texts_are_advised():
    gained = {"metrics": compared(-0.02, 0.06)}
    assert ("method.samples", 1) in {way for one in weaknesses_of(**gained) for way in directions(one)}
    first, *others = weaknesses_of(texts=REPEATED, **gained)
    assert "are different; give the models more public texts (task.public_text)" in first
    assert [*directions(first)] == [("task.public_text", 1), ("method.samples", -1)]
    assert others
    assert not any("method.samples" in other for other in others)


def test_weaknesses_are_on_the_page_and_in_report_json(tmp_path):
    run = write_run(tmp_path / "run")
    assert read_weaknesses(run) == []
    (run / "state").mkdir()
    for answer in (0, 1):
        values = np.round(np.random.default_rng(answer).normal(0, 3.531 * 128, 2 * 26))
        np.save(run / "state" / f"answer-{answer:03}.npy", values)
    rounds = [json.loads(row) for row in (run / "rounds.jsonl").read_text().splitlines()]
    for entry in rounds:
        for query in entry["queries"]:
            query["noise"] = 3.531
    (run / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rounds))
    page = Page(write_report(run).read_text(encoding="utf-8"))
    (weakness,) = read_weaknesses(run)
    assert weakness.what.startswith("nearest and furthest votes were noise: 104 noised numbers spread by ")
    assert "What is poor, and what to change" in page.text
    assert str(weakness) in " ".join(page.text.split())


def test_a_foreign_file_has_no_weaknesses_and_still_a_page(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "metrics.json").write_text('{"synthetic": {"accuracy": "high"}, "majority_class": 1, "test_records": "x"}')
    assert "What is poor" not in write_report(run).read_text(encoding="utf-8")
    assert read_weaknesses(run) == []


def test_warnings_of_an_earlier_version_stay(tmp_path):
    run = write_run(tmp_path / "run")
    ended = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(ended | {"warnings": ["votes will be noise; more records"]}))
    write_report(run)
    assert "votes will be noise; more records" in map(str, read_weaknesses(run))


def test_a_damaged_report_has_no_weaknesses(tmp_path):
    for content in ("{", "[]", '{"weaknesses": [{"what": "x", "other": 1}]}'):
        (tmp_path / "report.json").write_text(content)
        assert read_weaknesses(tmp_path) == []


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        ([0.05, 0.01, 0.09], None),
        ([0.05, -0.01, 0.11], "not clearly nearer than the same models without the hospitals (95 % interval −0.01 to"),
        ([-0.05, -0.09, -0.01], "with 40 texts of each) than the same models without the hospitals; it takes"),
    ],
)
def test_texts_without_labels_that_the_answers_brought_no_nearer(difference, said):
    value, *interval = difference
    near = {"texts": 40, "fid": {"value": 0.5}, "difference": {"value": value, "interval": interval}}
    texts = [replace(text, label=UNLABELLED) for text in TEXTS]
    run = {"labels": {UNLABELLED: "note"}}
    found = weaknesses_of(run=run, metrics={"nearness": near, "test_records": 80}, texts=texts)
    assert len(found) == (said is not None)
    assert said is None or said in found[0]
    if value > 0 and said:
        assert "more test texts (task.test, now 80)" in found[0]


def test_votes_were_noise_if_none_of_them_rises_above_it():
    assert not votes_were_noise([])
    assert votes_were_noise([vote(3.1), vote(3.2, query="others")])
    assert not votes_were_noise([vote(3.1), vote(9.0, query="others")])
