"""Figures on spans, and the token classifier behind them."""

from dataclasses import replace

import numpy as np
import pytest

from common.errors import DataError
from server.documents.metrics import Figure
from server.domain import Candidate, Example, Task
from server.evaluation import spans
from server.metrics import tagger
from server.metrics.tagger import Tagger, matches, span_scores
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


def test_the_classifier_learns_what_the_texts_mark():
    test = texts(100, 30)
    found = Tagger(texts(0, 40)).predict([*(member.text for member in test), ""])
    assert found[-1] == ()
    assert span_scores(matches(found[:-1], [member.spans for member in test]))["f1"] > 0.95
    with pytest.raises(DataError, match="token classifier"):
        Tagger(texts(0, 4, marked=False))


def test_a_sequence_never_begins_inside_and_a_span_of_one_type_ends_at_another():
    model = Tagger(texts(0, 20))
    tokens = [("a", 0, 1), ("b", 2, 3), ("c", 4, 5)]
    column = {name: at for at, name in enumerate(model._names)}
    chances = np.full((3, len(column)), -9.0)
    chances[0, column["I-drug"]] = chances[1, column["I-drug"]] = chances[2, column["I-dose"]] = -0.1
    chances[0, column["B-drug"]], chances[2, column["B-dose"]] = -2, -1
    drug, dose = Span(start=0, end=3, type="drug"), Span(start=4, end=5, type="dose")
    assert model._decoded(tokens, chances) == (drug, dose)


def test_a_span_is_right_with_its_type_and_both_borders():
    right = (Span(start=0, end=3, type="drug"), Span(start=4, end=6, type="dose"))
    found = (right[0], Span(start=4, end=6, type="drug"))
    counts = matches([found, ()], [right, right])
    assert counts.tolist() == [[1, 2, 2], [0, 0, 2]]
    assert span_scores(counts) == {"f1": pytest.approx(1 / 3), "precision": 0.5, "recall": 0.25}
    assert np.isnan(span_scores(matches([()], [()]))["f1"])


def test_a_run_has_what_texts_teach_beside_no_hospitals_and_real_texts_and_what_was_dropped():
    held_out = [Example(text=member.text, spans=member.spans) for member in texts(200, 40)]
    # What the models wrote without the hospitals marks too much.
    wrong = [replace(member, spans=(Span(start=0, end=4, type="drug"), *member.spans)) for member in texts(50, 16)]
    cleaned = [{"m": {"no spans: nested tags": 2, "copies": 1}}, {"k": {"no spans: nested tags": 1}}]
    made = spans.span_groups(
        candidates(texts(0, 30)), candidates(wrong), lambda: held_out, TASK, cleaned, experiment_seed=0
    )
    learned, marks = made["spans"], made["marks"]
    assert learned["trained_on"] == 30
    assert "on 16 of" in learned["definition"]
    assert learned["real"].value > 0.9 < learned["as_many"].value
    low, high = learned["difference"].interval
    assert 0 < low <= learned["difference"].value <= high
    assert learned["f1"].rows == 20
    assert marks["drug in a text"] == Figure(value=1.0, rows=30)
    assert marks["texts without spans"].value == 0
    assert "tags 3" in marks["note"]


def test_figures_that_cannot_be_are_left_out_with_their_reason():
    made = spans.span_groups(candidates(texts(0, 4)), [], list, TASK, [], experiment_seed=0)
    assert "task.test" in made["spans"]["f1"].reason
    assert made["marks"]["note"]
    held_out = [Example(text=member.text, spans=member.spans) for member in texts(9, 8)]
    bare = candidates(texts(0, 9, marked=False))
    group = spans.span_groups(bare, [], lambda: held_out, TASK, [], experiment_seed=0)["spans"]
    assert "expected some" in group["f1"].reason
    assert group["real"].value > 0
    assert "difference" not in group
    assert spans.span_groups(bare, [], lambda: held_out, replace(TASK, spans={}), [], experiment_seed=0) == {}
    assert tagger.DEFINITION in group["definition"]
