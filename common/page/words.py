"""The sentences of a page, from one file for each language: `english.yaml` here has those that all pages share.

The page's own file adds its sentences, and replaces shared ones of the same name. What the terminal says too, such as
a plan's sheet and the errors, comes from the code that says it there.
"""

from importlib import resources
from types import SimpleNamespace
from typing import Any

import yaml

LANGUAGES = ("english",)


def sentences(package: str, language: str = LANGUAGES[0]) -> SimpleNamespace:
    """Return the sentences of a page's package, by group and name, such as `.plans.title`."""
    shared, own = (_read(name, language) for name in (__package__, package))
    groups = {name: {**shared[name], **own[name]} for name in shared.keys() & own.keys()}
    named = _named({**shared, **own, **groups})
    assert isinstance(named, SimpleNamespace)
    return named


def _read(package: str, language: str) -> dict[str, Any]:
    text = (resources.files(package) / f"{language}.yaml").read_text("utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def _named(value: object) -> object:
    """Return mappings as namespaces: a name such as "items" is then not mistaken for a mapping's own."""
    return SimpleNamespace(**{name: _named(item) for name, item in value.items()}) if isinstance(value, dict) else value
