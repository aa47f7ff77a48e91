"""Each weakness of a run that has it, and of one that has not."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from common.domain import UNLABELLED
from common.page.words import catalogue
from server.documents.metrics import Metrics
from server.documents.run import InputWeaknesses, Weakness, WeaknessCode
from server.domain import Candidate
from server.planning.signal import FEWER_CANDIDATES
from server.report.votes import VoteHistogram
from server.report.weaknesses import (
    MOST_SHOWN,
    find_weaknesses,
    gravest_weaknesses,
    read_weaknesses,
    votes_above_forecast,
    votes_were_noise,
)
from server.report.write import write_report
from simulations.federation import inputs
from tests.support.documents import answer_with_noise, edit, privacy, report_of, summary
from tests.support.pages import Page
from tests.support.screens import assert_accepted, under_headings

LABELS = {"sepsis": "an infection of the blood", "flu": ""}
TEXTS = [
    Candidate.from_json({"text": f"Note {at}.", "label": ["sepsis", "flu"][at % 2], "model": "m", "round": 1})
    for at in range(40)
]


def line(number, **changes):
    plain = {"requested": {"m": 20}, "lost": {"m": 0}, "candidates": 40, "fid": 1.0, "fid_error": 0.02}
    return report_of(number + 1, **plain | changes)


def weaknesses_of(*, run=None, rounds=(), votes=(), metrics=None, texts=TEXTS, **changes):
    """What is weakness of a run that is fine in all else."""
    return find_weaknesses(
        summary(**{"labels": LABELS, "warnings": {}} | (run or {})),
        privacy=privacy(**{"simulation": True} | changes),
        rounds=rounds,
        metrics=Metrics(content=metrics or {}),
        texts=texts,
        votes=votes,
    )


def scored(accuracy, *, majority=0.5, tested=100):
    return {
        "test_records": tested,
        "synthetic": {"accuracy": accuracy},
        "majority_class": {"accuracy": majority},
    }


def compared(low, high, **more):
    """Metrics in which the difference to the same models without the hospitals has this interval."""
    difference = {"value": (low + high) / 2, "interval": [low, high]}
    group = {"trained_on": 40, "accuracy": {"value": 0.8}, "difference": difference}
    return scored(0.8) | {"zero_shot": group} | more


def shares(**of_records):
    return {"label_shares": {"simulation_only": True, "records": of_records}}


WARNING = "votes will be noise: 0.5 votes a candidate against 3 of noise; it takes more records or a larger epsilon"


def vote(spread, *, noise=3.0, candidates=100, query="votes"):
    return VoteHistogram(
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


def nearer(value, low, high):
    near = {"texts": 40, "fid": {"value": 0.5}, "difference": {"value": value, "interval": [low, high]}}
    return {"nearness": near | {"zero_shot": {"value": 0.6}}, "test_records": 80}


def labelled_as(*labels, **more):
    """A hundred texts with these labels, of a run with four labels."""
    text = Candidate.from_json({"text": "Note.", "labels": list(labels), "model": "m", "round": 1} | more)
    return {"texts": [text] * 100, "run": {"labels": dict.fromkeys(("flu", "sepsis", "cold", "cough"), "x")}}


SECTIONS = [{"start": 0, "end": 1, "heading": "flu"}]
DESCRIBED = {"method": "class_sums", "labels": {"sepsis": "blood", "flu": "influenza"}}
FORESEEN = {"run": {"warnings": {"votes": WARNING}}}
UNLABELLED_TEXTS = {
    "texts": [replace(text, label=UNLABELLED) for text in TEXTS],
    "run": {"labels": {UNLABELLED: "note"}},
}
NOISED = {"simulation": False, "run": {"method": "dpga"}}
REPEATED = [replace(text, text=f"note {at % 9}") for at, text in enumerate(TEXTS)]
FAULTS = {
    "few test texts": {"metrics": compared(0.01, 0.1, test_records=99)},
    "below guessing": {"metrics": scored(0.1), "rounds": [line(0)]},
    "below guessing, class sums of described labels": {"metrics": scored(0.3), "run": DESCRIBED},
    "not above guessing": {"metrics": scored(0.58)},
    "no gain": {"metrics": compared(-0.02, 0.06)},
    "loss": {"metrics": compared(-0.1, -0.02)},
    "loss of class sums without a guarantee": {
        "metrics": compared(-0.1, -0.02),
        "planned_epsilon": "inf",
        "run": {"method": "class_sums"},
    },
    "not clearly nearer": UNLABELLED_TEXTS | {"metrics": nearer(0.05, -0.01, 0.11)},
    "further off": UNLABELLED_TEXTS | {"metrics": nearer(-0.05, -0.09, -0.01)},
    "votes were noise": {"votes": [vote(3.1)]},
    "votes were noise, as foreseen": {"votes": [vote(3.1), vote(3.2)]} | FORESEEN,
    "votes will be noise": {"run": {"warnings": {"votes": f"votes will be noise; it takes {FEWER_CANDIDATES}"}}},
    "no votes of an older folder": {"votes": [vote(3.0, noise=None)]} | FORESEEN,
    "no text of a label": {"texts": TEXTS[::2]},
    "labels differ": {"metrics": shares(sepsis=0.9, flu=0.1)},
    "several labels": labelled_as("flu", "sepsis") | {"metrics": shares(flu=0.1, sepsis=0.1, cold=0.8)},
    "sections": labelled_as("flu", "sepsis", sections=SECTIONS) | {"metrics": shares(flu=0.1, sepsis=0.1, cold=0.8)},
    "released shares": NOISED | {"rounds": [line(0, shares={"sepsis": 0.9, "flu": 0.1}), line(1)]},
    "released counts": NOISED | {"rounds": [line(0, metadata={"labels": {"sepsis": 1.0}}), line(1)]},
    "lost": {"rounds": [line(0, lost={"m": 12}, cleaned={"m": {"duplicates": 9}}, losses={"m": {"empty": 3}})]},
    "just too many lost": {"rounds": [line(0, lost={"m": 3})]},
    "repeated": {"texts": REPEATED},
    "disclosed": {"metrics": {"disclosures": {"found": {"value": 1.0, "interval": [0.9, 1.0]}}}},
}
"""What makes a run have each weakness."""
NO_FAULTS = {
    "nothing measured": {},
    "no texts": {"texts": []},
    "above guessing": {"metrics": scored(0.61)},
    "above guessing, by more tests": {"metrics": scored(0.58, tested=400)},
    "one label": {"metrics": scored(1.0, majority=1.0)},
    "guessing unknown": {"metrics": {"synthetic": {"accuracy": 0.1}}},
    "a gain": {"metrics": compared(0.01, 0.1)},
    "nearer": UNLABELLED_TEXTS | {"metrics": nearer(0.05, 0.01, 0.09)},
    "votes above their noise": {"votes": [vote(3.0), vote(6.0, candidates=60)]},
    "votes above their noise, against the forecast": {"votes": [vote(3.5)]} | FORESEEN,
    "labels of records in a deployment": {"metrics": shares(sepsis=0.9, flu=0.1), "simulation": False},
    "labels that hardly differ": {"metrics": shares(sepsis=0.7, flu=0.3)},
    "weighed labels": {
        "metrics": shares(sepsis=0.9, flu=0.1),
        "texts": [replace(text, weight={"sepsis": 9.0, "flu": 1.0}[text.label]) for text in TEXTS],
    },
    "exact shares in a deployment": FAULTS["released shares"] | {"epsilon": "inf"},
    "few lost": {"rounds": [line(0, lost={"m": 2})]},
    "half different": {"texts": [replace(TEXTS[0], text=f"note {at % 10}") for at in range(20)]},
    "few texts": {"texts": [TEXTS[0]] * 19},
}
"""Runs that just have none; that a label has no text is left aside."""


def together(*faults):
    """All weaknesses of a run with these faults; of two values of a list, the second fault's."""
    changes = {"metrics": {}, "run": {}}
    for fault in faults:
        for name, value in FAULTS[fault].items():
            changes[name] = changes[name] | value if isinstance(value, dict) else value
    return weaknesses_of(**changes)


def test_weaknesses_of_each_fault_are_worded_as_accepted():
    screen = under_headings({fault: together(fault) for fault in FAULTS})
    assert_accepted(screen, Path(__file__).parent / "screens" / "weaknesses.txt")


@pytest.mark.parametrize("changes", NO_FAULTS.values(), ids=NO_FAULTS)
def test_run_within_the_limits_has_no_weaknesses(changes):
    assert [weakness for weakness in weaknesses_of(**changes) if "no text" not in weakness.what] == []


def test_votes_above_noise_are_told_where_noise_was_forecast():
    run = summary(**FORESEEN["run"])
    assert votes_above_forecast(run, [vote(3.5), vote(9.0, query="others")]) == ["votes"]
    assert votes_above_forecast(run, [vote(3.1)]) == []


def test_votes_were_noise_if_none_of_them_rises_above_it():
    assert not votes_were_noise([])
    assert votes_were_noise([vote(3.1), vote(3.2, query="others")])
    assert not votes_were_noise([vote(3.1), vote(9.0, query="others")])


def directions(advice):
    """Whether each step says to raise a setting (1) or to lower it (-1), for the settings that advice names."""
    for step in re.split(r", (?!now)| or |; ", advice):
        raised = bool(re.search(r"\b(more|larger)\b", step)) - bool(re.search(r"\b(fewer|smaller|stop)\b", step))
        yield from ((name, raised) for name in re.findall(r"\b(?:task|method|llm|federation)\.\w+", step) if raised)


def test_no_two_pieces_of_advice_of_a_run_move_a_setting_in_opposite_directions():
    for pair in itertools.combinations_with_replacement(FAULTS, 2):
        advice = [weakness.do for weakness in together(*pair)]
        moved = set(itertools.chain.from_iterable(map(directions, advice)))
        assert not {name for name, way in moved if (name, -way) in moved}, pair


OF_FILES = {
    code
    for code in WeaknessCode
    if re.search(rf"\bWeaknessCode\.{code.name}\b", Path(inputs.__file__).read_text(encoding="utf-8"))
}
"""The weaknesses of a simulation's files."""


def test_each_code_of_results_has_a_sentence_and_a_fault_with_advice():
    found = [weakness for fault in FAULTS for weakness in together(fault)]
    assert all(weakness.what and weakness.do for weakness in found)
    of_results = {weakness.code for weakness in found}
    assert of_results == vars(catalogue("server.report").weaknesses).keys()
    assert of_results ^ OF_FILES == set(WeaknessCode) - {WeaknessCode.UNNAMED}


@pytest.mark.parametrize("number", range(len(WeaknessCode)))
def test_the_gravest_five_of_a_report_are_shown_and_the_others_counted(number, run):
    given = [Weakness(code=code, what=f"what of {code}", do="Do it") for code in [*WeaknessCode][:number]]
    InputWeaknesses(weaknesses=tuple(reversed(given))).save(run)
    write_report(run)
    assert read_weaknesses(run) == given
    shown = gravest_weaknesses(run)
    assert shown[:MOST_SHOWN] == list(map(str, given[:5]))
    assert len(shown) == min(number, MOST_SHOWN + 1)
    assert [line for line in shown[MOST_SHOWN:] if f" {number - 5} more" not in line or "report.html" not in line] == []


def test_weaknesses_of_an_earlier_version_have_no_code_and_are_read(run):
    old = {"what": "two rows repeat others", "do": "remove them", "simulation_only": True}
    (run / "input_weaknesses.json").write_text(json.dumps({"weaknesses": [old], "format": 1}))
    write_report(run)
    (weakness,) = read_weaknesses(run)
    assert (weakness.code, weakness.what) == (WeaknessCode.UNNAMED, old["what"])


def test_the_cause_decides_whether_more_or_fewer_texts_are_advised():
    gained = {"metrics": compared(-0.02, 0.06)}
    assert ("method.samples", 1) in {way for one in weaknesses_of(**gained) for way in directions(one.do)}
    first, *others = weaknesses_of(texts=REPEATED, **gained)
    assert [*directions(first.do)] == [("task.public_text", 1), ("method.samples", -1)]
    assert others
    assert not any("method.samples" in other.do for other in others)


def test_weaknesses_are_on_the_page_and_in_report_json(run):
    assert read_weaknesses(run) == []
    answer_with_noise(run)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    (weakness,) = read_weaknesses(run)
    assert weakness.what.startswith("nearest and furthest votes were noise: 104 noised numbers spread by ")
    assert "What is poor, and what to change" in page.text
    assert str(weakness) in " ".join(page.text.split())


def test_a_foreign_file_has_no_weaknesses_and_still_a_page(run):
    (run / "metrics.json").write_text('{"synthetic": {"accuracy": "high"}, "majority_class": 1, "test_records": "x"}')
    assert "What is poor" not in write_report(run).read_text(encoding="utf-8")
    assert read_weaknesses(run) == []


def test_warnings_of_an_earlier_version_stay(run):
    write_report(edit(run, "run.json", warnings=["votes will be noise; more records"]))
    (weakness,) = read_weaknesses(run)
    assert (weakness.code, weakness.do) == (WeaknessCode.ANSWERS_ARE_NOISE, "More records")


def test_a_damaged_report_has_no_weaknesses(tmp_path):
    for content in ("{", "[]", '{"weaknesses": [{"what": "x", "other": 1}]}'):
        (tmp_path / "report.json").write_text(content)
        assert read_weaknesses(tmp_path) == []


def test_a_code_of_another_version_hides_no_weakness(tmp_path):
    plain = [
        {"code": "of-a-later-version", "what": "a", "do": "b"},
        {"what": "c", "do": ""},
        {"code": "texts-lost", "what": "d", "do": "e"},
    ]
    (tmp_path / "report.json").write_text(json.dumps({"weaknesses": plain}))
    assert [str(weakness) for weakness in read_weaknesses(tmp_path)] == ["a. B", "c.", "texts-lost: d. E"]
