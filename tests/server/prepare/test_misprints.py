"""Settings that cannot be composed: one line that names them in full and says what was perhaps meant, never `+`."""

import ast
import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.errors import HydraException, MissingConfigException

from common.errors import ConfigError
from server.command import main as coordinator
from server.prepare import misprints
from server.prepare.build import build
from server.prepare.compose import compose_settings, misprint, overridden
from server.prepare.misprints import CONFIGS
from server.settings.sections import Part

NONE = "got an unknown setting"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("method.sampels=3", f"method.sampels; {NONE}. Did you mean method.samples?"),
        ("metod=wasp", f"metod; {NONE}. Did you mean method?"),
        ("federation.hospital=3", f"federation.hospital; {NONE}. Did you mean federation.hospitals?"),
        ("quite_another=3", f"quite_another; {NONE}"),
        ("~no_such", f"no_such; {NONE}"),
        ("method=waps", "rupta, wasp; got 'waps'. Did you mean wasp?"),
        ("+experiment=wasp_tabel4", "got 'wasp_tabel4'. Did you mean wasp_table4?"),
        ("experiment=wasp_table4", "experiment; expected +experiment=CHOICE"),
        ("+method.samples=3", "method.samples; expected no + before a setting that exists; got +method.samples"),
        ("+privacy.epsilo=3", "privacy.epsilo; expected one of calibration,"),
        ("method.samples=[", "override; expected NAME=VALUE; got 'method.samples=['"),
        (
            "privacy.epsilon=1,2",
            "got 1,2. Quote a text that has a comma: privacy.epsilon='\"1,2\"'; caucus-simulate --multirun runs each",
        ),
        (
            "privacy.epsilon=${no.such}",
            "privacy.epsilon; expected settings that can be composed; got Interpol",
        ),
        ("method=null", "rupta, wasp; got none. Add method=CHOICE"),
        ("~method", "method; expected one of aug_pe, "),
        ("~embedding", "sentence_t5_base, transformer; got none. Add embedding=CHOICE"),
        ("method=wasp,dpga", "method; expected one choice; got wasp,dpga. caucus-simulate --multirun runs each of"),
        (
            'task.labels={"a b": "c"}',
            "A list is 'NAME=[a, b]' and a mapping 'NAME={a: \"b, c\"}': quotes around the whole, around each text",
        ),
        ("task.labels=[flu, cold", "got 'task.labels=[flu, cold'. A list is 'NAME=[a, b]' and"),
        ("influenza}", "got 'influenza}'. A list is 'NAME=[a, b]' and"),
        (
            "purpose=a (b",
            "got 'purpose=a (b'. Put a text with special characters in two pairs of quotes: NAME='\"TEXT\"'",
        ),
        (
            "embedding.device=cuda",
            "embedding.device; got a setting that this choice of embedding does not have. Choose one that has it: ",
        ),
        ("method.expansion=3", "choice of method does not have. Choose one that has it: method=aug_pe, aug_pe_plus"),
        ("task.train=notes.csv", "choice of task does not have. Choose one that has it: task=csv"),
        (
            "task.structure={text_field: note, schema: {properties: {note: {type: string}}}}",
            "task.structure; got an unknown setting. Leave it out: this version has no texts that are JSON objects",
        ),
        ("purpose=to share, with care", "purpose='\"to share, with care\"'"),
        ("llm.models.mine.model=3", f"llm.models.mine.model; {NONE}"),
    ],
)
def test_it_is_said_what_was_perhaps_meant(override, message, capsys):
    with pytest.raises(ConfigError) as caught:
        compose_settings([override])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "append" not in str(caught.value)
    assert coordinator(["plan", override]) == 2
    assert capsys.readouterr().err == f"caucus-coordinator: {caught.value}\n"


def test_a_launcher_that_is_not_installed_is_named_with_its_extra():
    error = MissingConfigException("", "hydra/launcher/submitit_slurm", ["basic", "joblib"])
    assert str(misprints.explain_hydra_error(error)) == (
        "hydra/launcher; expected one of basic, joblib; got 'submitit_slurm'. "
        "In the folder of the source: make coordinator EXTRAS=[cluster]"
    )


def test_one_wrong_choice_does_not_hide_what_another_setting_might_mean():
    with pytest.raises(ConfigError, match=r"Did you mean method.directions\?"):
        compose_settings(["method=census", "method.direction=3"])


def test_a_group_that_is_left_out_is_named_before_its_settings():
    with pytest.raises(ConfigError, match=r"^method; expected one of aug_pe, .*; got none"):
        compose_settings(["~method", "method.samples=3"])


def test_a_stored_run_s_settings_are_looked_up_too():
    with pytest.raises(ConfigError, match=r"method.sampels; expected a setting of.*Did you mean method.samples"):
        overridden(compose_settings([], "server"), ["method.sampels=3"])
    with pytest.raises(ConfigError, match="expected NAME=VALUE"):
        overridden(compose_settings([], "server"), ["method.samples=["])


def test_a_setting_of_hydra_s_own_is_looked_up_by_its_error():
    with pytest.raises(ConfigError, match=f"hydra.rum; {NONE}"):
        compose_settings(["hydra.rum.dir=here"])


def test_in_a_sweep_several_values_are_not_what_is_wrong():
    with pytest.raises(HydraException) as caught, initialize_config_module(CONFIGS, version_base="1.3"):
        compose("simulation", ["method.sampels=3"])
    message = str(misprint(caught.value, ["privacy.epsilon=1,2", "mine", "method.sampels=3"], sweep=True))
    assert message == f"method.sampels; {NONE}. Did you mean method.samples?"


def test_a_class_that_cannot_be_imported_is_named_with_its_setting_and_what_helps():
    with pytest.raises(ConfigError) as caught:
        build(Part(place="method", settings={"_target_": "nowhere_at_all.Nearest"}))
    line = str(caught.value)
    assert line.startswith("method; expected a class or function that can be imported; got Error loading 'nowhere_at")
    assert line.endswith("PYTHONPATH=FOLDER adds the folder of your own module")
    assert "HYDRA_FULL_ERROR" not in line


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
        assert str(caught.value).startswith(f"{part.place}.{above}form; expected one of ")
        assert NONE in str(caught.value)


def test_no_sentence_of_hydra_s_is_searched():
    code = ast.parse(Path(misprints.__file__).read_text("utf-8"))
    imported = {name.name for node in ast.walk(code) if isinstance(node, ast.Import) for name in node.names}
    assert "re" not in imported
