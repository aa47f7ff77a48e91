"""Each default stands once, in the schema: no file of `configs/` and no class that takes the settings repeats one."""

from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf

import configs
from common.errors import ConfigError
from server.settings import schema
from server.settings.compose import composed, load, store, values, write
from server.settings.evaluation import EvaluationSettings
from server.settings.methods import METHODS, AugPePlusSettings
from server.settings.reading import AUTO, defaults, mapping_of, read, settings_of
from server.settings.seeded import RefinementSettings
from server.settings.tasks import TASKS

ROOT = Path(configs.__file__).parent
SECTIONS = {section.__name__.removesuffix("Settings"): section for section in (*METHODS, *TASKS)}
SECTIONS |= {name: getattr(schema, name) for name in ("Llm", "Rules", "Privacy", "Secagg")}
SECTIONS |= {"Coordinator": schema.Settings, "Simulation": schema.SimulationSettings}
TAKEN = [section for section in (*METHODS, *TASKS, EvaluationSettings, RefinementSettings) if section.made_by]


def leaves(values, above=""):
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def based():
    """Files that begin with the defaults of a section."""
    for path in sorted(ROOT.glob("**/*.yaml")):
        stated = OmegaConf.to_container(OmegaConf.load(path))
        for base in stated.pop("defaults", []):
            if str(base).startswith("/schema/"):
                yield pytest.param(
                    stated, base[len("/schema/") : -len("@_here_")], id=f"{path.parent.name}/{path.stem}"
                )


@pytest.mark.parametrize(("stated", "section"), list(based()))
def test_a_file_states_what_differs_from_the_schema_alone(stated, section):
    known = dict(leaves(defaults(SECTIONS[section])))
    repeated = {name: value for name, value in leaves(stated) if name in known and known[name] == value}
    assert not repeated


def test_each_section_of_the_schema_is_begun_with_by_a_file():
    assert {parameter.values[1] for parameter in based()} == set(SECTIONS)


@pytest.mark.parametrize("section", TAKEN, ids=lambda section: section.__name__)
def test_what_takes_the_settings_adds_no_default(section):
    made = get_object(section.made_by)
    if section is not AugPePlusSettings:
        assert issubclass(made, section)
    assert [field.name for field in fields(made)] == [
        field.name for field in fields(section)
    ] or section is AugPePlusSettings
    for own, taken in zip(fields(section), fields(made), strict=True):
        if own.name in {"name", "vocabulary"} or own.default_factory is not MISSING:
            continue
        assert own.default == taken.default, own.name


def test_all_settings_are_documented():
    for section in (*SECTIONS.values(), EvaluationSettings, RefinementSettings, schema.Federation):
        above = {
            field.name
            for base in section.__mro__[1:]
            if hasattr(base, "__dataclass_fields__")
            for field in fields(base)
        }
        for field in fields(section):
            assert f"        {field.name}: " in section.__doc__ or field.name in above, (section, field.name)


def test_what_is_stored_is_what_is_loaded(tmp_path):
    for choice in ("census", "rpsg", "dpga", "only_private"):
        settings = composed([f"method={choice}", "privacy.epsilon=inf", "+more=${experiment_seed}"])
        store(settings, tmp_path)
        assert load(tmp_path) == settings
        assert settings_of(values(tmp_path / "config.yaml")) == settings
    assert mapping_of(composed(["method=census"]))["method"]["directions"] == AUTO


def test_an_older_run_s_settings_are_still_read(tmp_path):
    older = mapping_of(composed(["method=aug_pe", "run=x"]))
    older["method"]["variation"]["_target_"] = "server.operators.variation.Variation"
    for name in ("vocabulary", "terms", "smoothing"):
        del older["method"][name]
    older["secagg"] = {"mode": "none", "roster": None}
    del older["evaluation"]["embedding"], older["labels_from_records"]
    write(older, tmp_path / "config.yaml")
    assert load(tmp_path) == composed(["method=aug_pe", "secagg=none", "run=x"])


def test_settings_of_our_own_parts_are_of_the_kinds_that_their_signatures_say():
    from server.settings.build import build

    with pytest.raises(ConfigError, match=r"embedding\.dimensions; expected a whole number; got 'many'"):
        build(composed(["embedding.dimensions=many"]).embedding)
    with pytest.raises(ConfigError, match=r"method\.variation; expected a mapping.*; got 'fill_in'"):
        composed(["method=aug_pe", "method.variation=fill_in"])
    with pytest.raises(ConfigError, match=r"method\.variation\._target_; expected none"):
        composed(["method=aug_pe", "+method.variation._target_=mine.Variation"])
    with pytest.raises(ConfigError, match=r"method\.variation\._target_; expected none"):
        composed(["method=aug_pe", "+method.variation._target_=3"])
    with pytest.raises(ConfigError, match=r"evaluation\.own\.words; expected a part, such as \{_target_"):
        composed(["+evaluation.own.words=5"])


def test_without_rules_nothing_is_cleaned_and_a_part_of_them_leaves_the_others():
    assert read(schema.Llm, {"clean": {}}, "llm").clean is None
    assert read(schema.Llm, {"clean": {"foreign": True}}, "llm").clean == schema.Rules(foreign=True)
    with pytest.raises(ConfigError, match=r"llm\.clean\.fences; expected true or false; got 1"):
        read(schema.Llm, {"clean": {"fences": 1}}, "llm")
    with pytest.raises(ConfigError, match=r"llm\.clean\.fances; .*Did you mean fences\?"):
        read(schema.Llm, {"clean": {"fances": True}}, "llm")
    assert schema.Llm().clean is None
    assert composed(["llm=server"]).llm.clean == schema.Rules()
    assert composed(["llm=mixed"]).llm.clean == schema.Rules()
    assert composed(["llm=builtin"]).llm.clean is None
