"""Checks of settings that contain file names, before anything is built: absolute paths and readable files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import ConfigError
from common.file_diagnosis import advice_on_folder
from common.models import catalogue
from server.settings.schema import Settings
from server.settings.sections import setting, with_values

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
"""Settings that contain the path of a file that a run reads."""
PATHS = ("task.train", "embedding_cache", "reply_cache", *FILES)
"""Settings that contain a file path. The first one, for private records, exists only in a simulation."""
PATHS_OR_NAMES = (
    "embedding.name_or_path",
    "evaluation.checkpoint",
    "evaluation.language_model.start",
)
"""Settings that name a model: its name in the catalogue, a file, a folder, or a model hosted elsewhere. The `model` of
each language model that runs on this machine is such a setting too."""
_LOCAL = "server.llm.local.Local"


def given_paths(settings: Settings, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each of these settings that is set."""
    for name in names:
        if value := setting(settings, name):
            yield name, str(value)


def with_absolute_paths(settings: Settings) -> Settings:
    """Return the settings with absolute paths, since a run executes, and is resumed, in a different folder."""
    local = [f"{part.place}.model" for part in settings.llm.models.values() if part.settings.get("_target_") == _LOCAL]
    paths_or_names = (*PATHS_OR_NAMES, *local)
    for name, value in [*given_paths(settings, PATHS), *given_paths(settings, paths_or_names)]:
        in_the_run_folder = (name, value) == ("embedding_cache", "run")
        listed = name in paths_or_names and value in catalogue.catalogue()
        if not listed and (_exists(name, value) or (name in PATHS and not in_the_run_folder)):
            settings = with_values(settings, {name: str(Path(value).resolve())})
    return settings


def _exists(name: str, value: str) -> bool:
    """Return whether a file or folder has this path; a text that no path can be may be private, and is not shown."""
    try:
        return Path(value).exists()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a character that no path has"
        got = f"{len(value):,} characters ({reason})"
        raise ConfigError(
            name, expected="the path of a file", got=got, do="Name a file, or pass a list of texts in Python"
        ) from None


def check_files(settings: Settings) -> None:
    """Raise a ConfigError, with the setting and the file, if a setting names a file that cannot be read."""
    for name, path in given_paths(settings, FILES):
        check_file(name, path)


def check_file(name: str, path: str) -> None:
    """Raise the ConfigError of `check_files` if this setting's file cannot be read."""
    if not (Path(path).is_file() and os.access(path, os.R_OK)):
        got = "a folder" if Path(path).is_dir() else "none"
        do = advice_on_folder(Path(path))
        raise ConfigError(name, expected="a file that can be read", got=got, where=path, do=do)
