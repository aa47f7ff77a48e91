"""Shares of fields and of values, and what the models lost, from texts and counts alone."""

from server.documents.metrics import Figure, Metrics
from server.evaluation import fields
from tests.support.structures import STRUCTURE

TEXTS = [
    '{"triage": "red", "admitted": true, "note": "one"}',
    '{"triage": "red", "age": 4, "note": "two"}',
    '{"triage": "green", "admitted": false, "note": "three"}',
    '{"triage": "green", "admitted": true, "note": "four"}',
    "no object",
]
CLEANED = [
    {"m": {"structure: notation": 2, "no structure: missing field": 1, "copies": 7}},
    {"m": {"no structure: missing field": 1200}, "n": {"structure: notation": 1}},
]


def test_shares_are_of_objects_and_values_of_those_that_have_the_field():
    group = fields.shares(TEXTS, STRUCTURE)
    assert group["not of the structure"] == Figure(value=1, rows=5)
    values = {name: figure.value for name, figure in group.items() if name != "definition"}
    assert (values["with triage"], values["with admitted"], values["with age"], values["with note"]) == (
        1,
        3 / 4,
        1 / 4,
        1,
    )
    assert (values["triage = red"], values["triage = yellow"], values["triage = green"]) == (1 / 2, 0, 1 / 2)
    assert (values["admitted = true"], values["admitted = false"]) == (2 / 3, 1 / 3)
    assert group["admitted = true"].rows == 3
    assert "note" not in group  # the key of a group's remark, whatever a task calls its fields


def test_without_texts_there_is_a_reason_in_place_of_each_share():
    group = fields.shares([], STRUCTURE)
    assert group["with note"] == group["triage = red"] == Figure(reason="there are no such texts", rows=0)


def test_a_run_of_plain_texts_has_no_group_and_one_of_objects_says_what_was_repaired_and_dropped():
    assert fields.of_run(TEXTS, None, CLEANED) == {}
    assert "note" not in fields.of_run(TEXTS, STRUCTURE, [])["fields"]
    (group,) = Metrics(content=fields.of_run(TEXTS, STRUCTURE, CLEANED)).groups
    assert group.note == "Of what the models wrote, repaired: notation 3; dropped: missing field 1,201."
    assert {figure.name for figure in group.figures} >= {"with note", "triage = yellow"}
