"""Translation of Hydra's errors about settings into one line that states the fault and the likely intention.

Hydra advises adding an unknown setting with `+`, but no code would read that setting; this module reports a misprint.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from common.domain import PRESENT_NAMES
from common.errors import ConfigError
from common.system.extras import how_to_install
from common.validate import suggest_name
from server.failure import WRONG_SETTINGS
from server.settings.sections import TARGET
from server.settings.tasks import REMOVED

NOT_COMPOSED = (*WRONG_SETTINGS, ValueError)
"""Errors that Hydra raises for settings that it cannot compose."""

CONFIGS = "configs"
"""Package that contains all configuration files."""

NEEDED = ("method", "task", "embedding")
"""Groups for which a run needs a choice."""


def explain_hydra_error(
    error: Exception, known: Collection[str] = (), overrides: Sequence[Override] = (), *, sweep: bool = False
) -> ConfigError:
    """Translate a Hydra error into a one-line error about the setting that is wrong.

    If Hydra's error has fields that name the setting, they are used. Most of Hydra's errors have only a message, which
    is not parsed; instead, the overrides are compared with the known settings again to find the fault.

    Args:
        error: An error of a class in `NOT_COMPOSED`.
        known: Full names of all settings.
        overrides: The overrides that Hydra failed to compose.
        sweep: Whether an override may have several values, one per run.
    """
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        options = [option for option in error.options if group != "method" or option not in PRESENT_NAMES]
        cluster = how_to_install("cluster") if choice.startswith("submitit") else None
        do = cluster or suggest_name(PRESENT_NAMES.get(choice, choice), options)
        return ConfigError(group, expected=f"one of {', '.join(options)}", got=repr(choice), do=do)
    if isinstance(error, OverrideParseException):
        do = _quoting(str(error.override))
        return ConfigError("override", expected="NAME=VALUE", got=repr(error.override), do=do)
    if isinstance(error, HydraException | ValueError):
        for wrong in chain.from_iterable(_wrong(override, known, sweep=sweep) for override in overrides):
            return wrong
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    name = getattr(cause, "full_key", None)
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and name:
        return _unknown(str(name), known)
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]  # what follows repeats the fields
    return ConfigError(str(name or "settings"), got=first, do="Correct it, or leave it out")


def _wrong(override: Override, known: Collection[str], *, sweep: bool) -> Iterator[ConfigError]:
    """Yield an error for each fault found in an override."""
    name, added = override.key_or_group, override.is_add() or override.is_force_add()
    if override.is_sweep_override():
        value = str(override.input_line).partition("=")[2]
        if not sweep and is_group(name):
            do = "Choose one, or run each of several with caucus-simulate --multirun"
            yield ConfigError(name, expected="one choice", got=value, do=do)
        elif not sweep:
            quotes = f"Quote a text that has a comma: {name}='\"{value}\"'"
            do = f"{quotes}, or run each of several values with caucus-simulate --multirun"
            yield ConfigError(name, expected="one value, or a list such as [a,b]", got=value, do=do)
    elif is_group(name) and override.value() is None and (name in NEEDED or not override.is_delete()):
        yield no_choice(name)
    elif override.is_add() and name in known and not isinstance(override.value(), dict | list):  # those are merged
        do = f"Write {name}={override.value()}"
        yield ConfigError(name, expected="no + before a setting that exists", got=f"+{name}", do=do)
    elif not added and name not in known and not name.startswith(("hydra.", "hydra/")):
        yield _unknown(name, known)


def no_choice(group: str) -> ConfigError:
    """Return the error for a group without a choice."""
    return ConfigError(group, expected=f"one of {', '.join(_choices(group))}", got="none", do=f"Add {group}=CHOICE")


def is_group(name: str) -> bool:
    """Return whether this is the name of a group of settings, for which a value selects one of the group's files."""
    return (files(CONFIGS) / name.partition("@")[0]).is_dir()


def setting_names(config: DictConfig, above: str = "") -> Iterator[str]:
    """Yield the full names of all settings."""
    for key in map(str, config):
        yield f"{above}{key}"
        node = config._get_node(key)  # noqa: SLF001 the values may be missing, or refer to missing ones
        if isinstance(node, DictConfig) and not (node._is_none() or node._is_missing()):  # noqa: SLF001
            yield from setting_names(node, f"{above}{key}.")


def _unknown(name: str, known: Collection[str]) -> ConfigError:
    if is_group(name):
        return ConfigError(name, expected=f"+{name}=CHOICE, as no {name} is chosen by default", got=f"{name} without +")
    section, _, rest = name.partition(".")
    if others := [choice for choice, settings in _choices(section).items() if rest in settings]:
        got = f"a setting that this choice of {section} does not have"
        return ConfigError(name, got=got, do=f"Choose one that has it: {section}={', '.join(others)}")
    named = [setting for setting in known if not setting.endswith(TARGET)]
    return ConfigError(name, got="a setting that does not exist", do=REMOVED.get(name) or suggest_name(name, named))


def _choices(group: str) -> dict[str, set[str]]:
    """Return the choices of a group, each with the names of its settings; an empty mapping if it is not a group."""
    folder = files(CONFIGS) / group
    names = sorted(path.name for path in folder.iterdir() if path.is_file()) if group and is_group(group) else []
    loaded = {name.removesuffix(".yaml"): OmegaConf.create((folder / name).read_text("utf-8")) for name in names}
    return {choice: _named(choice, loaded) for choice in loaded}


def _named(choice: str, loaded: Mapping[str, Any]) -> set[str]:
    """Return the names of the settings in a group's file and, recursively, in the files of its `defaults`."""
    settings = set(loaded[choice]) - {"defaults"}
    for base in map(str, loaded[choice].get("defaults", ())):
        if base in loaded:
            settings |= _named(base, loaded)
        elif base.startswith("/schema/"):
            settings |= set(ConfigStore.instance().load(f"{base[1:].partition('@')[0]}.yaml").node)
    return settings


def _quoting(override: str) -> str:
    """Return advice on an override that cannot be parsed: lists and mappings are not quoted, texts are quoted twice."""
    name, _, value = override.rpartition("=")
    if value.startswith(("[", "{")) or (not name and value.endswith(("]", "}"))):
        return (
            "A list is 'NAME=[a, b]' and a mapping 'NAME={a: \"b, c\"}': quotes around the whole, around each text "
            "with commas, brackets or letters such as ü, and none around names; names with spaces or such letters go "
            "into a file, such as task/mine.yaml in a folder DIR: 'hydra.searchpath=[file://DIR]' task=mine"
        )
    return "Put a text with special characters in two pairs of quotes: NAME='\"TEXT\"'"
