"""Every YAML composes, opens with the command that runs it, and its parts can be built."""

import itertools
import re
import shlex
import shutil
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import configs
from client.guard import Limits
from client.settings import WRITERS
from client.writers.abstracted_seeds import Seeds
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.queries.closed_set import KINDS, PROVEN
from server.methods.wasp import Wasp
from server.prepare.automatic import resolve_auto
from server.prepare.build import build
from server.prepare.components import build_components
from server.prepare.compose import compose_settings
from server.settings.reading import mapping_of
from server.settings.schema import SimulationSettings
from simulations.federation.parties import party_settings
from simulations.sweeps.combinations import with_overrides
from simulations.sweeps.experiments import experiment_rows, run_names
from tests.support.lanes import slow
from tests.support.method_contract import plan_of
from tests.support.tiny_models import tiny_transformer
from tests.support.wheels import as_fetched

ROOT = Path(configs.__file__).parent
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.yaml") if "deployment" not in path.parts)
EXPERIMENTS = [path for path in FILES if path.parts[0] == "experiment"]
CHOICES = [path for path in FILES if len(path.parts) == 2 and path not in EXPERIMENTS]
OF_FOLDERS = [list(paths) for _, paths in itertools.groupby(CHOICES, lambda path: path.parts[0])]
TOGETHER = [[path for path in paths if path] for paths in itertools.zip_longest(*OF_FOLDERS)]
"""The choices, one of each folder at a time."""


def test_there_is_one_folder_for_each_choice():
    assert {path.parts[0] for path in CHOICES} == {"embedding", "llm", "method", "privacy", "secagg", "task"}
    assert {path.name for path in FILES if len(path.parts) == 1} == {"server.yaml", "client.yaml", "simulation.yaml"}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_each_file_opens_with_its_command_and_the_command_composes(path):
    text = (ROOT / path).read_text("utf-8")
    first, second = text.removeprefix("# @package _global_\n").splitlines()[:2]
    assert first.startswith("# ")
    words = [word for word in shlex.split(first.removeprefix("# ")) if "_API_KEY=" not in word]
    assert words[0] in {"caucus-simulate", "caucus-coordinator"}
    overrides = [word for word in words[1:] if word != "plan"]
    if len(path.parts) == 2:
        assert any(re.split("[.=@]", word.lstrip("+"))[0] == path.parts[0] for word in overrides)
    assert compose_settings(overrides).run
    assert second


@pytest.mark.parametrize("paths", TOGETHER, ids=lambda paths: " ".join(map(str, paths)))
@pytest.mark.parametrize("primary", ["server", "simulation"])
def test_each_choice_composes_under_each_primary_configuration(paths, primary):
    needed = {"pretrained": ["embedding.name_or_path=somewhere"], "aug_pe_plus": ["method.vocabulary=somewhere"]}
    needed |= {"dp_kps": needed["aug_pe_plus"], "transformer": needed["pretrained"]}
    needed["local"] = ["llm.models.local.model=somewhere"]
    chosen = [[f"{path.parts[0]}={path.stem}", *needed.get(path.stem, [])] for path in paths]
    config = compose_settings(list(itertools.chain(*chosen)), primary)
    assert isinstance(config, SimulationSettings) == (primary == "simulation")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Overrides that name the files of an experiment's command."""
    file = tmp_path_factory.mktemp("public") / "terms.txt"
    file.write_text("".join(f"term{i}\n" for i in range(1000)))

    def overrides(path):
        text = (ROOT / path).read_text("utf-8")
        words = text.removeprefix("# @package _global_\n").splitlines()[0].split()
        return [word.replace("=PATH", f"={file}") for word in words if word.endswith("=PATH")]

    return overrides


@pytest.mark.parametrize("rows_of", [pytest.param(1, id="one"), slow(None)])
@pytest.mark.parametrize("path", EXPERIMENTS, ids=str)
def test_each_row_of_an_experiment_composes_and_makes_a_method(path, rows_of, named):
    chosen = [f"+experiment={path.stem}", *named(path)]
    config, sweep = compose_settings(chosen), OmegaConf.load(ROOT / path).hydra
    experiment = config.experiment
    run = run_names(experiment)
    assert run
    assert not any("$" in name for name in experiment_rows(experiment))
    assert sweep.mode == "MULTIRUN"
    assert sweep.sweeper.params.experiment_seed in ("0,1,2", "0,1,2,3,4")
    assert all(
        len(row.get("paper", experiment.get("data", []))) == len(experiment.get("data", []))
        for row in experiment_rows(experiment).values()
    )
    for name in run[:: rows_of and -(-len(run) // rows_of)]:
        chosen_row = with_overrides(replace(config, row=name), chosen)
        if not chosen_row.method.made_by:  # a simulation's alone
            continue
        chosen_row = resolve_auto(chosen_row)
        method = build(chosen_row.method)
        queries = plan_of(method, chosen_row.privacy.max_records, task=build(chosen_row.task).task())
        build(chosen_row.evaluation)
        assert bool(queries) == (method.name != "fusegen" and "Only LLM" not in name)
        if path.stem.startswith("wasp"):
            assert (method.samples, method.rounds) == (config.method.samples, 5)
        if path.stem.startswith("dpga"):
            assert method.samples == config.method.samples
            assert method.rounds == (1 if f"{name} ".startswith("T 1 ") else 10)
        assert set(chosen_row.llm.use or []) <= set(chosen_row.llm.models)


@pytest.mark.parametrize("row", ["WASP", "PrE-Text broad"])
def test_the_experiment_at_user_level_can_be_planned(row):
    task = ["+experiment=wasp_table10", f"row={row}", "task.public_notes=60"]
    plan = build_components(with_overrides(compose_settings(task), task)).plan
    assert (plan.parties, plan.unit, plan.epsilon, plan.queries[0].spec.max_records) == (150, "user", 4.0, 8)


def test_the_methods_and_the_limits_are_built_with_the_defaults_that_the_readme_states():
    config = compose_settings([])
    method = build(config.method)
    assert isinstance(method, Wasp)
    assert (method.samples, method.rounds, method.top) == (2000, 5, 8)
    assert (config.federation.parties, config.privacy.epsilon, config.privacy.delta) == (3, 4.0, 1e-5)
    assert isinstance(party_settings(compose_settings([], "simulation").client).limits, Limits)


def defaults(settings, make):
    """The defaults of a class's arguments among these settings, as YAML has them."""
    known = {name: parameter.default for name, parameter in signature(make).parameters.items()}
    return {name: list(known[name]) if isinstance(known[name], tuple) else known[name] for name in settings}


def test_a_hospital_s_line_that_is_deleted_has_the_value_of_the_file_but_for_later_kinds_of_queries():
    # A hospital edits the file, so it shows every setting; the classes have the same values.
    values = OmegaConf.to_container(OmegaConf.load(ROOT / "client.yaml"))
    settings = party_settings(values)
    assert settings.limits == Limits(queries=PROVEN)
    assert set(values["limits"]) == {field.name for field in fields(Limits)}
    for name, (make, kinds) in WRITERS.items():
        stated = values[name]
        for part, choices in kinds.items():
            chosen = stated.pop(part)
            kind = chosen.pop("kind")
            assert chosen == defaults(chosen, choices[kind])
        assert stated == defaults(stated, make)
    assert (settings.limits.lifetime_epsilon, settings.limits.min_survivors) == (10.0, 2)
    assert isinstance(settings.writers()["abstracted seeds"], Seeds)
    assert set(compose_settings([]).client["limits"]["queries"]) == set(KINDS)
    assert compose_settings([]).client["limits"]["min_survivors"] == 1


def test_the_embedded_models_are_built_and_differ():
    parts = build_components(compose_settings(["task.public_notes=60"]))
    assert list(parts.providers) == ["broad", "narrow", "noisy"]
    assert len({provider.identity for provider in parts.providers.values()}) == 3


@pytest.mark.parametrize(
    ("choice", "keys", "models"),
    [
        ("anthropic", ["ANTHROPIC_API_KEY"], ["haiku", "sonnet"]),
        ("openai", ["OPENAI_API_KEY"], ["small"]),
        ("server", [], ["own"]),
        ("mixed", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], ["haiku", "small", "broad"]),
    ],
)
def test_remote_models_are_built_with_a_key_and_refused_without(monkeypatch, choice, keys, models):
    for key in keys:
        monkeypatch.setenv(key, "no-real-key")
    parts = build_components(compose_settings([f"llm={choice}", "llm.max_cost=1", "task.public_notes=60"]))
    assert list(parts.providers) == models
    assert [provider.remote for provider in parts.providers.values()] == [name != "broad" for name in models]
    for key in keys:
        monkeypatch.delenv(key)
        with pytest.raises(Exception, match=key):
            build_components(compose_settings([f"llm={choice}", "task.public_notes=60"]))
        monkeypatch.setenv(key, "no-real-key")


def test_models_of_this_machine_are_mixed_by_name_and_their_texts_are_cleaned():
    names = ["qwen", "smollm2", "broad"]
    mixed = compose_settings(["llm=mixed", f"llm.use=[{','.join(names)}]"]).llm
    for choice, name in zip(["qwen", "smollm2", "builtin"], names, strict=True):
        assert mixed.models[name] == compose_settings([f"llm={choice}"]).llm.models[name]
    assert (mixed.use, mixed.clean) == (tuple(names), compose_settings(["llm=qwen"]).llm.clean)


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    """A sentence-transformers folder with a tiny BERT of random weights."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(f"##{letter}" for letter in letters)]
    return tiny_transformer(tmp_path_factory.mktemp("bert"), words=words, longest=32)


def test_a_pretrained_encoder_is_built_from_its_folder(random_model):
    config = compose_settings(["embedding=pretrained", f"embedding.name_or_path={random_model}"])
    encoder = build(config.embedding)
    assert isinstance(encoder, Encoder)
    assert encoder.encode(["one", "two"]).shape == (2, 16)


def test_minilm_is_the_encoder_that_was_fetched(random_model, tmp_path, monkeypatch):
    as_fetched(shutil.copytree(random_model, tmp_path / "minilm"), "minilm")
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path))
    encoder = build(compose_settings(["embedding=minilm"]).embedding)
    assert encoder.digest == Encoder.pretrained(random_model).digest


def test_a_whole_run_works_with_a_pretrained_encoder(random_model, tmp_path):
    from tests.support.runs import lines, tiny

    folder = tiny(tmp_path / "run", "embedding=pretrained", f"embedding.name_or_path={random_model}", "method.rounds=2")
    assert len(lines(folder, "synthetic.jsonl")) == 48


def test_every_part_that_a_setting_names_is_one_of_ours():
    config = compose_settings([])
    for section in ("task", "embedding", "method"):
        assert mapping_of(config)[section]["_target_"].split(".")[0] in {"common", "server", "client"}
    assert "_target_" not in (ROOT / "client.yaml").read_text("utf-8")  # a party's parts are named by their kinds


def test_a_wrong_value_inside_a_part_is_our_error():
    with pytest.raises(ConfigError, match=r"embedding\.dimensions;.*got 8"):
        build_components(compose_settings(["embedding.dimensions=8"]))
