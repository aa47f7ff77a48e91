"""Hydra's errors about settings that it cannot compose, in one line of ours: the fault, and what was perhaps meant.

Hydra advises to add an unknown setting with `+`, and then no code would read it; here it is a misprint.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from importlib.resources import files
from itertools import chain

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from common.errors import ConfigError
from common.validate import meant
from server.failure import WRONG_SETTINGS
from server.settings.sections import TARGET
from server.settings.tasks import LabelledFilesSettings

NOT_COMPOSED = (*WRONG_SETTINGS, ValueError)
"""Errors of Hydra for settings that cannot be composed."""

CONFIGS = "configs"
"""The package that has all settings."""


def explained(
    error: Exception, known: Collection[str] = (), overrides: Sequence[Override] = (), *, sweep: bool = False
) -> ConfigError:
    """Translate a Hydra error into one line about the setting that is wrong.

    What Hydra's error has in fields is taken from these. Most of its errors are a sentence alone, which is not read:
    the overrides are compared with the settings once more, which finds the same.

    Args:
        error: One of `NOT_COMPOSED`.
        known: Full names of all settings.
        overrides: Overrides that were composed.
        sweep: Whether several values of a setting are several runs.
    """
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        options = list(error.options)
        cluster = "Install the extra: pip install 'caucus[cluster]'" if choice.startswith("submitit") else None
        do = cluster or meant(choice, options)
        return ConfigError(group, expected=f"one of {', '.join(options)}", got=repr(choice), do=do)
    if isinstance(error, OverrideParseException):
        quotes = "Put a value with special characters in two pairs of quotes: NAME='\"VALUE\"'"
        return ConfigError("override", expected="NAME=VALUE", got=repr(error.override), do=quotes)
    if isinstance(error, HydraException | ValueError):
        for wrong in chain.from_iterable(_wrong(override, known, sweep=sweep) for override in overrides):
            return wrong
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    name = getattr(cause, "full_key", None)
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and name:
        return _unknown(str(name), known)
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]  # what follows repeats the fields
    return ConfigError(str(name or "settings"), expected="settings that can be composed", got=first)


def _wrong(override: Override, known: Collection[str], *, sweep: bool) -> Iterator[ConfigError]:
    """The fault of an override, if it has one."""
    name, added = override.key_or_group, override.is_add() or override.is_force_add()
    if override.is_sweep_override():
        if not sweep:
            value = str(override.input_line).partition("=")[2]
            quotes = f"Quote a text that has a comma: {name}='\"{value}\"'"
            do = f"{quotes}; caucus-simulate --multirun runs each of several values"
            yield ConfigError(name, expected="one value, or a list such as [a,b]", got=value, do=do)
    elif is_group(name) and override.value() is None and not override.is_delete():
        yield ConfigError(name, expected="one of its choices, listed in configs/README.md", got="null")
    elif override.is_add() and name in known and not isinstance(override.value(), dict | list):  # those are merged
        yield ConfigError(name, expected="no + before a setting that exists", got=f"+{name}")
    elif not added and name not in known and not name.startswith(("hydra.", "hydra/")):
        yield _unknown(name, known)


def is_group(name: str) -> bool:
    """Whether a setting chooses one of our files."""
    return (files(CONFIGS) / name.partition("@")[0]).is_dir()


def names(config: DictConfig, above: str = "") -> Iterator[str]:
    """The full names of all settings."""
    for key in map(str, config):
        yield f"{above}{key}"
        node = config._get_node(key)  # noqa: SLF001 the values may be missing, or refer to missing ones
        if isinstance(node, DictConfig) and not (node._is_none() or node._is_missing()):  # noqa: SLF001
            yield from names(node, f"{above}{key}.")


def _unknown(name: str, known: Collection[str]) -> ConfigError:
    if is_group(name):
        return ConfigError(name, expected=f"+{name}=CHOICE, as no {name} is chosen by default", got=f"{name} without +")
    section, _, rest = name.partition(".")
    if section == "task" and any(field.name == rest for field in fields(LabelledFilesSettings)):
        return ConfigError(name, got="a setting of files", do="Choose task=csv beside it")
    named = [setting for setting in known if not setting.endswith(TARGET)]
    return ConfigError(name, got="an unknown setting", do=meant(name, named))
