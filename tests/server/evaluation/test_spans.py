"""Figures on spans, and the token classifier behind them."""

from dataclasses import replace

import numpy as np
import pytest

from common.errors import DataError
from server.documents.metrics import Figure
from server.domain import Candidate, Example, Task
from server.evaluation import spans
from server.metrics.tagger import likeliest_tags, matches, span_scores, train_and_tag
from server.spans import Marked, Span, read_marks

TASK = Task(name="t", kind="note", labels={"a": "A", "b": "B"}, spans={"drug": "a medicine", "dose": "an amount"})
DRUGS = ("aspirin", "heparin", "acetyl salicylic acid", "insulin", "codeine")


def text(at, *, marked=True):
    note = f"Took <drug>{DRUGS[at % 5]}</drug>, <dose>{at} mg</dose>, since {'no ' * (at % 2)}pain {at % 7} days"
    found = read_marks(note, TASK.spans)
    return found if marked else Marked(found.text)


def texts(start, count, *, marked=True):
    return [text(at, marked=marked) for at in range(start, start + count)]


def candidates(members):
    return [Candidate(text=m.text, label="a", model="m", round=0, spans=m.spans) for m in members]


def groups_of(ours, zero_shot=(), held_out=(), cleaned=(), task=TASK):
    examples = [Example(text=member.text, spans=member.spans) for member in held_out]
    return spans.span_groups(
        candidates(ours), candidates(zero_shot), lambda: examples, task, cleaned, experiment_seed=0
    )


def test_tagger_learns_what_the_texts_mark():
    test = texts(100, 30)
    found = train_and_tag(texts(0, 40), [*(member.text for member in test), ""])
    assert found[-1] == ()
    assert span_scores(matches(found[:-1], [member.spans for member in test]))["f1"] > 0.95
    with pytest.raises(DataError):
        train_and_tag(texts(0, 4, marked=False), [])


def test_likeliest_tags_never_begin_inside_and_a_span_of_one_type_ends_at_another():
    names = ("B-dose", "B-drug", "I-dose", "I-drug", "O")
    chances = np.full((3, 5), -9.0)
    chances[0, 3] = chances[1, 3] = chances[2, 2] = -0.1
    chances[0, 1], chances[2, 0] = -2, -1
    assert likeliest_tags(names, chances) == ["B-drug", "I-drug", "B-dose"]


def test_span_is_right_with_its_type_and_both_borders():
    right = (Span(start=0, end=3, type="drug"), Span(start=4, end=6, type="dose"))
    found = (right[0], Span(start=4, end=6, type="drug"))
    counts = matches([found, ()], [right, right])
    assert counts.tolist() == [[1, 2, 2], [0, 0, 2]]
    assert span_scores(counts) == {"f1": pytest.approx(1 / 3), "precision": 0.5, "recall": 0.25}
    assert np.isnan(span_scores(matches([()], [()]))["f1"])


def test_groups_show_what_texts_teach_beside_no_hospitals_and_real_texts_and_what_was_dropped():
    # What the models wrote without the hospitals marks too much.
    wrong = [replace(member, spans=(Span(start=0, end=4, type="drug"), *member.spans)) for member in texts(50, 16)]
    cleaned = [{"m": {"no spans: nested tags": 2, "copies": 1}}, {"k": {"no spans: nested tags": 1}}]
    made = groups_of(texts(0, 30), wrong, texts(200, 40), cleaned)
    learned, marks = made["spans"], made["marks"]
    assert (learned["trained_on"], learned["f1"].rows) == (30, 20)
    assert "on 16 of" in learned["definition"]
    assert learned["real"].value > 0.9 < learned["as_many"].value
    low, high = learned["difference"].interval
    assert 0 < low <= learned["difference"].value <= high
    assert marks["drug in a text"] == Figure(value=1.0, rows=30)
    assert marks["texts without spans"].value == 0
    assert "tags 3" in marks["note"]


def test_figures_that_cannot_be_computed_are_left_out_with_their_reason():
    made = groups_of(texts(0, 4))
    assert "task.test" in made["spans"]["f1"].reason
    assert made["marks"]["note"]
    bare = texts(0, 9, marked=False)
    group = groups_of(bare, held_out=texts(9, 8))["spans"]
    assert group["f1"].reason
    assert group["real"].value > 0
    assert "difference" not in group
    assert groups_of(bare, task=replace(TASK, spans={})) == {}
