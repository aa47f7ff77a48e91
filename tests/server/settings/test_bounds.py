"""What is out of bounds is refused when the settings are read, and named in full: the tests are made of the types."""

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import get_args, get_type_hints

import pytest

from common.errors import ConfigError, InputError
from server.domain import Task
from server.prepare.build import draft_plan
from server.prepare.compose import compose_settings, reload_settings, store
from server.settings.methods import METHODS
from server.settings.reading import read_section
from server.settings.schema import Settings, SimulationSettings
from server.settings.sections import MethodSettings, TaskSettings
from server.settings.tasks import TASKS
from server.settings.voting import AugPeSettings

TASK = Task(name="notes", kind="note", labels={"a": None, "b": None})
ABSURD = -(10**9)
A_PART = {"_target_": "somewhere.Else"}
REQUIRED = {"name": "x", "kind": "x", "node": 1, "vocabulary": "x", "run": "x", "client": {}}
REQUIRED |= dict.fromkeys(("method", "task", "embedding"), A_PART)


@pytest.fixture(scope="module")
def settings():
    return compose_settings(["method=wasp"])


def inside(hint):
    """The types that a hint names, those inside it too."""
    arguments = get_args(hint)
    yield from (inner for argument in arguments for inner in inside(argument))
    if not arguments:
        yield hint


def sections(schema):
    """A section and all sections inside it."""
    yield schema
    for hint in get_type_hints(schema).values():
        for kind in inside(hint):
            for section in {MethodSettings: METHODS, TaskSettings: TASKS}.get(kind, (kind,)):
                if is_dataclass(section) and section is not schema:
                    yield from sections(section)


SECTIONS = tuple(dict.fromkeys((*sections(Settings), *sections(SimulationSettings))))
NUMBERS = [
    (section, field.name, kinds & {int, float})
    for section in SECTIONS
    for field in fields(section)
    if (kinds := {*inside(get_type_hints(section)[field.name])}) & {int, float}
]
"""Every setting that is a number, or may be one. What makes a part of the user's own has its bounds itself."""
ASKED = [
    (schema, field.name)
    for schema in METHODS
    if schema.made_by
    for field in fields(schema)
    if type(field.default) in {int, float, str} and field.name != "name"
]


def refused(section, name, value):
    """The error of a section in which all but this setting is right."""
    required = (field.name for field in fields(section) if field.default is field.default_factory is MISSING)
    with pytest.raises(ConfigError) as caught:
        read_section(section, {inner: REQUIRED[inner] for inner in required} | {name: value}, "above")
    return caught.value


def shown(value):
    return getattr(value, "__name__", None) or (value if isinstance(value, str) else "")


def test_the_types_are_those_of_all_sections():
    names = {section.__name__ for section in SECTIONS}
    assert {"WaspSettings", "Variation", "RefinementSettings", "DemoNotesSettings", "Hospital", "Training"} <= names
    assert {"Llm", "PrivacyTarget", "Secagg", "SimulatedFederation", "EvaluationSettings", "Settings"} <= names
    assert len(NUMBERS) > 130


@pytest.mark.parametrize(("section", "name", "kinds"), NUMBERS, ids=shown)
def test_a_number_has_a_bound_and_is_named_in_full(section, name, kinds):
    # Some know their section's full name, which is not the one that is read here.
    named = {f"above.{name}", f"{getattr(section, 'place', None)}.{name}"}
    assert refused(section, name, ABSURD).what in named
    if float in kinds:
        assert refused(section, name, math.nan).what in named


OUT_OF_BOUNDS = [
    "experiment_seed=-1",
    "tracking=nothing",
    "purpose=",
    "federation.style_site=3",
    "federation.colluders=3",
    "federation.max_dropouts=3",
    "llm.use=[]",
    "llm.use=[broad,nobody]",
    "method.top=21",
]
OF_ANOTHER_KIND = [
    "experiment_seed=x",
    "experiment_seed=true",
    "privacy.delta=abc",
    "privacy.delta=null",
    "privacy.unit=3",
    "method.contrast=yes please",
    "evaluation.metrics=privacy",
    "llm.models=builtin",
    "llm.max_tokens=x",
    "++llm.max_price=3",
]


@pytest.mark.parametrize("override", [*OUT_OF_BOUNDS, *OF_ANOTHER_KIND])
def test_a_value_out_of_bounds_or_of_another_kind_is_refused_while_settings_are_compose_settings(override):
    with pytest.raises(ConfigError) as caught:
        compose_settings([override])
    assert caught.value.what == override.lstrip("+").partition("=")[0]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("class_sums", "directions=4097"),
        ("dp_sgd", "steps=100001"),
        ("rupta", "rewritings=257"),
        ("rpsg", "mechanism=gaussian"),
        ("rpsg", "refinement.nll=0"),
    ],
)
def test_bounds_of_a_query_are_those_of_the_method_that_asks_it(method, wrong):
    with pytest.raises(ConfigError, match=f"^method.{wrong.partition('=')[0]}; expected"):
        compose_settings([f"method={method}", f"method.{wrong}"])


def test_a_cap_that_is_raised_has_the_same_bounds(tmp_path):
    store(compose_settings([]), tmp_path)
    for name, value in (("max_tokens", "-3"), ("most_lost", "1.5"), ("most_lost", "-1"), ("most_lost", "null")):
        with pytest.raises(ConfigError, match=rf"^llm\.{name};"):
            reload_settings(tmp_path, [f"llm.{name}={value}"])
    assert reload_settings(tmp_path, ["llm.most_lost=0.5"]).llm.most_lost == 0.5


@pytest.mark.parametrize(("schema", "name"), ASKED, ids=shown)
def test_a_plan_names_a_setting_of_its_method_in_full(schema, name, settings):
    refusals = []
    for value in (-1, 0, 10**9, "none of them"):
        try:
            draft_plan(replace(settings, method=read_section(schema, {name: value}, "method")), TASK)
        except InputError as error:
            refusals.append(str(error))
    assert refusals, "it takes anything"
    assert all(refusal.startswith(("method.", "answers, attempts included")) for refusal in refusals), refusals


def test_check_bounds_subclass_that_states_a_field_anew_keeps_the_bound():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Mine(AugPeSettings):
        samples: int = 100

    with pytest.raises(ConfigError, match=r"samples"):
        Mine(samples=0)
