"""Structured texts: what a schema may say, what is repaired and what is refused, and what a message may hold."""

import json

import pytest

from common.domain import Record
from common.errors import ConfigError, DataError
from common.structure import LONGEST_LOOSE, MOST_FIELDS, MOST_VALUES, Structure, check_records
from tests.support.structures import SETTINGS, STRUCTURE, WHOLE


def changed(**schema):
    return SETTINGS | {"schema": SETTINGS["schema"] | schema}


def fielded(**field):
    return changed(properties=SETTINGS["schema"]["properties"] | {"other": field})


def test_a_structure_keeps_the_schema_with_its_order_and_always_requires_the_text():
    assert json.loads(STRUCTURE.schema)["additionalProperties"] is False
    assert list(STRUCTURE.properties) == ["triage", "age", "pain", "admitted", "ward", "note"]
    assert STRUCTURE.required == {"triage", "note"}
    assert Structure.of(SETTINGS) == STRUCTURE


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "structure; expected keys schema, text_field"),
        ({"text_field": "note"}, "structure.schema; expected a value; got none"),
        (SETTINGS | {"field": "note"}, "structure.field"),
        (SETTINGS | {"text_field": "triage"}, "structure.text_field"),
        (SETTINGS | {"text_field": "age"}, "structure.text_field"),
        (SETTINGS | {"text_field": ["note"]}, "structure.text_field"),
        (fielded(type="string") | {"text_field": 7}, "structure.text_field"),
        (SETTINGS | {"text_field": "pain"}, "its type; expected one of string; got 'number'"),
        (changed(type="array"), "structure.schema.type"),
        (changed(properties={}), "1 to 50 fields"),
        (changed(properties={f"f{i}": {"type": "string"} for i in range(MOST_FIELDS + 1)}), "1 to 50 fields"),
        (changed(required=["nobody"]), "structure.schema.required"),
        (changed(required=7), "structure.schema.required"),
        (changed(additionalProperties=True), "structure.schema.additionalProperties"),
        (changed(properties={"a\nb": {"type": "string"}, "note": {"type": "string"}}), "printable characters"),
        (fielded(type="object"), "properties.other.type; expected one of string, integer, number, boolean"),
        (fielded(type=["string", "null"]), "properties.other.type"),
        (fielded(type="string", enum=[]), "properties.other.enum"),
        (fielded(type="string", enum="red"), "properties.other.enum"),
        (fielded(type="string", enum=[True]), "properties.other.enum"),
        (fielded(type="string", enum=["Red", "red"]), "differ, not by case alone"),
        (fielded(type="string", enum=[str(i) for i in range(MOST_VALUES + 1)]), "properties.other.enum"),
        (fielded(type="integer", enum=[1, 2]), "properties.other.type; expected one of string"),
        (fielded(type="string", minimum=1), "properties.other.type; expected one of integer, number"),
        (fielded(type="integer", minimum="low"), "properties.other.minimum; expected a finite number"),
        (fielded(type="string", description="x" * 501), "properties.other.description"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_their_key(settings, message):
    with pytest.raises(ConfigError) as refused:
        Structure.of(settings)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "keyword",
    [
        {"$ref": "http://example.org/schema"},
        {"pattern": "(a+)+$"},
        {"patternProperties": {}},
        {"format": "regex"},
        {"items": {}},
        {"anyOf": []},
        {"properties": {}},
        {"$dynamicRef": "#"},
        {"if": {}},
        {"multipleOf": 1e-300},
    ],
)
def test_a_hostile_schema_can_neither_reach_out_nor_take_long(keyword):
    """A hospital may be handed the schema by a coordinator that it does not trust."""
    (name,) = keyword
    with pytest.raises(ConfigError, match="an unknown key"):
        Structure.of(fielded(type="string", **keyword))
    if name != "properties":
        with pytest.raises(ConfigError, match="an unknown key"):
            Structure.of(changed(**keyword))


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (WHOLE, ()),
        ('{"note":"He fell.",\n "age":54,"triage":"red"}', ()),
        (f"Here it is:\n```json\n{WHOLE}\n```", ("words around the object",)),
        ("{'triage': 'red', 'age': 54, 'note': 'He fell.'}", ("notation",)),
        ('{"triage": "red", "age": 54, "note": "He fell.",}', ("notation",)),
        (WHOLE.replace("red", " Red"), ("value as in the schema",)),
        (WHOLE.replace("54", '"54"'), ("value as in the schema",)),
        (WHOLE.replace("{", '{"name": "?", "more": {"deep": []}, '), ("unknown field left out",)),
        (WHOLE.replace("{", '{"ward": null, '), ("empty field left out",)),
        (
            "Sure: {'triage': 'RED', 'age': 54, 'note': 'He fell.', 'id': 7}",
            ("words around the object", "notation", "unknown field left out", "value as in the schema"),
        ),
    ],
)
def test_what_can_be_repaired_becomes_canonical(text, repairs):
    assert STRUCTURE.read(text) == (WHOLE, repairs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("He fell.", "not an object"),
        ('["red"]', "not an object"),
        ('{"triage": "red", "note": "cut o', "not an object"),
        ("{" * 5000, "not an object"),
        ("{a: &x [1], b: *x}", "not an object"),
        ("{1: 2}", "not an object"),
        ('{"triage": "red"}', "missing field"),
        ('{"triage": null, "note": "x"}', "wrong type"),
        ('{"triage": "blue", "note": "x"}', "unknown value"),
        ('{"triage": "red", "age": 54.5, "note": "x"}', "wrong type"),
        ('{"triage": "red", "age": "old", "note": "x"}', "wrong type"),
        ('{"triage": "red", "age": true, "note": "x"}', "wrong type"),
        ('{"triage": "red", "age": 111, "note": "x"}', "out of range"),
        ('{"triage": "red", "pain": NaN, "note": "x"}', "out of range"),
        ('{"triage": "red", "pain": "inf", "note": "x"}', "out of range"),
        ('{"triage": "red", "note": " "}', "empty text"),
    ],
)
def test_what_cannot_is_dropped_for_one_reason(text, reason):
    assert STRUCTURE.read(text) == (None, (reason,))


_MERGED = ", ".join(f"x{i}: &x{i} {{<<: [{', '.join([f'*x{i - 1}'] * 9)}]}}" for i in range(1, 9))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{{x0: &x0 {{a: 1}}, {_MERGED}, triage: red, note: x}}", "not an object"),  # 9^8 pairs
        ('{"note":' + "[" * 50_000, "not an object"),
        ('{triage: red, note: x, age: !!int ""}', "not an object"),
        ('{triage: red, note: x, admitted: !!bool "x"}', "not an object"),
        ('{triage: red, note: !!timestamp "x"}', "not an object"),
        ("{triage: red, note: 0001-01-01 00:00:00 +23:00}", "wrong type"),
        ("{triage: red, note: 2001-13-13}", "not an object"),
        ("{triage: red, note: x, age: 0x" + "f" * 15_000 + "}", "out of range"),
        ('{"triage": "red", "note": "x", "pain": 1' + "0" * 4000 + "}", "out of range"),
        (WHOLE[:-1] + ", " + " " * LONGEST_LOOSE + "}", "not an object"),
    ],
)
def test_no_text_of_a_model_takes_long_or_ends_the_run(text, reason):
    assert STRUCTURE.read(text) == (None, (reason,))


def test_half_a_surrogate_pair_reaches_no_classifier():
    assert STRUCTURE.reading('{"triage": "red", "note": "a \\ud83d b"}') == "a ? b"


def test_half_a_surrogate_pair_does_not_reach_a_file():
    text, _ = STRUCTURE.read('{"triage": "red", "note": "a \\ud83d b"}')
    assert text == '{"triage": "red", "note": "a ? b"}'


def test_a_classifier_reads_the_text_field_of_an_object_and_all_of_any_other_text():
    assert STRUCTURE.reading(WHOLE) == "He fell."
    assert STRUCTURE.reading("He fell.") == "He fell."
    repairable = WHOLE.replace("red", "Red")
    assert STRUCTURE.reading(repairable) == repairable


def test_records_are_taken_as_they_stand_and_an_error_numbers_them_without_a_word_of_theirs():
    good = Record('{ "note": "secret one", "triage": "red" }', "a")
    check_records([good, good], STRUCTURE, "file.csv")
    bad = [Record(text, "a") for text in ("secret two", '{"note": "secret", "triage": "Red"}', '{"x": "secret"}')]
    with pytest.raises(DataError) as refused:
        check_records([good, *bad, good, *bad], STRUCTURE, "file.csv")
    assert str(refused.value) == (
        "texts that are not of the task's structure; expected a JSON object of its schema in each `text`; got missing "
        "field, not an object, unknown value; at file.csv, records 2, 3, 4, 6, 7, 8. Mend these records, or the schema"
    )
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
