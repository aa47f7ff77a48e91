"""Settings that cannot be composed: one line that names them in full and says what was perhaps meant, never `+`."""

import json

import pytest
from hydra import compose, initialize_config_module
from hydra.errors import HydraException, MissingConfigException

from common.errors import ConfigError
from server.command import main as coordinator
from server.prepare import misprints
from server.prepare.build import build
from server.prepare.compose import apply_overrides, compose_settings, misprint_error
from server.prepare.misprints import CONFIGS
from server.settings.sections import Part

NONE = "a setting that does not exist"
ALL = ("aug_pe", "wasp")


@pytest.mark.parametrize(
    ("override", "what", "hints"),
    [
        ("method.sampels=3", "method.sampels", [NONE, "method.samples?"]),
        ("metod=wasp", "metod", [NONE, "method?"]),
        ("federation.hospital=3", "federation.hospital", [NONE, "federation.hospitals?"]),
        ("quite_another=3", "quite_another", [NONE]),
        ("~no_such", "no_such", [NONE]),
        ("llm.models.mine.model=3", "llm.models.mine.model", [NONE]),
        ("method=waps", "method", [*ALL, "'waps'", "wasp?"]),
        ("+experiment=wasp_tabel4", "experiment", ["'wasp_tabel4'", "wasp_table4?"]),
        ("experiment=wasp_table4", "experiment", ["+experiment=CHOICE"]),
        ("+method.samples=3", "method.samples", ["got +method.samples"]),
        ("+privacy.epsilo=3", "privacy.epsilo", ["calibration", "epsilon?"]),
        ("method.samples=[", "override", ["NAME=VALUE", "'method.samples=['"]),
        ("privacy.epsilon=1,2", "privacy.epsilon", ["privacy.epsilon='\"1,2\"'", "--multirun"]),
        ("privacy.epsilon=${no.such}", "privacy.epsilon", ["no.such"]),
        ("method=null", "method", [*ALL, "method=CHOICE"]),
        ("~method", "method", [*ALL, "method=CHOICE"]),
        ("~embedding", "embedding", ["transformer", "embedding=CHOICE"]),
        ("method=wasp,dpga", "method", ["got wasp,dpga", "--multirun"]),
        ('task.labels={"a b": "c"}', "override", ["NAME={a:"]),
        ("task.labels=[flu, cold", "override", ["'task.labels=[flu, cold'", "NAME=[a,"]),
        ("influenza}", "override", ["'influenza}'", "NAME=[a,"]),
        ("purpose=a (b", "override", ["'purpose=a (b'", "NAME='\"TEXT\"'"]),
        ("embedding.device=cuda", "embedding.device", ["embedding=all_mpnet_base_v2"]),
        ("method.expansion=3", "method.expansion", ["method=aug_pe, aug_pe_plus"]),
        ("task.train=notes.csv", "task.train", ["task=csv"]),
        ("task.structure={text_field: note}", "task.structure", [NONE, "this version"]),
        ("purpose=to share, with care", "purpose", ["purpose='\"to share, with care\"'"]),
    ],
)
def test_it_is_said_what_was_perhaps_meant(override, what, hints, capsys):
    with pytest.raises(ConfigError) as caught:
        compose_settings([override])
    message = str(caught.value)
    assert caught.value.what == what
    assert [hint for hint in hints if hint not in message] == []
    assert "\n" not in message
    assert "append" not in message
    assert coordinator(["plan", override]) == 2
    assert capsys.readouterr().err == f"caucus-coordinator: {message}\n"


def test_a_launcher_that_is_not_installed_is_named_with_its_extra():
    error = misprints.explain_hydra_error(
        MissingConfigException("", "hydra/launcher/submitit_slurm", ["basic", "joblib"])
    )
    assert (error.what, error.got) == ("hydra/launcher", "'submitit_slurm'")
    assert "EXTRAS=[cluster]" in str(error)


def test_a_group_that_is_left_out_is_named_before_its_settings():
    with pytest.raises(ConfigError) as caught:
        compose_settings(["~method", "method.samples=3"])
    assert (caught.value.what, caught.value.got) == ("method", "none")


def test_a_stored_run_s_settings_are_looked_up_too():
    with pytest.raises(ConfigError, match=r"^method\.sampels; .*method\.samples\?"):
        apply_overrides(compose_settings([], "server"), ["method.sampels=3"])
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        apply_overrides(compose_settings([], "server"), ["method.samples=["])


def test_a_setting_of_hydra_s_own_is_looked_up_by_its_error():
    with pytest.raises(ConfigError, match=r"^hydra\.rum;"):
        compose_settings(["hydra.rum.dir=here"])


def test_in_a_sweep_several_values_are_not_what_is_wrong():
    with pytest.raises(HydraException) as caught, initialize_config_module(CONFIGS, version_base="1.3"):
        compose("simulation", ["method.sampels=3"])
    error = misprint_error(caught.value, ["privacy.epsilon=1,2", "mine", "method.sampels=3"], sweep=True)
    assert (error.what, error.got) == ("method.sampels", NONE)


def test_a_class_that_cannot_be_imported_is_named_with_its_setting_and_what_helps():
    with pytest.raises(ConfigError) as caught:
        build(Part(place="method", settings={"_target_": "nowhere_at_all.Nearest"}))
    assert caught.value.what == "method"
    assert "'nowhere_at_all" in str(caught.value)
    assert "PYTHONPATH=FOLDER" in str(caught.value)
    assert "HYDRA_FULL_ERROR" not in str(caught.value)


@pytest.mark.parametrize("group", ["embedding=minilm", "llm=builtin", "llm=qwen", "llm=smollm2"])
def test_a_setting_that_a_part_or_a_part_in_it_does_not_have_is_named_in_full(group):
    config = compose_settings([group])
    (part, *_) = [config.embedding] if group.startswith("embedding") else config.llm.models.values()
    inner = [name for name, value in part.settings.items() if isinstance(value, dict) and "_target_" in value]
    assert bool(inner) == (group == "llm=smollm2")
    for above in ("", *(f"{name}." for name in inner)):
        settings = json.loads(json.dumps(dict(part.settings)))
        (settings[above[:-1]] if above else settings)["form"] = "quoted"
        with pytest.raises(ConfigError) as caught:
            build(Part(place=part.place, settings=settings), partial=True)
        assert (caught.value.what, caught.value.got) == (f"{part.place}.{above}form", NONE)


def test_a_former_name_of_a_method_is_not_advised():
    error = misprints.explain_hydra_error(MissingConfigException("", "method/censu", ["census", "class_sums", "wasp"]))
    assert "class_sums" in str(error)
    assert "census" not in str(error)
