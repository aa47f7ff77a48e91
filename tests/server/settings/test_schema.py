"""Settings are documented, stored and read again, those of older runs too; plans and Python functions take them all."""

from dataclasses import fields
from inspect import signature
from types import SimpleNamespace

import pytest

import simulations
from common.errors import ConfigError, PlanError
from server.documents.run import RunSummary
from server.prepare.build import plan_of
from server.prepare.compose import compose_settings, load_settings, store, values, write_yaml
from server.settings import schema
from server.settings.evaluation import EvaluationSettings
from server.settings.methods import METHODS
from server.settings.reading import AUTO, mapping_of, read_section, settings_of
from server.settings.seeded import RefinementSettings
from server.settings.tasks import REMOVED, TASKS
from tests.support.plans import plan_with

SECTIONS = {section.__name__.removesuffix("Settings"): section for section in (*METHODS, *TASKS)}
SECTIONS |= {name: getattr(schema, name) for name in ("Llm", "Rules", "PrivacyTarget", "Secagg")}
SECTIONS |= {"Coordinator": schema.Settings, "Simulation": schema.SimulationSettings}


def test_a_plan_takes_no_default_of_the_classes_that_methods_see(monkeypatch):
    # `PrivacyTarget` and `Membership` are promised to methods of one's own, with the defaults that their tests use.
    made = {}
    monkeypatch.setattr("server.prepare.build.make_plan", lambda _, **arguments: made.update(arguments) or plan_with())
    settings = compose_settings(
        [
            *("privacy.epsilon=2", "privacy.delta=1e-6", "privacy.unit=user", "privacy.max_records=3"),
            *("privacy.calibration=paper", "federation.parties=5", "federation.max_dropouts=1"),
            *("federation.colluders=2", "federation.max_attempts=4"),
        ]
    )
    plan_of(settings, SimpleNamespace(compared=lambda _: {}), None, encoder="", roster=None)
    for part in (made["target"], made["membership"]):
        assert not [field.name for field in fields(part) if getattr(part, field.name) == field.default]


def test_a_plan_whose_messages_no_hospital_reads_is_refused_with_its_forecast(monkeypatch):
    large = plan_with(labels=tuple(f"{number:030}" for number in range(2000)))
    monkeypatch.setattr("server.prepare.build.make_plan", lambda _, **arguments: large)
    with pytest.raises(PlanError, match="size"):
        plan_of(compose_settings([]), SimpleNamespace(compared=lambda _: {}), None, encoder="", roster=None)


@pytest.mark.parametrize("function", [simulations.simulate, simulations.plan])
def test_functions_for_python_show_the_defaults_of_the_settings(function):
    # Their signatures are promised, and shown by every editor.
    shown = {name: parameter.default for name, parameter in signature(function).parameters.items()}
    settings = compose_settings([])
    assert shown["method"] == settings.method.name
    assert shown["parties"] == settings.federation.parties
    assert (shown["epsilon"], shown["delta"]) == (settings.privacy.epsilon, settings.privacy.delta)


def test_all_settings_are_documented():
    for section in (*SECTIONS.values(), EvaluationSettings, RefinementSettings, schema.FederationSettings):
        above = {
            field.name
            for base in section.__mro__[1:]
            if hasattr(base, "__dataclass_fields__")
            for field in fields(base)
        }
        for field in fields(section):
            assert f"        {field.name}: " in section.__doc__ or field.name in above, (section, field.name)


def test_what_is_stored_is_what_is_loaded(tmp_path):
    for choice in ("class_sums", "rpsg", "dpga", "only_private"):
        settings = compose_settings([f"method={choice}", "privacy.epsilon=inf", "+more=${experiment_seed}"])
        store(settings, tmp_path)
        assert load_settings(tmp_path) == settings
        assert settings_of(values(tmp_path / "config.yaml")) == settings
    assert mapping_of(compose_settings(["method=class_sums"]))["method"]["directions"] == AUTO


def test_an_older_run_s_settings_are_still_read(tmp_path):
    older = mapping_of(compose_settings(["method=aug_pe", "run=x"]))
    older["method"]["variation"]["_target_"] = "server.operators.variation.Variation"
    for name in ("vocabulary", "terms", "smoothing"):
        del older["method"][name]
    older["secagg"] = {"mode": "none", "roster": None}
    del older["evaluation"]["embedding"], older["labels_from_records"]
    write_yaml(older, tmp_path / "config.yaml")
    assert load_settings(tmp_path) == compose_settings(["method=aug_pe", "secagg=none", "run=x"])


def test_a_renamed_method_has_its_former_name_too(tmp_path):
    now = compose_settings(["method=class_sums", "method.labels=class_sums", "run=x"])
    assert compose_settings(["method=census", "method.labels=census", "run=x"]) == now
    older = mapping_of(now)
    older["method"] |= {"_target_": "server.methods.census.CensusMethod", "name": "census", "labels": "census"}
    write_yaml(older, tmp_path / "config.yaml")
    assert load_settings(tmp_path) == now
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("defaults: [/schema/Census@_here_]\nlabels: census\n")
    assert compose_settings([f"hydra.searchpath=[file://{tmp_path}]", "method=mine", "run=x"]) == now
    summary = {"status": "complete", "method": "census", "task": "t", "parties": 3, "seconds": 1}
    assert RunSummary.of_file(summary).method == "class_sums"


def test_a_removed_setting_reads_as_null_alone_in_an_older_run(tmp_path):
    older = mapping_of(compose_settings(["task=csv", "run=x"]))
    older["task"]["structure"] = None
    assert settings_of(older) == compose_settings(["task=csv", "run=x"])
    older["task"]["structure"] = {"text_field": "note", "schema": {"properties": {"note": {"type": "string"}}}}
    with pytest.raises(ConfigError) as caught:
        settings_of(older)
    assert caught.value.what == "task.structure"
    assert caught.value.do == REMOVED["task.structure"]


def test_settings_of_our_own_parts_are_of_the_kinds_that_their_signatures_say():
    from server.prepare.build import build

    with pytest.raises(ConfigError, match=r"^embedding\.dimensions;"):
        build(compose_settings(["embedding.dimensions=many"]).embedding)
    for override in (
        "method.variation=fill_in",
        "+method.variation._target_=mine.Variation",
        "+method.variation._target_=3",
        "+evaluation.own.words=5",
    ):
        with pytest.raises(ConfigError) as caught:
            compose_settings(["method=aug_pe", override])
        assert caught.value.what == override.lstrip("+").partition("=")[0]


def test_without_rules_nothing_is_cleaned_and_a_part_of_them_leaves_the_others():
    assert read_section(schema.Llm, {"clean": {}}, "llm").clean is None
    assert read_section(schema.Llm, {"clean": {"foreign": True}}, "llm").clean == schema.Rules(foreign=True)
    with pytest.raises(ConfigError, match=r"^llm\.clean\.fences;"):
        read_section(schema.Llm, {"clean": {"fences": 1}}, "llm")
    with pytest.raises(ConfigError, match=r"^llm\.clean\.fances; .*fences\?"):
        read_section(schema.Llm, {"clean": {"fances": True}}, "llm")
    assert schema.Llm().clean is None
    assert compose_settings(["llm=server"]).llm.clean == schema.Rules()
    assert compose_settings(["llm=mixed"]).llm.clean == schema.Rules()
    assert compose_settings(["llm=builtin"]).llm.clean is None
