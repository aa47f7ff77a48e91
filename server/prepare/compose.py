"""Composition of a run's settings from YAML and overrides by Hydra, and their storage in the run's folder.

This module imports no large package except Hydra, so that a misspelt setting is reported in less than a second.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from common.errors import CaucusError, CheckpointError, ConfigError, InternalError
from common.phrases import series
from common.system.files import write_atomic
from common.validate import suggest_name
from server.prepare.files import PATHS, with_absolute_paths
from server.prepare.misprints import (
    CONFIGS,
    NEEDED,
    NOT_COMPOSED,
    explain_hydra_error,
    is_group,
    no_choice,
    setting_names,
)
from server.settings.methods import METHODS, ClassSumsSettings
from server.settings.reading import defaults, mapping_of, number, settings_of
from server.settings.schema import Llm, Rules, Secagg, Settings, SimulationSettings
from server.settings.sections import PrivacyTarget, with_values
from server.settings.tasks import TASKS

FILE = "config.yaml"
"""File in a run's folder that contains its settings."""
SEARCH_PATH = "hydra.searchpath"
"""Setting that lists further folders of configurations, which may define choices of their own."""

RAISED_LATER = ("llm.max_cost", "llm.max_tokens", "llm.confirm_calls", "llm.most_lost")
"""Settings that may change when a run is resumed, to a number or null."""

CHOSEN = ("method", "task", "llm", "embedding", "privacy", "secagg", "client")
"""Sections that take their defaults from a chosen file."""
NOT_TYPED = ("automatic", "others", "labels_from_records", "overrides", "experiment")
"""Keys of a run's settings that have no typed field."""


def register() -> None:
    """Register the schema's defaults with Hydra as the group `schema`, with which the files of `configs/` begin."""
    store = ConfigStore.instance().store
    for section in (*METHODS, *TASKS, Llm, Rules, PrivacyTarget, Secagg):
        store(group="schema", name=section.__name__.removesuffix("Settings"), node=defaults(section))
    store(group="schema", name="Census", node=defaults(ClassSumsSettings))  # the former name, as on the next line
    store(group="method", name="census", node={"defaults": ["class_sums@_here_"]})
    coordinator, simulation = (
        {name: value for name, value in defaults(schema).items() if name not in (*CHOSEN, *NOT_TYPED)} | {"run": None}
        for schema in (Settings, SimulationSettings)
    )
    added = {name: value for name, value in simulation.items() if coordinator.get(name) != value}
    store(group="schema", name="Coordinator", node=coordinator)
    store(group="schema", name="Simulation", node=added | {"row": None})


register()


def compose_settings(overrides: Sequence[str], config_name: str = "simulation") -> Settings:
    """Compose settings with overrides; check them, make their paths absolute, and give the run an ID.

    Raises:
        ConfigError: A setting is misspelt or missing, or its value is of the wrong type or out of bounds.
    """
    return typed_settings(_compose(overrides, config_name))


def typed_settings(config: object) -> Settings:
    """Convert a configuration that Hydra has composed to typed settings."""
    try:
        resolved: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key, expected, value = str(error.full_key), "a value", "VALUE"
        if key in PATHS:
            expected, value = "a file", "PATH"
        raise ConfigError(key, expected=expected, got="none", do=f"Add {key}={value}") from error
    except OmegaConfBaseException as error:
        raise explain_hydra_error(error) from error
    for group in NEEDED:
        if resolved.get(group) is None:
            raise no_choice(group)
    return with_absolute_paths(settings_of(resolved))


def apply_overrides(settings: Settings, overrides: Sequence[str]) -> Settings:
    """Return a coordinator's stored settings with an operator's overrides applied, checked as in `compose_settings`.

    Args:
        settings: The settings that the run stored.
        overrides: An override that names a group replaces the whole group; any other override replaces a single value.

    Raises:
        ConfigError: An override deletes or misspells a setting, or its value is of the wrong type or out of bounds.
    """
    config = OmegaConf.create(mapping_of(settings))
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except OverrideParseException as error:
        raise explain_hydra_error(error) from error
    choices = [override for override in parsed if is_group(override.key_or_group)]
    for override in parsed:
        if override.is_delete() or override.is_sweep_override():
            raise ConfigError(override.key_or_group, expected="one value", got=override.input_line)
    chosen = _compose([str(override.input_line) for override in choices], "server")
    for override in choices:
        OmegaConf.update(config, override.key_or_group, OmegaConf.select(chosen, override.key_or_group), merge=False)
    for override in parsed:
        if override in choices:
            continue
        name = override.key_or_group
        if not (_has(config, name) or override.is_add()):
            do = suggest_name(name, tuple(setting_names(config)))
            raise ConfigError(name, expected="a setting of the run", got="an unknown one", do=do)
        OmegaConf.update(config, name, override.value(), merge=False, force_add=True)
    return typed_settings(config)


def misprint_error(
    error: Exception, overrides: Sequence[str], config_name: str = "simulation", *, sweep: bool = False
) -> ConfigError:
    """Return an error that explains in one line why Hydra could not compose these overrides (`misprints.py`)."""
    parsed: list[Override] = []
    for text in overrides:
        with contextlib.suppress(OverrideParseException):  # the folder of an option, or what the error says itself
            parsed += OverridesParser.create().parse_overrides([text])
    chosen = [
        str(override.input_line)
        for override in parsed
        if is_group(override.key_or_group) or override.key_or_group == SEARCH_PATH
    ]
    for choices in (chosen, []):  # a choice may be what is wrong
        with contextlib.suppress(*NOT_COMPOSED):
            return explain_hydra_error(error, list(setting_names(_composed(choices, config_name))), parsed, sweep=sweep)
    raise InternalError("our own settings cannot be composed") from error


def check_simulation(settings: Settings) -> SimulationSettings:
    """Return the same settings, after a check that they are the settings of a simulation.

    Raises:
        ConfigError: The settings are those of a coordinator.
    """
    if not isinstance(settings, SimulationSettings):
        raise ConfigError("these are the settings of a coordinator", do="Give those of a simulation")
    return settings


def store(settings: Settings, folder: Path) -> None:
    """Write the settings to `config.yaml` in this folder."""
    write_yaml(mapping_of(settings), folder / FILE)


def load_settings(folder: Path) -> Settings:
    """Read the settings from `config.yaml`. A setting that did not exist when the run began gets its default."""
    return settings_of(values(folder / FILE))


def stored_run(folder: Path) -> str | None:
    """Return the ID of the run whose settings this folder has; None if it has none, or another program's file."""
    try:
        return load_settings(folder).run
    except (CaucusError, OSError, ValueError, AttributeError, YAMLError, OmegaConfBaseException):
        return None


def write_yaml(config: object, path: Path) -> None:
    """Write a mapping, or a configuration composed by Hydra, to a YAML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, OmegaConf.to_yaml(OmegaConf.create(config)).encode())  # type: ignore[call-overload]


def values(path: Path) -> dict[str, Any]:
    """Read settings from a file without checks, for tables of many runs or for Hydra's own files."""
    return plain(OmegaConf.load(path))


def plain(config: object) -> dict[str, Any]:
    """Return a configuration composed by Hydra as plain values."""
    container: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    return container


def reload_settings(folder: Path, overrides: Sequence[str]) -> Settings:
    """Read `config.yaml` of a simulation that is to be resumed, and apply new caps on spending and losses.

    Raises:
        CheckpointError: The file does not exist, or an override names a setting that is not a cap.
    """
    if not (folder / FILE).is_file():
        do = "Give the folder of a run"
        raise CheckpointError("there is no config.yaml to resume from", where=folder, do=do)
    settings = load_settings(folder)
    for override in overrides:
        name, sign, value = override.partition("=")
        if name not in RAISED_LATER or not sign:
            do = f"Change nothing but {series(RAISED_LATER, 'and')}"
            raise CheckpointError("a resumed run keeps its settings", got=override, do=do)
        settings = with_values(settings, {name: None if value == "null" else number(name, value)})
    return settings


def _has(config: DictConfig, name: str) -> bool:
    parent, _, key = name.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return isinstance(node, DictConfig) and key in node


def _compose(overrides: Sequence[str], config_name: str) -> DictConfig:
    try:
        return _composed(overrides, config_name)
    except NOT_COMPOSED as error:
        raise misprint_error(error, overrides, config_name) from error


def _composed(overrides: Sequence[str], config_name: str) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return compose(config_name, list(overrides))
    with initialize_config_module(CONFIGS, version_base="1.3"):
        return compose(config_name, list(overrides))
