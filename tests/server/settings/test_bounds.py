"""What is out of bounds is named in full, whoever notices it: the schema, the method, or a query's specification."""

from dataclasses import fields, replace

import pytest

from common.errors import InputError
from server.domain import Task
from server.settings.build import drafted
from server.settings.compose import composed
from server.settings.methods import METHODS
from server.settings.reading import read

TASK = Task(name="notes", kind="note", labels={"a": None, "b": None})
ASKED = [
    (schema, field.name)
    for schema in METHODS
    if schema.made_by
    for field in fields(schema)
    if type(field.default) in {int, float, str} and field.name != "name"
]


@pytest.fixture(scope="module")
def settings():
    return composed(["method=wasp"])


@pytest.mark.parametrize(("schema", "name"), ASKED, ids=lambda value: getattr(value, "__name__", value))
def test_a_setting_of_a_method_is_named_in_full(schema, name, settings):
    refusals = []
    for value in (-1, 0, 10**9, "none of them"):
        try:
            drafted(replace(settings, method=read(schema, {name: value}, "method")), TASK)
        except InputError as error:
            refusals.append(str(error))
    assert refusals, "it takes anything"
    assert all(refusal.startswith(("method.", "answers, attempts included")) for refusal in refusals), refusals
