"""Texts with several labels: the methods that serve them, and the refusal of all others when they are planned."""

import json

import pytest

from common.errors import ConfigError
from common.queries.votes import VotesSpec
from server.domain import Task
from server.methods.aug_pe import AugPe
from server.methods.class_sums import ClassSumsMethod
from server.methods.dpga import Dpga
from server.methods.fusegen import FuseGen
from server.methods.pre_text import PreText
from server.methods.rpsg import Rpsg
from server.methods.wasp import Wasp
from server.operators import label_sets
from tests.support.method_contract import World, agreed_plan, plan_of, steps, through_json
from tests.support.prompts import render

LABELS = {"a": "about a", "b": "about b", "c": "about c"}
TASK = Task(name="t", kind="note", labels=LABELS, labels_per_text=2)
SMALL = {"samples": 30, "rounds": 3, "shots": 2, "texts_per_request": 3}
METHODS = {
    "wasp": lambda **changes: Wasp(**SMALL | changes),
    "class_sums": lambda **changes: ClassSumsMethod(**SMALL | {"directions": 3} | changes),
}


@pytest.fixture(params=METHODS)
def build(request):
    return METHODS[request.param]


def test_a_record_counts_under_so_many_labels_in_each_query(build):
    plan = agreed_plan(build(), task=TASK)
    assert plan.labels_per_record == 2
    assert {query.spec.labels_per_record for query in plan.queries} == {2}
    assert plan.queries[0].name == label_sets.NAME
    assert sum(query.share for query in plan.queries) == pytest.approx(1)
    one = agreed_plan(build(), task=Task(name="t", kind="note", labels=LABELS))
    assert [query.share for query in one.queries] == [1.0]
    assert b"labels_per_record" not in one.to_json()


def test_texts_have_sets_that_prompts_name_and_a_run_goes_on_from_any_step(build):
    method, world = build(), World(build(), task=TASK)
    *before, last = steps(method, world)
    assert len(last.candidates) == 30
    assert {len(text.labels) for text in last.candidates} == {1, 2}
    assert all(1 <= len(set(text.labels)) == len(text.labels) <= 2 for text in last.candidates)
    assert all(text.to_json()["labels"] == list(text.labels) for text in last.candidates)
    assert [name for name, _, _ in world.asked].count(label_sets.NAME) == 1
    for name, _, query in world.asked:
        if isinstance(query.spec, VotesSpec):
            assert len(query.labels) <= method.compared(TASK)[name]
    for request in world.requests:
        _, prompt = render(request)
        assert all(words in prompt for _, words in request.requested)
        assert len(request.requested) == 1 + len(request.more)
    for state in before:
        *_, resumed = steps(method, World(method, task=TASK), through_json(method, state))
        assert through_json(method, resumed) == through_json(method, last)
    assert "label" not in json.loads(json.dumps(last.to_dict()))["candidates"][0]


def test_exemplars_come_from_texts_that_share_a_label():
    world = World(METHODS["wasp"](), task=TASK)
    *_, last = steps(METHODS["wasp"](), world)
    labels = {text.text: set(text.labels) for text in last.candidates}
    shown = [(request, text) for request in world.requests for text in (*request.good, *request.bad)]
    assert shown
    assert all(labels[text] & {label for label, _ in request.requested} for request, text in shown)


@pytest.mark.parametrize("method", [AugPe, Dpga, FuseGen, PreText, Rpsg], ids=lambda method: method.__name__)
def test_other_methods_are_refused_before_anything_is_asked(method):
    with pytest.raises(ConfigError, match=r"2 \(task.labels_per_text\)"):
        agreed_plan(method(), task=TASK)


def test_what_counts_single_labels_is_refused_too():
    with pytest.raises(ConfigError, match="federated"):
        agreed_plan(METHODS["wasp"](), task=TASK, evaluation_share=0.5)
    for settings, name in (({"census": "census.json"}, "census"), ({"questionnaire": "questions"}, "questionnaire")):
        with pytest.raises(ConfigError, match=rf"^method\.{name};"):
            plan_of(METHODS["class_sums"](**settings), task=TASK)
    with pytest.raises(ConfigError, match="label_sets_share"):
        METHODS["wasp"](label_sets_share=1.0)
