import math

import numpy as np
import pytest

from common.structure import Structure
from server.domain import Task
from server.llm.base import Formed, Reply
from server.llm.cache import Cached
from server.llm.clean import Cleaner
from server.llm.form_choice import TEXTS, forms_in_words, in_chosen_forms, margin
from server.llm.forms import AUTO, FORMS
from server.llm.generate import PLAIN
from server.settings.schema import Rules

TASK = Task(name="t", kind="note", labels={"fall": "a fall", "burn": "", "cough": "a cough"})
RIGHT = {"fields": 0.3, "headings": 0.9, "quoted": 0.6}


class Words:
    """An encoder of the labels' words alone."""

    def encode(self, texts):
        rows = [[float(label in text) for label in TASK.labels] for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), len(TASK.labels))


class Writer:
    """Writes the label's word in a share of its texts that depends on the form, and else another's."""

    remote, declines = False, frozenset()

    def __init__(self, name="writer", form=AUTO, shares=RIGHT):
        self.name, self.form, self.shares, self.asked = name, form, shares, []
        self.identity = f"{name}/{form}"

    def check(self):
        pass

    def in_form(self, form):
        return Writer(self.name, form, self.shares)

    def generate(self, requests, *, arrived=None):
        self.asked += requests
        replies = [
            Reply(texts=self._texts(place, request), input_tokens=9, output_tokens=3)
            for place, request in enumerate(requests)
        ]
        for place, reply in enumerate(replies):
            if arrived is not None:
                arrived(place, reply)
        return replies

    def _texts(self, place, request):
        share = self.shares[self.form]
        if share is None:
            return ()
        right = (place + 0.5) / TEXTS < share
        word = request.label if right else next(label for label in TASK.labels if label != request.label)
        return (f"{word} number {place}",)

    def estimate(self, request):
        return 9, 3


def test_the_form_whose_texts_are_nearest_to_their_labels_is_chosen_and_logged(caplog):
    caplog.set_level("INFO")
    other = Writer("fixed", "quoted")
    chosen = in_chosen_forms({"writer": Writer(), "fixed": other}, TASK, Words(), cleaner=PLAIN, experiment_seed=0)
    assert (chosen["writer"].form, chosen["fixed"]) == ("headings", other)
    assert not other.asked
    assert "prompts of writer: headings (mean margins of 24 texts: fields -0.4" in caplog.text


def test_a_margin_is_towards_the_nearest_other_label():
    def mean(shares):
        return margin(Writer(form="fields", shares={"fields": shares}), TASK, Words(), cleaner=PLAIN, experiment_seed=0)

    assert mean(1.0) == 1
    assert mean(0.75) == 0.5
    assert mean(0.0) == -1
    assert mean(None) == -math.inf


def test_texts_are_spread_over_the_labels_and_follow_the_seed():
    asked = []
    for seed in (0, 0, 1):
        writer = Writer(form="fields")
        margin(writer, TASK, Words(), cleaner=PLAIN, experiment_seed=seed)
        asked.append(writer.asked)
    counts = [sum(request.label == label for request in asked[0]) for label in TASK.labels]
    assert (sum(counts), max(counts) - min(counts)) == (TEXTS, 0)
    assert asked[0] == asked[1] != asked[2]


def test_texts_that_a_rule_of_the_run_drops_do_not_count():
    class Repeating(Writer):
        def _texts(self, place, request):
            return ("fall",) if request.label == "fall" else (f"fall number {request.seed}",)

    repeating, rules = Repeating(form="fields"), Cleaner(Rules())
    assert margin(repeating, TASK, Words(), cleaner=PLAIN, experiment_seed=0) == pytest.approx((8 - 16) / 24)
    assert margin(repeating, TASK, Words(), cleaner=rules, experiment_seed=0) == pytest.approx((1 - 16) / 17)


def test_of_many_labels_some_are_asked_for():
    labels = {f"label {at}": "" for at in range(2 * TEXTS)}
    writer = Writer(form="fields", shares={"fields": None})
    margin(writer, Task(name="t", kind="note", labels=labels), Words(), cleaner=PLAIN, experiment_seed=0)
    assert len({request.label for request in writer.asked}) == TEXTS


def test_equal_forms_leave_the_first():
    even = Writer(shares=dict.fromkeys(FORMS, 0.5))
    assert in_chosen_forms({"w": even}, TASK, Words(), cleaner=PLAIN, experiment_seed=0)["w"].form == next(iter(FORMS))


def test_structured_texts_are_tried_as_plain_ones():
    schema = {"properties": {"note": {"type": "string"}, "age": {"type": "integer"}}, "required": ["age"]}
    structure = Structure.of({"text_field": "note", "schema": schema}, "task.structure")
    writer = Writer(form="fields")
    margin(
        writer,
        Task(name="t", kind="note", labels=TASK.labels, structure=structure),
        Words(),
        cleaner=PLAIN,
        experiment_seed=0,
    )
    assert {request.structure for request in writer.asked} == {None}


def test_a_resumed_run_chooses_by_the_cached_replies(tmp_path):
    class Broken(Writer):
        def in_form(self, form):
            return Broken(self.name, form)

        def generate(self, requests, *, arrived=None):
            raise AssertionError

    path = tmp_path / "replies.db"
    for writer in (Writer(), Broken()):
        cached = Cached(provider=writer, path=path)
        assert isinstance(cached, Formed)
        chosen = in_chosen_forms({"writer": cached}, TASK, Words(), cleaner=PLAIN, experiment_seed=0)
        assert chosen["writer"].form == "headings"


def test_a_plan_says_in_words_what_is_chosen_later():
    words = forms_in_words({"a": Writer(), "b": Writer(form="quoted"), "c": Writer(form=None)})
    assert words == {
        "a": "auto: chosen before the first round, by 24 zero-shot texts in each of fields, headings, quoted",
        "b": "quoted",
    }
