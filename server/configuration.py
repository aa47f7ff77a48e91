"""The configuration of a run: composed from an operator's overrides, checked, and kept in the run's folder.

This module imports Hydra and nothing heavy, so that a misspelt setting is named in less than a second.
"""

import contextlib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from common.errors import CheckpointError, ConfigError, InternalError
from common.models import catalogue
from common.system.files import write_atomic
from common.validate import meant
from server.misprints import CONFIGS, NOT_COMPOSED, explained, is_group, names
from server.setting_checks import (
    PATHS,
    PATHS_OR_NAMES,
    RAISED_LATER,
    SEARCH_PATH,
    check_kind,
    check_names,
    expected_records,
    given_paths,
    number_or_null,
)


def composed(overrides: list[str], config_name: str = "simulation") -> DictConfig:
    """Compose the configuration with overrides, and give the run an identity."""
    return identified(_compose(overrides, config_name))


def asked(overrides: list[str], config_name: str = "simulation") -> DictConfig:
    """`composed`, for what an operator typed: overrides are checked, and relative paths are made absolute.

    Raises:
        ConfigError: A setting is misspelt, or a value is of another kind than its default.
    """
    return with_absolute_paths(checked(composed(overrides, config_name), overrides, config_name))


def checked(config: DictConfig, overrides: Sequence[str], config_name: str = "simulation") -> DictConfig:
    """The configuration, whose settings have names and values that can be right.

    Raises:
        ConfigError: A setting is misspelt, or a value is of another kind than its default.
    """
    check_names(config)
    check_kinds(config, overrides, config_name)
    expected_records(config)
    return config


def identified(config: DictConfig) -> DictConfig:
    """Resolve the configuration, and give the run an identity unless it has one.

    Raises:
        ConfigError: A setting that has no default is missing.
    """
    try:
        resolved: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key, expected, value = str(error.full_key), "a value", "VALUE"
        if key in PATHS:
            expected, value = "a file", "PATH"
        raise ConfigError(key, expected=expected, got="none", do=f"Add {key}={value}") from error
    except OmegaConfBaseException as error:
        raise explained(error, ()) from error
    resolved["run"] = resolved.get("run") or uuid.uuid4().hex
    identified_config = OmegaConf.create(resolved)
    assert isinstance(identified_config, DictConfig)
    return identified_config


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
        check_kind(name, OmegaConf.select(config, name), OmegaConf.select(defaults, name))


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
            do = meant(name, tuple(names(config)))
            raise ConfigError(name, expected="a setting of the run", got="none of this name", do=do)
        OmegaConf.update(config, name, value, merge=False, force_add=True)
        if _has(usual, name):
            check_kind(name, OmegaConf.select(config, name), OmegaConf.select(usual, name))
    check_names(config)
    return with_absolute_paths(config)


def misprint(error: Exception, overrides: Sequence[str], config_name: str = "simulation") -> ConfigError:
    """The line for an error of Hydra's when these overrides were composed (`server/misprints.py`)."""
    for name, _, value in (text.partition("=") for text in overrides):
        if is_group(name) and value == "null":  # Hydra's error does not name it
            return ConfigError(name, expected="one of its choices, listed in configs/README.md", got="null")
    names_of = [text.lstrip("+").partition("=")[0] for text in overrides]
    chosen = [text for text, name in zip(overrides, names_of, strict=True) if is_group(name) or name == SEARCH_PATH]
    for choices in (chosen, []):  # a choice may be what is wrong
        with contextlib.suppress(*NOT_COMPOSED):
            return explained(error, list(names(_composed(choices, config_name))))
    raise InternalError("our own settings cannot be composed") from error


def with_absolute_paths(config: DictConfig) -> DictConfig:
    """Make relative paths absolute: a run works, and is resumed, in another folder than this one."""
    for name, value in [*given_paths(config, PATHS), *given_paths(config, PATHS_OR_NAMES)]:
        in_the_run_folder = (name, value) == ("embedding_cache", "run")
        listed = name in PATHS_OR_NAMES and value in catalogue.catalogue()
        if not listed and (Path(value).exists() or (name in PATHS and not in_the_run_folder)):
            OmegaConf.update(config, name, str(Path(value).resolve()))
    return config


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
        if is_group(str(name)):
            defaults.pop(name, None)
    merged = OmegaConf.merge(defaults, config)
    assert isinstance(merged, DictConfig)
    return merged


def _parsed(overrides: Sequence[str]) -> tuple[list[Override], list[Override]]:
    """All overrides, and those among them that choose a file of a group."""
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except OverrideParseException as error:
        raise explained(error, ()) from error
    return parsed, [each for each in parsed if is_group(each.key_or_group)]


def _has(config: DictConfig, name: str) -> bool:
    parent, _, key = name.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return isinstance(node, DictConfig) and key in node


def _compose(overrides: list[str], config_name: str) -> DictConfig:
    try:
        return _composed(overrides, config_name)
    except NOT_COMPOSED as error:
        raise misprint(error, overrides, config_name) from error


def _composed(overrides: list[str], config_name: str) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return compose(config_name, overrides)
    with initialize_config_module(CONFIGS, version_base="1.3"):
        return compose(config_name, overrides)
