"""Sentences from files beside the code, one per language, for pages, plans, hospitals' sheets, guarantees and reports.

`sentences` adds to a page's own sentences those of the files here, which all pages share; the page's own file replaces
shared sentences of the same name, and a page is available in the languages for which it has files. `catalogue` reads
only a package's own file, also for the terminal: plans and sheets have three languages, guarantees and reports English.
Errors come in English from the code.
"""

from collections.abc import Collection
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import Any

import yaml

ENGLISH = "en"
CODES = {ENGLISH: "english", "de": "german", "fr": "french"}
"""Name of each language, keyed by its code."""
LANGUAGES = tuple(CODES.values())
DECIMAL_COMMA = frozenset({"de", "fr"})
"""Codes of the languages in which 10.000 reads as ten thousand."""


def sentences(package: str) -> dict[str, SimpleNamespace]:
    """Return a page's sentences, keyed by language code; a sentence is accessed by group and name: `.plans.title`."""
    of_language = {}
    for language in LANGUAGES:
        if (resources.files(package) / f"{language}.yaml").is_file():
            shared, of_page = (_read(name, language) for name in (__package__, package))
            groups = {name: {**shared[name], **of_page[name]} for name in shared.keys() & of_page.keys()}
            of_language[shared["lang"]] = _named({**shared, **of_page, **groups})
    return of_language


@cache
def catalogue(package: str, code: str = ENGLISH) -> SimpleNamespace:
    """Return the sentences of a package's own file in one language."""
    return _named(_read(package, CODES[code]))


def preferred_language(accepted: str, among: Collection[str]) -> str:
    """Return the code that the browser prefers by its header, such as "de-CH, fr;q=0.8"; English if it accepts none."""
    best, code = 0.0, ENGLISH
    for item in accepted.split(","):
        name, _, quality = item.partition(";q=")
        language = name.strip().partition("-")[0].lower()
        try:
            weight = float(quality or 1)
        except ValueError:
            continue
        if language in among and weight > best:
            best, code = weight, language
    return code


def spelt(number: str, language: str) -> str:
    """Convert a number without commas, such as "9.5" or "1.5e-05", to the notation of the language with this code."""
    return number.replace(".", ",") if language in DECIMAL_COMMA else number


def _read(package: str, language: str) -> dict[str, Any]:
    text = (resources.files(package) / f"{language}.yaml").read_text("utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def _named(values: dict[str, Any]) -> SimpleNamespace:
    """Return mappings as namespaces: a name such as "items" is then not mistaken for a mapping's own method."""
    return SimpleNamespace(**{name: _named(item) if isinstance(item, dict) else item for name, item in values.items()})
