"""Checks of single settings, before anything is built: their names, kinds, numbers and files."""

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf

from common import validate
from common.errors import ConfigError
from server.llm import providers

SETTINGS = {
    "privacy": {"epsilon", "delta", "calibration", "unit", "max_records"},
    "federation": {
        "parties",
        "hospitals",
        "max_dropouts",
        "max_records",
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
NUMBERS_OR_NULL = (*RAISED_LATER, "federation.colluders", "federation.max_records", "method.tau")
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


def check_names(config: DictConfig) -> None:
    """Refuse a misspelt setting of privacy or money: Hydra's `+` would add it, and no code would read it."""
    for group, names in SETTINGS.items():
        for name in set(config[group]) - names:
            expected, do = f"one of {', '.join(sorted(names))}", validate.meant(name, names)
            raise ConfigError(f"{group}.{name}", expected=expected, got="a setting that there is not", do=do)


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
    """A number, or inf in any spelling; not nan, which no limit holds.

    Raises:
        ConfigError: Naming the setting.
    """
    with contextlib.suppress(ValueError):
        read = float(str(value).replace(".inf", "inf"))
        if not math.isnan(read):
            return read
    raise ConfigError(name, expected="a number, or inf", got=_shown(value))


def number_or_null(name: str, value: object) -> float | None:
    """The same, or null."""
    return None if value is None else number(name, value)


def check_kind(name: str, value: object, default: object) -> None:
    """Refuse a value of another kind than its default. A default of null admits every kind.

    Null may replace a list or a mapping, but no number, text or truth value.

    Raises:
        ConfigError: Naming the setting.
    """
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
