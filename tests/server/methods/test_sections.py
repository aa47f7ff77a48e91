"""Texts in sections: what is planned, asked and written, and the refusal of everything else when it is planned."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from common.domain import Record
from common.errors import ConfigError, ProviderError
from common.sections import sections
from server.domain import Candidate, Task
from server.evaluation.sections import section_groups
from server.llm.completion import Completion
from server.methods.aug_pe import AugPe
from server.methods.class_sums import ClassSumsMethod
from server.methods.dp_sgd import DpSgd
from server.methods.wasp import Wasp
from server.operators import section_texts
from tests.support.method_contract import World, agreed_plan, steps, through_json
from tests.support.prompts import render

HEADINGS = {"History": "what was told", "Findings": "what was seen", "Plan": "what is to be done"}
TASK = Task(name="t", kind="letter", labels=HEADINGS, labels_per_text=3, sectioned=True)


def ours(**changes):
    return ClassSumsMethod(**{"samples": 20, "rounds": 2, "shots": 2, "directions": 3} | changes)


def test_the_plan_takes_records_by_section_and_one_without_sections_is_as_before():
    plan = agreed_plan(ours(), task=TASK)
    assert plan.by_section
    assert plan.labels_per_record == 3
    assert [query.name for query in plan.queries] == [section_texts.NAME, "class sums"]
    assert sum(query.share for query in plan.queries) == pytest.approx(1)
    assert agreed_plan(ours(), task=replace(TASK, labels_per_text=1)).by_section  # with one section a text too
    whole = agreed_plan(ours(), task=replace(TASK, labels_per_text=1, sectioned=False))
    assert not whole.by_section
    assert b"section" not in whole.to_json()


def test_texts_are_written_section_by_section_and_a_run_goes_on_from_any_step():
    method, world = ours(shown_words=6, words=300), World(ours(), task=TASK)
    first, last = steps(method, world)
    assert len(last.candidates) == 20
    assert [name for name, _, _ in world.asked] == [section_texts.NAME, "class sums"]
    for text in last.candidates:
        assert text.sections == sections(text.text, HEADINGS)
        assert text.labels == tuple(part.heading for part in text.sections)
        saved = json.loads(json.dumps(text.to_json()))
        assert "label" not in saved
        assert "labels" not in saved
        assert Candidate.from_json(saved) == text
    assert len(world.requests) == sum(len(text.sections) for text in last.candidates)
    for request in world.requests:
        assert request.before is not None
        assert len(request.before.split()) <= 6 + len(HEADINGS)
        assert all(heading not in request.before for heading, _ in request.requested)
        _, prompt = render(request)
        assert "one letter" in prompt
        assert all(words in prompt for _, words in request.requested)
        assert request.words in {100, 150, 300}
        if request.before:
            assert request.before in prompt
            assert request.before.split("\n")[0] in Completion().beginning(request, []).prompt
    bodies = {section_texts.section_exemplar(text, heading) for text in last.candidates for heading in text.labels}
    shown = [text for request in world.requests for text in request.good]
    assert shown
    assert set(shown) <= bodies
    *_, resumed = steps(method, World(method, task=TASK), through_json(method, first))
    assert through_json(method, resumed) == through_json(method, last)


def test_the_others_write_the_texts_of_a_model_that_writes_nothing():
    world = World(ours(), task=TASK, silent=("k",))
    first, *_ = steps(ours(), world)
    assert [text.model for text in first.candidates] == ["m"] * 10
    assert first.rounds[0].lost == {"m": 0, "k": 5}
    assert first.rounds[0].requested == {"m": 10, "k": 5}
    assert "(requested: 5)" in first.rounds[0].notes[0]


def test_without_any_section_the_records_are_not_asked_about():
    world = World(ours(), task=TASK, silent=("m", "k"), most_lost=1)
    with pytest.raises(ProviderError, match="History, Findings, "):
        list(steps(ours(), world))
    assert [name for name, _, _ in world.asked] == [section_texts.NAME]


@pytest.mark.parametrize("texts", [[], [Candidate(text="Nothing.", label="", model="m", round=0)]])
def test_figures_of_texts_without_any_section_are_missing_with_a_reason(texts):
    group = section_groups(texts, lambda: [Record("History\nAn old cough.", "")], TASK)
    assert (group.keys(), group["sections"].value) == ({"sections"}, None)
    assert group["sections"].reason
    whole = Candidate.in_sections("Plan\nRest.", sections("Plan\nRest.", HEADINGS), model="m", round_number=0)
    assert (
        section_groups([*texts, whole], lambda: [Record("Plan\nRest.", "")], TASK)["sections"]["per_text"].rows
        == len(texts) + 1
    )


@pytest.mark.parametrize("method", [AugPe, DpSgd, Wasp], ids=lambda method: method.__name__)
def test_other_methods_are_refused_before_anything_is_asked(method):
    with pytest.raises(ConfigError, match=r"\(task.sections\).*method=class_sums"):
        agreed_plan(method(), task=TASK)


def test_a_method_of_ones_own_serves_sections_if_it_asks_by_section():
    own = SimpleNamespace(name="own", label_sets_share=0.2, shown_words=0, plan=Wasp().plan)
    with pytest.raises(ConfigError, match=r"^method own; .*; got 3"):
        agreed_plan(own, task=TASK)
    own.plan = ours().plan
    assert agreed_plan(own, task=TASK).by_section


def test_what_reads_whole_texts_is_refused_too():
    with pytest.raises(ConfigError, match="federated"):
        agreed_plan(ours(), task=TASK, evaluation_share=0.5)
    for settings, name in (({"census": "census.json"}, "census"), ({"questionnaire": "questions"}, "questionnaire")):
        with pytest.raises(ConfigError, match=rf"^method\.{name};"):
            agreed_plan(ours(**settings), task=TASK)
