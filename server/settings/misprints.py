"""What Hydra says of settings that it cannot compose, in one line of ours: what is wrong, and what was perhaps meant.

Hydra advises to add an unknown setting with `+`, and then no code would read it; here it is a misprint.
"""

import re
from collections.abc import Collection, Iterator
from importlib.resources import files

from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import DictConfig

from common.errors import ConfigError
from common.validate import meant
from server.failure import WRONG_SETTINGS

NOT_COMPOSED = (*WRONG_SETTINGS, ValueError)
"""Errors of Hydra for settings that cannot be composed."""

CONFIGS = "configs"
"""The package that has all settings."""

_UNKNOWN = re.compile(r"Could not (?:override|delete from config\.) '([^']+)'")


def explained(error: Exception, known: Collection[str]) -> ConfigError:
    """The same error, for who typed the settings.

    Args:
        error: One of `NOT_COMPOSED`.
        known: Full names of all settings.
    """
    said = " ".join(str(error).split())
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        options = list(error.options)
        return ConfigError(group, expected=f"one of {', '.join(options)}", got=repr(choice), do=meant(choice, options))
    if isinstance(error, OverrideParseException):
        quotes = "Put a value with special characters in two pairs of quotes: NAME='\"VALUE\"'"
        return ConfigError("override", expected="NAME=VALUE", got=repr(error.override), do=quotes)
    if unknown := _UNKNOWN.search(said):
        return _unknown(unknown[1], known)
    if there := re.search(r"An item is already at '([^']+)'", said):
        return ConfigError(there[1], expected="no + before a setting that exists", got=f"+{there[1]}")
    if ambiguous := re.search(r"Ambiguous value for argument '([^=]+)=(.*?)' 1\.", said):
        quotes = f"Quote a text that has a comma: {ambiguous[1]}='\"{ambiguous[2]}\"'"
        do = f"{quotes}; caucus-simulate --multirun runs each of several values"
        return ConfigError(ambiguous[1], expected="one value, or a list such as [a,b]", got=ambiguous[2], do=do)
    name = getattr(error, "full_key", None) or "settings"
    return ConfigError(str(name), expected="settings that can be composed", got=said.split(" full_key:")[0])


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
    return ConfigError(name, got="an unknown setting", do=meant(name, known))
