"""The page's own sentences, from one file for each language: `english.yaml` has them all.

What the terminal says too, such as a plan's sheet and the errors, comes from the code that says it there.
"""

from functools import cache
from importlib import resources
from types import SimpleNamespace

import yaml

LANGUAGES = ("english", "german", "french")


@cache
def words(language: str = LANGUAGES[0]) -> SimpleNamespace:
    """Return the sentences of a language, by group and name, such as `words().plans.title`."""
    text = (resources.files(__package__) / f"{language}.yaml").read_text("utf-8")
    named = _named(yaml.safe_load(text))
    assert isinstance(named, SimpleNamespace)
    return named


def _named(value: object) -> object:
    """Return mappings as namespaces: a name such as "items" is then not mistaken for a mapping's own."""
    return SimpleNamespace(**{name: _named(item) for name, item in value.items()}) if isinstance(value, dict) else value
