"""The configuration of a run: composed from an operator's overrides, checked, and kept in the run's folder.

This module imports Hydra and nothing heavy, so that a misspelt setting is named in less than a second.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue

from common import validate
from common.errors import CheckpointError, ConfigError
from common.models import catalogue
from common.system.files import write_atomic
from server.llm import providers

SETTINGS = {
    "privacy": {"epsilon", "delta", "calibration", "unit", "max_records"},
    "federation": {
        "parties",
        "hospitals",
        "max_dropouts",
        "max_attempts",
        "colluders",
        "timeout",
        "retries",
        "expected_records",
        "records",
        "partition",
        "alpha",
        "canaries",
        "style_site",
    },
    "llm": providers.SETTINGS,
}
"""Names of the settings that decide about privacy or money (the last five of `federation`: simulations alone)."""

AUTO = "auto"
AUTOMATIC = ("method.directions", "method.rounds")
"""Settings that are whole numbers, or `auto`: then `server.draft.without_auto` chooses the number."""

RAISED_LATER = ("llm.max_cost", "llm.max_tokens")
"""Settings that may change when a run is resumed: numbers, or null."""
NUMBERS_OR_NULL = (*RAISED_LATER, "method.tau")
"""Settings whose null means something, whatever their default is."""

SEARCH_PATH = "hydra.searchpath"
"""Setting that lists folders of configurations beside ours; choices may come from them."""

FILES = (
    "task.test",
    "task.public_text",
    "method.vocabulary",
    "method.few_shot",
    "method.census",
    "evaluation.target",
    "evaluation.vocabulary",
    "secagg.roster",
)
"""Settings that name a file which a run reads."""
PATHS = ("task.train", "embedding_cache", "reply_cache", *FILES)
"""Settings that name a file; that of private records is a simulation's alone."""
PATHS_OR_NAMES = (
    "embedding.name_or_path",
    "evaluation.checkpoint",
    "evaluation.language_model.start",
    *(f"llm.models.{name}.model" for name in ("local", "smollm2", "smollm2_bare", "smollm2_hot")),
)
"""Settings that name a model of the catalogue, or else a file or a folder if there is one, or something else."""


def composed(overrides: list[str], config_name: str = "simulation") -> DictConfig:
    """Compose the configuration with overrides, and give the run an identity."""
    return identified(_compose(overrides, config_name))


def asked(overrides: list[str], config_name: str = "simulation") -> DictConfig:
    """`composed`, for what an operator typed: overrides are checked, and relative paths are made absolute.

    Raises:
        ConfigError: A setting is misspelt, or a value is of another kind than its default.
    """
    config = composed(overrides, config_name)
    check_names(config)
    check_kinds(config, overrides, config_name)
    expected_records(config)
    return with_absolute_paths(config)


def identified(config: DictConfig) -> DictConfig:
    """Resolve the configuration, and give the run an identity unless it has one.

    Raises:
        ConfigError: A setting that has no default is missing.
    """
    try:
        resolved: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(
            str(error.full_key), expected="a value", got="none", do=f"Add {error.full_key}=VALUE"
        ) from error
    resolved["run"] = resolved.get("run") or uuid.uuid4().hex
    identified_config = OmegaConf.create(resolved)
    assert isinstance(identified_config, DictConfig)
    return identified_config


def check_names(config: DictConfig) -> None:
    """Refuse a misspelt setting of privacy or money: Hydra's `+` would add it, and no code would read it."""
    for group, names in SETTINGS.items():
        for name in set(config[group]) - names:
            expected = f"one of {', '.join(sorted(names))}"
            raise ConfigError(f"{group}.{name}", expected=expected, got="a setting that there is not")


def check_kinds(config: DictConfig, overrides: Sequence[str], config_name: str = "simulation") -> None:
    """Refuse a value of another kind than the default of its setting.

    A default of null admits every kind. Null may replace a list or a mapping, but no number, text or truth value.

    Args:
        config: Composed with the overrides.
        overrides: As they were typed.
        config_name: Of the primary configuration.

    Raises:
        ConfigError: Naming the setting.
    """
    parsed, choices = _parsed(overrides)
    choices = [each for each in parsed if each in choices or each.key_or_group == SEARCH_PATH]
    names = [each.key_or_group for each in parsed if each not in choices and not each.is_delete()]
    if not names:
        return
    defaults = _compose([str(each.input_line) for each in choices], config_name)
    for name in names:
        _check_kind(name, OmegaConf.select(config, name), OmegaConf.select(defaults, name))


def overridden(config: DictConfig, overrides: Sequence[str], defaults: Sequence[str]) -> DictConfig:
    """A coordinator's stored configuration with what an operator typed, checked as by `asked`.

    Args:
        config: As the run stored it, with all groups that it chose; it is changed.
        overrides: Choices of a group replace the whole group, other ones a single value.
        defaults: Choices with which the default of a setting, and so its kind, is looked up.

    Raises:
        ConfigError: A setting is deleted, or misspelt, or a value is of another kind than its default.
    """
    parsed, choices = _parsed(overrides)
    for each in parsed:
        if each.is_delete() or each.is_sweep_override():
            raise ConfigError(each.key_or_group, expected="one value", got=each.input_line)
    chosen = [str(each.input_line) for each in choices]
    anew, usual = composed(chosen, "server"), composed([*defaults, *chosen], "server")
    for each in choices:
        OmegaConf.update(config, each.key_or_group, OmegaConf.select(anew, each.key_or_group), merge=False)
    for each in parsed:
        if each in choices:
            continue
        name, value, there = each.key_or_group, each.value(), _has(config, each.key_or_group)
        if not (there or each.is_add()):
            raise ConfigError(name, expected="a setting of the run", got="none of this name", do="Look for a misprint")
        OmegaConf.update(config, name, value, merge=False, force_add=True)
        if _has(usual, name):
            _check_kind(name, OmegaConf.select(config, name), OmegaConf.select(usual, name))
    check_names(config)
    return with_absolute_paths(config)


def with_absolute_paths(config: DictConfig) -> DictConfig:
    """Make relative paths absolute: a run works, and is resumed, in another folder than this one."""
    for name, value in [*given_paths(config, PATHS), *given_paths(config, PATHS_OR_NAMES)]:
        in_the_run_folder = (name, value) == ("embedding_cache", "run")
        listed = name in PATHS_OR_NAMES and value in catalogue.catalogue()
        if not listed and (Path(value).exists() or (name in PATHS and not in_the_run_folder)):
            OmegaConf.update(config, name, str(Path(value).resolve()))
    return config


def given_paths(config: DictConfig, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The settings among these that are set, and their values."""
    for name in names:
        if value := OmegaConf.select(config, name):
            yield name, str(value)


def check_files(config: DictConfig) -> None:
    """Refuse a setting that names a file which cannot be read.

    Raises:
        ConfigError: Naming the setting and the file.
    """
    for name, path in given_paths(config, FILES):
        check_file(name, path)


def check_file(name: str, path: str) -> None:
    """Refuse a setting whose file cannot be read; errors as those of `check_files`."""
    if not (Path(path).is_file() and os.access(path, os.R_OK)):
        got = "a folder" if Path(path).is_dir() else "none"
        raise ConfigError(name, expected="a file that can be read", got=got, where=path)


def store(config: DictConfig, folder: Path) -> None:
    """Write `config.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "config.yaml", OmegaConf.to_yaml(config).encode())


def load(folder: Path) -> DictConfig:
    """Read `config.yaml`."""
    config = OmegaConf.load(folder / "config.yaml")
    assert isinstance(config, DictConfig)
    return config


def reloaded(folder: Path, overrides: Sequence[str]) -> DictConfig:
    """Read `config.yaml` of a simulation to resume, with new caps on spending.

    A setting that is newer than the run has its default. What the run chose from a group, such as its method, stays as
    it was stored.

    Raises:
        CheckpointError: There is no such file, or an override names another setting than a cap.
    """
    if not (folder / "config.yaml").is_file():
        raise CheckpointError("--resume", expected="one folder with a config.yaml", got="none", where=folder)
    config = _with_newer_settings(load(folder))
    for override in overrides:
        name, sign, value = override.partition("=")
        if name not in RAISED_LATER or not sign:
            caps = f"no overrides but {' and '.join(RAISED_LATER)}"
            raise CheckpointError("--resume", expected=caps, got=override)
        OmegaConf.update(config, name, number_or_null(name, None if value == "null" else value))
    return config


def _with_newer_settings(config: DictConfig) -> DictConfig:
    defaults = _compose([], "simulation")
    OmegaConf.set_struct(defaults, value=False)
    for name in config:
        if _is_group(str(name)):
            defaults.pop(name, None)
    merged = OmegaConf.merge(defaults, config)
    assert isinstance(merged, DictConfig)
    return merged


def expected_records(config: DictConfig) -> int | None:
    """M, the public guess of the number of records in all; None if there is none.

    Raises:
        ConfigError: It is no such number.
    """
    records: int | None = config.federation.get("expected_records")
    if records is not None:
        validate.integers(1, section="federation", expected_records=records)
    return records


def number(name: str, value: object) -> float:
    """A number, or inf in any spelling.

    Raises:
        ConfigError: Naming the setting.
    """
    try:
        return float(str(value).replace(".inf", "inf"))
    except ValueError:
        raise ConfigError(name, expected="a number, or inf", got=_shown(value)) from None


def number_or_null(name: str, value: object) -> float | None:
    """The same, or null."""
    return None if value is None else number(name, value)


def _parsed(overrides: Sequence[str]) -> tuple[list[Override], list[Override]]:
    """All overrides, and those among them that choose a file of a group."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return parsed, [each for each in parsed if _is_group(each.key_or_group.partition("@")[0])]


def _is_group(name: str) -> bool:
    return (files("configs") / name).is_dir()


def _has(config: DictConfig, name: str) -> bool:
    parent, _, key = name.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return isinstance(node, DictConfig) and key in node


def _compose(overrides: list[str], config_name: str) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return compose(config_name, overrides)
    with initialize_config_module("configs", version_base="1.3"):
        return compose(config_name, overrides)


def _check_kind(name: str, value: object, default: object) -> None:
    if name in NUMBERS_OR_NULL:
        number_or_null(name, value)
    elif name in AUTOMATIC:
        _check(name, type(value) is int or value == AUTO, "a whole number, or auto", value)
    elif isinstance(default, bool):
        _check(name, isinstance(value, bool), "true or false", value)
    elif isinstance(default, int):
        _check(name, type(value) is int, "a whole number", value)
    elif isinstance(default, float):
        number(name, value)
    elif isinstance(default, str):
        _check(name, isinstance(value, str), "text", value)
    elif isinstance(default, ListConfig):
        _check(name, value is None or isinstance(value, ListConfig), "a list, such as [a,b]", value)
    elif isinstance(default, DictConfig):
        _check(name, value is None or isinstance(value, DictConfig), "a mapping, such as {a: b}", value)


def _check(name: str, holds: bool, expected: str, value: object) -> None:
    if not holds:
        raise ConfigError(name, expected=expected, got=_shown(value))


def _shown(value: object) -> str:
    return "null" if value is None else repr(value)
