"""Construction of a task's public description from its settings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from common.domain import UNLABELLED
from common.errors import ConfigError
from common.sections import check_headings
from common.validate import one_of
from server.domain import Task, Wording
from server.settings.sections import NO_LABELS
from server.settings.tasks import LabelledFilesSettings
from server.spans import NAME

_WORDING = tuple(field.name for field in fields(Wording))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def task_from(settings: LabelledFilesSettings) -> Task:
    """Check a task's settings, and return the `Task` made from them.

    The default description of a label, a type of spans or a heading is its name, with spaces for underscores.

    Raises:
        ConfigError: A setting is missing or invalid.
    """
    name = _text(settings.name, "task.name")
    if not _NAME.fullmatch(name):
        raise ConfigError("task.name", expected="letters, digits, dots, dashes and underscores", got=repr(name))
    unlabelled = settings.labels == NO_LABELS
    headings = _headings(settings.sections)
    task = Task(
        name=name,
        kind=_text(settings.kind, "task.kind"),
        labels={} if unlabelled else headings or _labels(settings.labels),
        attributes=tuple(_text(attribute, "task.attributes") for attribute in settings.attributes),
        wording=_wording(settings.wording, "section" if headings else Wording().label),
        language=settings.language,
        labels_per_text=(settings.sections_per_text or len(headings)) if headings else settings.labels_per_text,
        spans=_spans(settings.spans),
        sectioned=bool(headings),
    )
    return task.without_labels() if unlabelled else task


def _labels(given: object) -> dict[str, str]:
    if isinstance(given, str):
        one_of("task.labels", given, among=(NO_LABELS,))
    pairs = list(given.items()) if isinstance(given, Mapping) else [(label, None) for label in _list(given)]
    names = [_text(label, "task.labels") for label, _ in pairs]
    if len(names) < 2:
        raise ConfigError(
            "task.labels",
            expected="at least two labels",
            got=len(names),
            do=f"Set task.labels={NO_LABELS} to make all texts one population",
        )
    if UNLABELLED in names:
        raise ConfigError("task.labels", expected=f"other names than {UNLABELLED!r}, which means no labels", got="it")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError("task.labels", expected="labels that differ", got=f"{name!r} more than once")
    return {name: _described(name, text, "task.labels") for name, (_, text) in zip(names, pairs, strict=True)}


def _headings(given: Mapping[str, object] | Sequence[str] | None) -> dict[str, str]:
    """Return the description of each heading."""
    if not given:
        return {}
    pairs: Mapping[Any, object] = given if isinstance(given, Mapping) else dict.fromkeys(_list(given))
    names = check_headings("task.sections", list(pairs))
    return {name: _described(name, text, "task.sections") for name, text in zip(names, pairs.values(), strict=True)}


def _described(name: str, text: object, where: str) -> str:
    if text is None or (isinstance(text, str) and not text.strip()):
        return name.replace("_", " ")
    return _text(text, f"{where}.{name}")


def _spans(given: Mapping[str, object] | None) -> dict[str, str]:
    if not given:
        return {}
    for name in given:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            expected = "types whose names are letters, digits, dashes and underscores, a letter first"
            raise ConfigError("task.spans", expected=expected, got=repr(name))
    return {name: _described(name, text, "task.spans") for name, text in given.items()}


def _wording(given: object, label: str) -> Wording:
    if given is None:
        return Wording(label=label)
    if not isinstance(given, Mapping) or given.keys() - set(_WORDING):
        raise ConfigError("task.wording", expected=f"a mapping with any of {', '.join(_WORDING)}", got=repr(given))
    named = {name: _text(value, f"task.wording.{name}") for name, value in given.items() if value is not None}
    return Wording(**{"label": label} | named)


def _text(value: object, where: str) -> str:
    # YAML does not read an unquoted yes, no or 1 as text.
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(where, expected="a text that is not empty, in quotes if need be", got=repr(value))
    return value.strip()


def _list(value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError("task", expected="a list", got=repr(value))
    return value
