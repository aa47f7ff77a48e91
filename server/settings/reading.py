"""Conversion of a mapping, composed by Hydra or stored in YAML, into typed settings, and back.

Names and types are checked here for all sections; each class checks its own bounds. An error states the full name of
the setting, what was expected, and the value found.
"""

import contextlib
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from common.errors import ConfigError, InputError
from common.validate import full_name, shown_value, suggest_name
from server.settings.bounds import within
from server.settings.methods import DIRECTIONS, METHODS, RENAMED
from server.settings.schema import Settings, SimulationSettings
from server.settings.sections import TARGET, USUAL_TEXTS, MethodSettings, Part, TaskSettings, as_mapping, has
from server.settings.seeded import ABSTRACT_WORDS, MOST_ABSTRACTS
from server.settings.tasks import REMOVED, TASKS
from server.settings.voting import USUAL_VOTES

AUTO = "auto"
FEWEST_ROUNDS = 2
AUTOMATIC = {
    "words": None,
    "texts_per_request": USUAL_TEXTS,
    "abstract_words": ABSTRACT_WORDS,
    "pool": MOST_ABSTRACTS,
    "directions": DIRECTIONS,
    "rounds": FEWEST_ROUNDS,
    "top": USUAL_VOTES,
    "shots": USUAL_VOTES,
}
"""Settings of a method that are whole numbers or `auto`, keyed by name, with the value used until `resolve_auto`
chooses one, in this order: numbers of texts depend on their length, and those of votes on the rounds."""

S = TypeVar("S")

_KINDS = {bool: "true or false", int: "a whole number", str: "text"}


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Return typed settings from a mapping. The settings of a simulation are recognised by their engine.

    A run without an ID gets a new ID. Missing settings get their defaults.

    Raises:
        ConfigError: A setting is misspelt, or its value is of the wrong type or out of bounds.
    """
    schema = SimulationSettings if "engine" in values else Settings
    schema_names = _hints(schema).keys() - {"automatic", "others"}
    method = values.get("method")
    automatic = tuple(name for name in AUTOMATIC if isinstance(method, Mapping) and method.get(name) == AUTO)
    if isinstance(method, Mapping):
        method = {**method, **{name: AUTOMATIC[name] for name in automatic}}
    given = {name: value for name, value in values.items() if name in schema_names}
    given |= {"method": method, "run": values.get("run") or uuid.uuid4().hex}
    given |= {"others": {name: value for name, value in values.items() if name not in schema_names}}
    settings = read_section(schema, given)
    # A baseline leaves out settings that it has not (`_one_of_ours`).
    return replace(settings, automatic=tuple(name for name in automatic if has(settings.method, name)))


def mapping_of(settings: Settings) -> dict[str, Any]:
    """Return the content of `config.yaml` from which `settings_of` reads these settings."""
    values: dict[str, Any] = as_mapping(settings)
    automatic, others = values.pop("automatic"), values.pop("others")
    values["method"] |= dict.fromkeys(automatic, AUTO)
    values |= others
    return values


def defaults(schema: type[Any]) -> dict[str, Any]:
    """Return the defaults of a section, as `configs/` would state them, with ??? for a setting without a default."""
    values = {TARGET: schema.made_by} if getattr(schema, "made_by", "") else {}
    for field in fields(schema):
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        values[field.name] = "???" if made is MISSING else as_mapping(made)
    return values | dict.fromkeys(getattr(schema, "auto_by_default", ()), AUTO)


def read_section(schema: type[S], values: object, section: str = "") -> S:
    """Read a section of settings from a mapping.

    Args:
        schema: Class of the section.
        values: Values of its settings, keyed by name; `_target_` may be among them.
        section: Full name of the section; empty at the top.

    Raises:
        ConfigError: As in `settings_of`.
    """
    hints = _hints(schema)
    values = {
        name: value
        for name, value in _as_mapping(section, values).items()
        if value is not None or full_name(section, name) not in REMOVED
    }
    if (target := values.get(TARGET)) and not str(target).startswith("server."):
        do = "Remove it: its class cannot be replaced, only its settings"
        raise ConfigError(full_name(section, TARGET), expected="none", got=shown_value(target), do=do)
    for name in (name for name in values if name not in hints and name != TARGET):
        expected = f"one of {', '.join(sorted(hints))}"
        do = REMOVED.get(full_name(section, name)) or suggest_name(name, list(hints)) or "Remove it"
        raise ConfigError(full_name(section, name), expected=expected, got="a setting that does not exist", do=do)
    given = {
        name: convert_value(full_name(section, name), value, hints[name])
        for name, value in values.items()
        if name != TARGET
    }
    for field in fields(schema):  # type: ignore[arg-type]
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(full_name(section, field.name), expected="a value", got="none")
    try:
        return schema(**given)
    except InputError as error:
        raise within(section, error, hints) from error


def convert_value(name: str, value: object, hint: Any) -> Any:
    """Return the value, checked and converted according to a field's annotation.

    Raises:
        ConfigError: The value is of the wrong type.
    """
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if value is None and NoneType in options:
        return None
    hint = next(option for option in options if option is not NoneType)
    kind = get_origin(hint) or hint
    if kind in _READERS:
        return _READERS[kind](name, value, hint)
    if is_dataclass(hint):
        # An empty mapping of rules means no rules, not their defaults.
        return None if value == {} and NoneType in options else read_section(kind, value, name)
    null = NoneType in options
    if kind is float:
        return number(name, value, null=null)
    if kind in _KINDS and type(value) is not kind:
        others = ", or auto" * (name in {f"method.{automatic}" for automatic in AUTOMATIC}) + ", or null" * null
        raise ConfigError(name, expected=_KINDS[kind] + others, got=shown_value(value))
    return value


def number(name: str, value: object, *, null: bool = False) -> float:
    """Return the value as a float. Infinity may be spelled in any way; NaN is an error, since it passes any bound.

    Raises:
        ConfigError: The value is not a number, or is NaN; the message names the setting.
    """
    with contextlib.suppress(ValueError):
        converted = float(str(value).replace(".inf", "inf"))
        if not math.isnan(converted):
            return converted
    raise ConfigError(name, expected="a number, inf or null" if null else "a number, or inf", got=shown_value(value))


def _one_of_ours(name: str, value: object, base: type[Any]) -> Any:
    """Return the typed settings of one of our methods or tasks, or a `Part` for the user's own class."""
    value = _as_mapping(name, value)
    schemas: Sequence[type[Any]] = METHODS if base is MethodSettings else TASKS
    present = _with_present_names(value) if base is MethodSettings else value
    for schema in schemas:
        if schema.made_by and present.get(TARGET) == schema.made_by:
            return read_section(schema, present, name)
        if not schema.made_by and TARGET not in value and value.get("name") == defaults(schema)["name"]:
            # An experiment has settings for the methods of all its rows, some of which a baseline has not.
            return read_section(schema, {key: inner for key, inner in value.items() if key in _hints(schema)}, name)
    return Part(place=name, settings=value)


def _with_present_names(method: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a method with present names for former ones, including that of a choice of labels."""
    former = {key: str(method.get(key)) for key in (TARGET, "name", "labels")}
    return {**method, **{key: RENAMED[name] for key, name in former.items() if name in RENAMED}}


def _part(name: str, value: object, hint: object) -> Part:
    del hint
    if not isinstance(value, Mapping) or TARGET not in value:
        expected = "a part, such as {_target_: module.Class}; a function also has _partial_: true"
        raise ConfigError(name, expected=expected, got=shown_value(value))
    return Part(place=name, settings=value)


def _list(name: str, value: object, hint: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(name, expected="a list, such as [a,b]", got=shown_value(value))
    return tuple(convert_value(name, item, get_args(hint)[0]) for item in value)


def _mapping(name: str, value: object, hint: object) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        key: convert_value(f"{name}.{key}", item, get_args(hint)[1]) for key, item in _as_mapping(name, value).items()
    }


def _as_mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(name, expected="a mapping, such as {a: b}", got=shown_value(value))
    return value


_READERS: dict[Any, Callable[[str, object, Any], Any]] = {
    MethodSettings: _one_of_ours,
    TaskSettings: _one_of_ours,
    Part: _part,
    tuple: _list,
    Mapping: _mapping,
}
"""Functions that check and convert values, keyed by type, for types other than numbers, strings and booleans."""


def _hints(schema: type[Any]) -> dict[str, Any]:
    """Return the annotations of a section's fields, keyed by name."""
    hints = get_type_hints(schema)
    return {field.name: hints[field.name] for field in fields(schema)}
